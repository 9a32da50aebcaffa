//! `stayput-reconciler`: the controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    stayput_controller::cli::main(std::env::args_os())
}
