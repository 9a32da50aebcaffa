//! What stayput does, in less than a minute: `cargo run --release --example demo`.
//!
//! It needs only this program, which starts itself again as the manager (`stayput run`), as the
//! stand-in engine, and as `kubectl stayput`. It is also an acceptance test: if an answer is not as
//! promised, it ends with exit code 1.
//!
//! Part 1 is one engine under one manager ([`steps`]). Part 2 is a cluster of three nodes with a
//! stand-in apiserver ([`cluster`]); with `--engine HOME` its engines are a real OpenSearch.

use std::ffi::OsString;
use std::iter;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use stayput_standin::engine;

mod cluster;
mod error;
mod files;
mod http;
mod interruption;
mod manager;
mod narrator;
mod pod;
mod processes;
mod steps;
mod volume;

/// First argument that makes this program the manager.
const MANAGER: &str = "manager";
/// First argument that makes this program the engine.
const ENGINE: &str = "engine";
/// First argument that makes this program `kubectl stayput`.
const KUBECTL: &str = "kubectl";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        None => run(None),
        Some(role) if role == MANAGER => manage(arguments),
        Some(role) if role == ENGINE => {
            ExitCode::from(engine::main(&[ENGINE.into()], arguments.collect()))
        }
        Some(role) if role == KUBECTL => {
            stayput_kubectl::main(iter::once("kubectl-stayput".into()).chain(arguments))
        }
        Some(option) if option == "--engine" => match (arguments.next(), arguments.next()) {
            (Some(home), None) => run(Some(home.into())),
            (_, _) => usage("--engine takes one directory"),
        },
        Some(other) => usage(&format!("unknown argument {}", other.display())),
    }
}

/// Runs `stayput` with `arguments`.
fn manage(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // The manager must end with the demo, also if the demo is killed; the engine ends with the
    // manager.
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGTERM) {
        eprintln!("the manager would outlive a demo that is killed: {error}");
    }
    stayput_manager::cli::main(iter::once("stayput".into()).chain(arguments))
}

fn usage(what: &str) -> ExitCode {
    eprintln!("{what}: run it without arguments, or with --engine HOME (of a real OpenSearch)");
    ExitCode::from(64)
}

fn run(engine: Option<PathBuf>) -> ExitCode {
    match steps::run(engine) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nThe demo failed: {error}");
            ExitCode::FAILURE
        }
    }
}
