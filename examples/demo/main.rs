//! The whole story of stayput in a few seconds: `cargo run --release --example demo`.
//!
//! Nothing is needed but this program: it starts itself again as the manager (what `stayput run`
//! does) and, below that, as the stand-in engine. It is an acceptance test as well: an answer that
//! is not what was promised ends it with exit code 1.

use std::ffi::OsString;
use std::iter;
use std::process::ExitCode;

use nix::sys::prctl;
use nix::sys::signal::Signal;

mod ground;
mod http;
mod manager;
mod narrator;
mod processes;
mod stage;
mod story;
mod volume;

// Two programs share this room, and this one has no use for a second copy of it.
#[path = "../standin-engine/engine/mod.rs"]
mod engine;

/// First argument that makes this program the manager.
const MANAGER: &str = "manager";
/// First argument that makes this program the engine.
const ENGINE: &str = "engine";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        None => play(),
        Some(role) if role == MANAGER => manage(arguments),
        Some(role) if role == ENGINE => {
            ExitCode::from(engine::main(&[ENGINE.into()], arguments.collect()))
        }
        Some(other) => {
            eprintln!("the demo takes no arguments, and was given {}", other.display());
            ExitCode::from(64)
        }
    }
}

/// Is `stayput` with `arguments`.
fn manage(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // However the demo ends, its manager ends with it, and the engine with the manager.
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGTERM) {
        eprintln!("the manager would outlive a demo that is killed: {error}");
    }
    stayput::cli::main(iter::once("stayput".into()).chain(arguments))
}

fn play() -> ExitCode {
    match story::play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("\nThe demo failed: {sentence}");
            ExitCode::FAILURE
        }
    }
}
