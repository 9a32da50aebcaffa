//! Processes that an engine leaves behind: orphans, children in their own sessions, a disowned
//! helper.
//!
//! Those that would live for ever are ended by an alarm after [`LIFETIME_SECONDS`], so that an
//! aborted test leaves nothing behind for good.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::unistd::{alarm, pause, setsid};
use signal_hook::consts::SIGTERM;

use super::config::Behaviour;
use super::{Myself, Refusal};

pub(super) const ORPHAN_MAKER: &str = "standin.orphan-maker";
pub(super) const ORPHAN: &str = "standin.orphan";
pub(super) const SETSID_CHILD: &str = "standin.setsid-child";
pub(super) const HELPER: &str = "standin.helper";

const LIFETIME_SECONDS: u32 = 600;

/// Starts what `behaviour` requests, and returns when all of it runs.
pub(super) fn spawn(behaviour: &Behaviour, myself: &Myself<'_>) -> Result<(), Refusal> {
    let make = || {
        if behaviour.orphans > 0 {
            let count = behaviour.orphans.to_string();
            myself.command("standin", ORPHAN_MAKER)?.arg(count).status()?;
        }
        let mut ready = Vec::new();
        for _ in 0..behaviour.setsid_children {
            let mut child =
                myself.command("standin", SETSID_CHILD)?.stdout(Stdio::piped()).spawn()?;
            ready.extend(child.stdout.take());
        }
        // Each writes one byte once it ignores SIGTERM; before that, a signal would still end it.
        ready.iter_mut().try_for_each(|pipe| pipe.read_exact(&mut [0]))
    };
    make().map_err(|error: io::Error| {
        Refusal::failed(format!("cannot start the processes that standin.* asks for: {error}"))
    })
}

/// Starts the helper; no process waits for it.
pub(super) fn start_helper(myself: &Myself<'_>) -> Result<(), Refusal> {
    myself
        .command("performance-analyzer-agent", HELPER)
        .and_then(|mut command| command.stdin(Stdio::null()).spawn())
        .map(drop)
        .map_err(|error| Refusal::failed(format!("cannot start the helper: {error}")))
}

/// The middle process of the double fork: starts the orphans and ends.
pub(super) fn make_orphans(arguments: &[OsString], myself: &Myself<'_>) -> Result<u8, Refusal> {
    let count = arguments.get(1).and_then(|count| count.to_str()?.parse::<u32>().ok());
    let count = count.ok_or_else(|| Refusal::failed("how many orphans?"))?;
    // Each orphan reads until this process has ended, and with it the other end of the pipe.
    let mut pipes = Vec::new();
    for _ in 0..count {
        let child = myself
            .command("standin", ORPHAN)
            .and_then(|mut command| command.stdin(Stdio::piped()).spawn());
        pipes.push(child.map_err(|error| Refusal::failed(format!("no orphan: {error}")))?.stdin);
    }
    Ok(0)
}

/// Ends when its parent has ended.
pub(super) fn orphan() -> Result<u8, Refusal> {
    // Nothing is ever written: the read returns at the end of file, or with an error, which also
    // ends this process.
    let _ = io::stdin().read(&mut [0]);
    Ok(0)
}

/// Runs in its own session and ignores TERM.
pub(super) fn setsid_child() -> Result<u8, Refusal> {
    alarm::set(LIFETIME_SECONDS);
    let ready = || {
        setsid()?;
        signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false)))?;
        io::stdout().write_all(b"!")?;
        io::stdout().flush()
    };
    ready().map_err(|error| Refusal::failed(format!("cannot leave the session: {error}")))?;
    loop {
        pause();
    }
}

/// Runs until it is ended.
pub(super) fn helper() -> Result<u8, Refusal> {
    alarm::set(LIFETIME_SECONDS);
    loop {
        pause();
    }
}
