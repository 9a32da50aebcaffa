//! The events of a process of the engine, as one queue.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::print_line;

/// One event.
pub(super) enum Event {
    /// A signal arrived.
    Signal(i32),
    /// The launcher asked the server to shut down.
    ShutdownMarker,
    /// The launcher is gone.
    LauncherGone,
    /// The server ended, with the exit code a shell would show.
    ServerExited(u8),
}

/// The byte that a launcher writes to its server's stdin to shut it down.
pub(super) const SHUTDOWN_MARKER: u8 = 0x1B;

/// Makes signals that a JVM handles into events.
pub(super) fn signals() -> io::Result<(Sender<Event>, Receiver<Event>)> {
    // signal-hook sets a handler before it has an action for it: a TERM in between would be lost,
    // and a JVM loses none.
    // and a JVM loses none.
    pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), None)?;
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    let (sender, receiver) = mpsc::channel();
    let events = sender.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok((sender, receiver))
}

/// Watches stdin as the server JVM does that has a launcher.
pub(super) fn watch_launcher(events: Sender<Event>) {
    thread::spawn(move || {
        let mut byte = [0];
        let event = loop {
            match io::stdin().read_exact(&mut byte) {
                Ok(()) if byte == [SHUTDOWN_MARKER] => break Event::ShutdownMarker,
                Ok(()) => {}
                Err(_) => break Event::LauncherGone,
            }
        };
        // A receiver that is gone means that the process is ending anyway.
        let _ = events.send(event);
    });
}

/// The exit code of a JVM that ran its shutdown hooks because of `signal`, if it ends it at all.
pub(super) fn exit_code_after(signal: i32, ignore_term: bool) -> Option<u8> {
    match signal {
        SIGTERM if ignore_term => None,
        SIGTERM => Some(143),
        SIGINT => Some(130),
        SIGHUP => Some(129),
        SIGQUIT => {
            print_line(&format!("Full thread dump stand-in engine, pid {}:", std::process::id()));
            None
        }
        _ => None,
    }
}
