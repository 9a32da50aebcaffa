//! The settings of the lifecycle, fixed at the manager's start.

use super::Millis;

/// Fixed numbers of the lifecycle.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Time after which a running engine counts as ready if there is no readiness probe.
    pub const SETTLE_TIME: Millis = 10_000;
    /// Length of a drain ahead of a stop, if no stop comes. As long as the reconciler drains at most.
    pub const DRAIN_AHEAD: Millis = 10_000;
    /// Time that a JVM gets to print its threads before it is killed.
    pub const THREAD_DUMP_TIMEOUT: Millis = 500;
    /// Time that KILL may take before a process counts as stuck.
    pub const KILL_TIMEOUT: Millis = 10_000;
    /// Time that a request waits until the journal is written.
    pub const JOURNAL_WRITE_TIMEOUT: Millis = 5_000;
    /// Delay before a failed write of the journal is retried.
    pub const JOURNAL_RETRY_INTERVAL: Millis = 10_000;
    /// Number of ends in a row, together with the manager and before it was ready, that hold an engine.
    pub const MAX_UNSEEN_ENDS: u32 = 3;
    /// Delay before a refused start after `resumeAfter` is retried.
    pub const RESUME_RETRY_INTERVAL: Millis = 60_000;
    /// Lateness of a timer that shows that the manager was frozen, or away.
    pub const LATENESS: Millis = 10_000;
    /// Time that the start after `resumeAfter` then waits for callers that could not reach the manager.
    pub const RESUME_GRACE: Millis = 60_000;
    /// Time that an engine must have been up since it was ready before its config replaces the last good one.
    pub const PROOF_TIME: Millis = 60_000;
    /// Time that an upgrade waits until a config that has proved itself is kept.
    pub const KEEP_TIMEOUT: Millis = 60_000;
    /// Time that verifying and staging a config may take.
    pub const PREPARE_TIMEOUT: Millis = 60_000;
    /// Time that each step of an upgrade may take.
    pub const UPGRADE_TIMEOUT: Millis = 10_000;
    /// First wait before a restart in place; it doubles with each end within the window.
    pub const MIN_BACKOFF: Millis = 1_000;
    /// The longest wait before a restart in place.
    pub const MAX_BACKOFF: Millis = 60_000;
    /// Window in which ends are counted.
    pub const RESTART_WINDOW: Millis = 600_000;
    /// This many ends within the window lead to a restart; the next one is final.
    pub const MAX_RESTARTS: usize = 5;
}

/// Reaction to an engine that ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnExit {
    /// The manager ends with the engine's code and the container's restart policy applies.
    #[default]
    Exit,
    /// The engine is started again in place, with back-off.
    Restart,
    /// The manager stays up and waits for a request.
    Hold,
}

/// The settings that the lifecycle reads. All times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Policy {
    /// True if requests can come: a listener or a socket is configured.
    pub api: bool,
    /// Uid of our own pod, where known.
    pub pod: Option<String>,
    /// Signal that stops the engine.
    pub stop_signal: i32,
    /// Time from the stop signal to KILL on a requested stop.
    pub grace: Millis,
    /// Time from TERM to KILL for processes that outlive leader and server.
    pub tree_grace: Millis,
    /// Time that the engine is unready before the stop signal.
    pub drain: Millis,
    /// Limit for the whole stop when the manager itself must end; without one the kubelet's limit applies.
    pub termination_grace: Option<Millis>,
    /// True to ask a JVM for its threads before KILL.
    pub thread_dump: bool,
    /// Reaction to an engine that ends without a request.
    pub on_exit: OnExit,
    /// Exit codes of a clean stop for which the manager exits with 0.
    pub success_exit: Vec<i32>,
    /// True if a readiness probe is configured; without one the engine is ready after
    /// [`Limits::SETTLE_TIME`].
    pub probe: bool,
    /// True if the engine reads a staged copy, which does not change while it runs.
    pub staged: bool,
    /// True to keep the generation that last proved itself.
    pub keep_last_good: bool,
    /// True to start an engine that comes back by itself on the generation it was last told to run.
    pub pin_config: bool,
    /// Random per boot: spreads the restarts of many pods.
    pub seed: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            api: true,
            pod: None,
            stop_signal: 15,
            grace: 120_000,
            tree_grace: 2_000,
            drain: 0,
            termination_grace: None,
            thread_dump: true,
            on_exit: OnExit::Exit,
            success_exit: Vec::new(),
            probe: false,
            staged: false,
            keep_last_good: false,
            pin_config: false,
            seed: 0,
        }
    }
}
