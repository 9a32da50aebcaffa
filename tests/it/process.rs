//! The module `process` with real processes.

// Signals, masks, forks and terminals are used in ways for which there is no safe interface.
#![allow(unsafe_code)]

mod launching;
mod oom;
mod pid_1;
mod privileges;
mod reaping;
mod signalling;
mod terminal;
mod tree;

use std::ffi::OsString;

use stayput_manager::process::{ExitStatus, Launch, RUN_VARIABLE, Reaper, launch};

use crate::support::wait::eventually;

const COOKIE: &str = "run-1";

/// Launches a shell script as an engine of the run [`COOKIE`].
fn shell(script: &str) -> u32 {
    command(&["/bin/sh", "-c", script])
}

fn command(argv: &[&str]) -> u32 {
    launch(&Launch {
        argv: argv.iter().map(OsString::from).collect(),
        set_env: vec![(RUN_VARIABLE.into(), Some(COOKIE.into()))],
    })
    .unwrap()
    .pid
}

/// Reaps until this child has ended; returns how it ended.
fn reap(reaper: &mut Reaper, pid: u32) -> ExitStatus {
    eventually("child ends", || {
        let mut ended = None;
        for reaped in reaper.reap() {
            if reaped.pid == pid {
                ended = Some(reaped.status);
            }
        }
        ended
    })
}
