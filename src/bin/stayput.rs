//! `stayput`: the manager and its own client.

use std::process::ExitCode;

fn main() -> ExitCode {
    stayput::cli::main(std::env::args_os())
}
