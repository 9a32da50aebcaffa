//! Ctrl-C and other signals: an interrupted demo fails at its next call, and then cleans up as after
//! any failure.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::Result;

/// Waits for a signal, and then kills the processes that the demo needs to continue.
#[derive(Clone, Default)]
pub(crate) struct Interruption {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    came: bool,
    processes: Vec<Pid>,
}

impl Interruption {
    /// Starts to handle the signals.
    pub(crate) fn watch() -> Result<Self> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| error.to_string())?;
        let interruption = Self::default();
        let state = Arc::clone(&interruption.state);
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.came = true;
                for process in &state.processes {
                    // It has not been waited for, so no other process has its pid.
                    let _ = kill(*process, Signal::SIGKILL);
                }
            }
        });
        Ok(interruption)
    }

    /// Kills this process when a signal comes, until [`Self::unregister`].
    pub(crate) fn register(&self, process: Pid) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.processes.push(process);
        if state.came {
            let _ = kill(process, Signal::SIGKILL);
        }
    }

    /// Call it before the process is waited for: after that, another process may get its pid.
    pub(crate) fn unregister(&self, process: Pid) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.processes.retain(|pid| *pid != process);
    }

    /// Whether a signal came.
    pub(crate) fn came(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).came
    }
}
