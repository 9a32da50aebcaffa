//! The phases of the engine, finer than the states in the status.

use stayput_api::State;

/// One phase of the engine's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// No process, as requested (or not yet started).
    Stopped,
    /// No process; waits for a request.
    Failed,
    /// No process; waits for [`super::Timer::Backoff`].
    Backoff,
    /// The engine was spawned, and is not ready yet.
    Starting,
    /// The engine was ready in this run.
    Running,
    /// The engine is unready on purpose; the stop signal is sent when the drain is over.
    Draining,
    /// The stop signal was sent to the leader, which has not ended yet.
    Signalled,
    /// The leader has ended, the server JVM has not (or the tree was not scanned yet).
    Lingering,
    /// Leader and server have ended, other processes have not; they were sent TERM.
    Straggling,
    /// The JVM prints its threads; KILL follows.
    Dumping,
    /// Every process was sent KILL.
    Killing,
    /// KILL did not end every process.
    Stuck,
}

impl Phase {
    /// Every phase, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Stopped,
        Self::Failed,
        Self::Backoff,
        Self::Starting,
        Self::Running,
        Self::Draining,
        Self::Signalled,
        Self::Lingering,
        Self::Straggling,
        Self::Dumping,
        Self::Killing,
        Self::Stuck,
    ];

    /// The state that users see.
    pub const fn state(self) -> State {
        match self {
            Self::Stopped => State::Stopped,
            Self::Failed => State::Failed,
            Self::Backoff => State::Backoff,
            Self::Starting => State::Starting,
            Self::Running => State::Running,
            Self::Draining | Self::Signalled | Self::Lingering | Self::Straggling => {
                State::Stopping
            }
            Self::Dumping | Self::Killing => State::Killing,
            Self::Stuck => State::Stuck,
        }
    }
}
