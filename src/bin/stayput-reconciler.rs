//! `stayput-reconciler`: the controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    stayput_reconciler::controller::cli::main(std::env::args_os())
}
