//! `kubectl-stayput`: what people and scripts ask the reconciler with.

use std::process::ExitCode;

fn main() -> ExitCode {
    stayput_reconciler::kubectl::main(std::env::args_os())
}
