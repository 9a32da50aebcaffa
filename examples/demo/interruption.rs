//! Ctrl-C and its like: a demo that is broken off fails at its next call, and then cleans up as after
//! any failure.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Waits for a signal, and ends the processes without which nothing goes on.
#[derive(Clone, Default)]
pub(crate) struct Interruption {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    came: bool,
    victims: Vec<Pid>,
}

impl Interruption {
    /// Takes the signals from now on.
    pub(crate) fn watch() -> Result<Self, String> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| error.to_string())?;
        let interruption = Self::default();
        let state = Arc::clone(&interruption.state);
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.came = true;
                for victim in &state.victims {
                    // Nobody has collected it yet, so the pid is still its own.
                    let _ = kill(*victim, Signal::SIGKILL);
                }
            }
        });
        Ok(interruption)
    }

    /// Kills this process when a signal comes, until [`Self::forgets`].
    pub(crate) fn kills(&self, victim: Pid) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.victims.push(victim);
        if state.came {
            let _ = kill(victim, Signal::SIGKILL);
        }
    }

    /// To be called before the process is collected: its pid may be another's after that.
    pub(crate) fn forgets(&self, victim: Pid) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.victims.retain(|pid| *pid != victim);
    }

    /// Whether one came.
    pub(crate) fn came(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).came
    }
}
