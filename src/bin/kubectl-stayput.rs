//! `kubectl-stayput`: the command line by which people and scripts use the reconciler.

use std::process::ExitCode;

fn main() -> ExitCode {
    stayput_kubectl::main(std::env::args_os())
}
