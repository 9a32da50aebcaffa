//! The settings of the lifecycle, fixed at the manager's start.

use super::Millis;

/// Fixed numbers of the lifecycle.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Without a readiness probe, an engine that has run this long counts as ready.
    pub const SETTLE_TIME: Millis = 10_000;
    /// How long a drain ahead of a stop takes, if no stop comes. As long as the reconciler drains at
    /// most.
    pub const DRAIN_AHEAD: Millis = 10_000;
    /// How long a JVM gets to print its threads before it is killed.
    pub const THREAD_DUMP_TIMEOUT: Millis = 500;
    /// How long KILL may take before a process counts as stuck.
    pub const KILL_TIMEOUT: Millis = 10_000;
    /// How long a request waits until the journal is written.
    pub const JOURNAL_WRITE_TIMEOUT: Millis = 5_000;
    /// How long to wait before a failed write of the journal is tried again.
    pub const JOURNAL_RETRY_INTERVAL: Millis = 10_000;
    /// An engine that ended together with its manager so often in a row before it was ready is held.
    pub const MAX_UNSEEN_ENDS: u32 = 3;
    /// How long to wait before a start after `resumeAfter` that was refused is tried again.
    pub const RESUME_RETRY_INTERVAL: Millis = 60_000;
    /// A timer that is later than this shows that the manager was frozen, or away.
    pub const LATENESS: Millis = 10_000;
    /// How long the start after `resumeAfter` then waits for those who could not reach the manager.
    pub const RESUME_GRACE: Millis = 60_000;
    /// How long an engine must have been up since it was ready before its config replaces the last
    /// good one.
    pub const PROOF_TIME: Millis = 60_000;
    /// How long a program that is to take over waits until a config is kept that has proved itself.
    pub const KEEP_TIMEOUT: Millis = 60_000;
    /// How long a config may take to be verified and staged.
    pub const PREPARE_TIMEOUT: Millis = 60_000;
    /// How long each step of an upgrade may take.
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

/// What to do when the engine ends by itself.
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
    /// Requests can come: a listener or a socket is configured.
    pub api: bool,
    /// Uid of our own pod, where known.
    pub pod: Option<String>,
    /// Signal that stops the engine.
    pub stop_signal: i32,
    /// From the stop signal to KILL on a requested stop.
    pub grace: Millis,
    /// From TERM to KILL for what outlives leader and server.
    pub tree_grace: Millis,
    /// Unready before the stop signal.
    pub drain: Millis,
    /// Limit for the whole stop when the manager itself must end; none: the kubelet's limit
    /// applies.
    pub termination_grace: Option<Millis>,
    /// Ask a JVM for its threads before KILL.
    pub thread_dump: bool,
    /// What to do when the engine ends without a request.
    pub on_exit: OnExit,
    /// Exit codes of a clean stop for which the manager exits with 0.
    pub success_exit: Vec<i32>,
    /// A readiness probe is configured; without one the engine is ready after [`Limits::SETTLE_TIME`].
    pub probe: bool,
    /// The engine reads a staged copy, which does not change while it runs.
    pub staged: bool,
    /// Keep the generation that last proved itself.
    pub keep_last_good: bool,
    /// Start an engine that comes back by itself on the generation it was last told to run.
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
