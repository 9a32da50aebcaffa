//! Limits of all waiting: a deadline, or a signal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::WarmError;

/// Deadline and signal that end all waiting.
#[derive(Debug, Clone)]
pub(super) struct Until {
    deadline: Option<Instant>,
    /// The signal that was received; 0 before.
    signal: Arc<AtomicUsize>,
}

impl Until {
    /// Receives TERM and INT from now on. As PID 1, a process without handlers does not end by them:
    /// the kubelet would wait for the pod's whole grace.
    pub(super) fn new(deadline: Option<Instant>) -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for (number, shown) in [(libc::SIGTERM, 15), (libc::SIGINT, 2)] {
            signal_hook::flag::register_usize(number, Arc::clone(&signal), shown)?;
        }
        Ok(Self { deadline, signal })
    }

    /// Limits with this deadline, and without a signal.
    #[cfg(test)]
    pub(super) fn of(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), signal: Arc::default() }
    }

    /// These limits, and this instant at the latest.
    pub(super) fn at_most(&self, limit: Instant) -> Self {
        let deadline = self.deadline.map_or(limit, |deadline| deadline.min(limit));
        Self { deadline: Some(deadline), signal: Arc::clone(&self.signal) }
    }

    /// The time that is left, and `limit` at most; `None` if all waiting is over.
    pub(super) fn left(&self, limit: Duration) -> Option<Duration> {
        if self.signalled().is_err() {
            return None;
        }
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(Some(limit), |left| (!left.is_zero()).then(|| left.min(limit)))
    }

    /// # Errors
    /// A signal was received.
    pub(super) fn signalled(&self) -> Result<(), WarmError> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(WarmError::Signal(u8::try_from(signal).unwrap_or(u8::MAX))),
        }
    }
}
