//! The whole story of stayput in less than a minute: `cargo run --release --example demo`.
//!
//! Nothing is needed but this program: it starts itself again as the manager (what `stayput run`
//! does), below that as the stand-in engine, and beside them as `kubectl stayput`. It is an
//! acceptance test as well: an answer that is not what was promised ends it with exit code 1.
//!
//! The first act is one engine under one manager ([`story`]); the second is a cluster of three on a
//! Kubernetes ([`cluster`]), of which the apiserver is a stand-in. `--engine HOME` takes a real
//! OpenSearch for the second act.

use std::ffi::OsString;
use std::iter;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use stayput_standin::engine;

mod cluster;
mod ground;
mod http;
mod interruption;
mod manager;
mod narrator;
mod processes;
mod stage;
mod story;
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
        None => play(None),
        Some(role) if role == MANAGER => manage(arguments),
        Some(role) if role == ENGINE => {
            ExitCode::from(engine::main(&[ENGINE.into()], arguments.collect()))
        }
        Some(role) if role == KUBECTL => {
            stayput_reconciler::kubectl::main(iter::once("kubectl-stayput".into()).chain(arguments))
        }
        Some(option) if option == "--engine" => match (arguments.next(), arguments.next()) {
            (Some(home), None) => play(Some(home.into())),
            (_, _) => usage("--engine takes one directory"),
        },
        Some(other) => usage(&format!("{} is not known here", other.display())),
    }
}

/// Is `stayput` with `arguments`.
fn manage(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // However the demo ends, its manager ends with it, and the engine with the manager.
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGTERM) {
        eprintln!("the manager would outlive a demo that is killed: {error}");
    }
    stayput_manager::cli::main(iter::once("stayput".into()).chain(arguments))
}

fn usage(what: &str) -> ExitCode {
    eprintln!("{what}: run it without arguments, or with --engine HOME (of a real OpenSearch)");
    ExitCode::from(64)
}

fn play(engine: Option<PathBuf>) -> ExitCode {
    match story::play(engine) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("\nThe demo failed: {sentence}");
            ExitCode::FAILURE
        }
    }
}
