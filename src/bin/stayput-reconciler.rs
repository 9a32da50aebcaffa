//! `stayput-reconciler`: the controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    stayput::reconciler::cli::main(std::env::args_os())
}
