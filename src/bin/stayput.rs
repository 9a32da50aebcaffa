//! `stayput`: the manager and its own client.

use std::process::ExitCode;

fn main() -> ExitCode {
    stayput_manager::cli::main(std::env::args_os())
}
