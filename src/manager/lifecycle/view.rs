//! The lifecycle as the status shows it.

use std::time::{Duration, UNIX_EPOCH};

use super::{Held, Intent, Lifecycle, Millis, Policy, Timer};
use stayput_api as api;
use stayput_api::{Desired, Exit, LastRequest, Reason, State};

/// The engines' exit code for an error of files, such as a keystore that an earlier start was writing
/// when it was ended.
const UNFINISHED_KEYSTORE: i32 = 74;

/// The last instant that RFC 3339 can write: the end of the year 9999.
pub const LAST_INSTANT: Millis = 253_402_300_799_999;

/// An instant as RFC 3339 in UTC.
pub fn timestamp(at: Millis) -> String {
    let since_epoch = Duration::from_millis(at.min(LAST_INSTANT));
    humantime::format_rfc3339_millis(UNIX_EPOCH + since_epoch).to_string()
}

impl Lifecycle {
    /// The settings of this lifecycle.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The phase of the engine.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The state that users see.
    pub fn state(&self) -> State {
        self.phase.state()
    }

    /// The desired state.
    pub fn desired(&self) -> Desired {
        self.intent.desired
    }

    /// The requested state of the engine, and how it came about.
    pub fn intent(&self) -> &Intent {
        &self.intent
    }

    /// Time since when [`Self::state`] holds.
    pub fn since(&self) -> Millis {
        self.since
    }

    /// The running timers, with the instants at which they are due.
    pub fn timers(&self) -> impl Iterator<Item = (Timer, Millis)> {
        self.timers.iter().map(|(timer, due)| (*timer, *due))
    }

    /// Number of times that the engine was spawned in this boot.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// Exit of the last run.
    pub fn last_exit(&self) -> Option<&Exit> {
        self.last_exit.as_ref()
    }

    /// True if the manager received TERM.
    pub fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// The current run, for the status and the journal.
    pub fn run(&self) -> Option<api::Run> {
        self.run.as_ref().map(|run| api::Run {
            id: run.id.clone(),
            pid: run.pid,
            started_at: timestamp(run.started_at),
            checksum: run.checksum.clone(),
            config: run.config,
            config_uncertain: run.config_uncertain,
            environment: run.environment.clone(),
        })
    }

    /// The last request that passed the sequence check.
    pub fn last_request(&self) -> Option<LastRequest> {
        let fencing = &self.intent.fencing;
        fencing.last.as_ref().map(|judged| LastRequest {
            sequence: fencing.sequence,
            kind: judged.request.kind(),
            accepted: judged.accepted,
            by: judged.by.clone(),
            at: timestamp(judged.at),
        })
    }

    /// The start that the manager makes by itself.
    pub fn resume(&self) -> Option<api::Resume> {
        self.intent.resume.as_ref().map(|resume| api::Resume {
            at: timestamp(resume.at),
            checksum: resume.checksum.clone(),
        })
    }

    /// Reason why the engine waits or is held, if it does.
    pub fn reason(&self) -> Option<Reason> {
        let failed = self.intent.held.as_ref().or(self.failure.as_ref());
        match (self.phase, failed) {
            (Phase::Failed, Some(Held { code, message })) => {
                Some(reason(code.as_str(), message.clone()))
            }
            _ if self.is_preparing() => {
                Some(reason("preparing", "the config is being verified and staged for a start"))
            }
            (Phase::Running, _) if !self.drains_ahead() => None,
            (phase, _) => Some(self.reason_of_phase(phase)),
        }
    }

    /// Reason of each phase, as far as nothing more specific is to be said.
    fn reason_of_phase(&self, phase: Phase) -> Reason {
        match phase {
            Phase::Stopped if self.intent.desired == Desired::Stopped => self.reason_of_stop(),
            Phase::Stopped if self.terminating => {
                reason("terminating", "the engine is gone and the manager is about to end")
            }
            Phase::Stopped => reason("not_started", "the engine is about to be started"),
            Phase::Failed => {
                reason("ended_by_itself", format!("the engine {}", self.how_it_ended()))
            }
            Phase::Backoff => {
                let due = self.timers.get(&Timer::Backoff);
                let due = due.map_or("now".to_owned(), |due| format!("at {}", timestamp(*due)));
                let failure = self.failure_message();
                reason("backoff", format!("{failure}; the engine is started again {due}"))
            }
            Phase::Starting => reason("starting", "the engine was spawned and is not ready yet"),
            Phase::Running => {
                let end = self.until(Timer::Drain);
                let why = "not ready on purpose, because a stop is prepared; ready again";
                reason("draining", format!("{why} {end}"))
            }
            Phase::Draining => {
                let end = self.until(Timer::Drain);
                reason("draining", format!("unready on purpose; the stop signal is sent {end}"))
            }
            Phase::Signalled => {
                let end = self.until(Timer::Grace);
                reason("stop_signal_sent", format!("the engine was asked to end; KILL {end}"))
            }
            Phase::Lingering => {
                let end = self.until(Timer::Grace);
                let why = "the launcher ended, the server did not yet; KILL";
                reason("server_lingers", format!("{why} {end}"))
            }
            Phase::Straggling => {
                let (left, end) = (self.left_behind(), self.until(Timer::TreeGrace));
                reason("stragglers", format!("the engine ended and left {left}; KILL {end}"))
            }
            Phase::Dumping => {
                let message = "grace period over; requesting a thread dump before SIGKILL";
                reason("thread_dump", message)
            }
            Phase::Killing => reason("killing", "KILL was sent to every process of the engine"),
            Phase::Stuck => reason("stuck", self.survivors()),
        }
    }

    fn reason_of_stop(&self) -> Reason {
        let asked = self.asked_by("stopped");
        match (&self.resume_refused, &self.intent.resume) {
            (Some(refused), _) => reason("resume_refused", refused.message.clone()),
            (None, Some(resume)) => {
                let at = timestamp(resume.at);
                let message =
                    format!("{asked}; started again at {at}, unless a request is accepted before");
                reason("stopped_by_request", message)
            }
            (None, None) => reason("stopped_by_request", asked),
        }
    }

    /// Reason why the engine does not run, for people.
    pub(super) fn failure_message(&self) -> String {
        match self.intent.held.as_ref().or(self.failure.as_ref()) {
            Some(held) => held.message.clone(),
            None => format!("the engine {}", self.how_it_ended()),
        }
    }

    /// Text such as "ended with code 78 after 1.2s", to follow "the engine".
    pub(super) fn how_it_ended(&self) -> String {
        let Some(exit) = &self.last_exit else {
            return "did not run".to_owned();
        };
        let ran = humantime::format_duration(Duration::from_millis(exit.ran_ms));
        if exit.shell_code().is_none() {
            return format!("ended together with its manager, at most {ran} after its start");
        }
        let how = match (exit.code, exit.signal) {
            (Some(code), _) => format!("ended with code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        let reason = match exit.reason {
            api::ExitReason::Oom => " (out of memory)",
            api::ExitReason::Stopped
            | api::ExitReason::Exited
            | api::ExitReason::Killed
            | api::ExitReason::EndedWithManager
            | api::ExitReason::Unknown => "",
        };
        let hint = if exit.code == Some(UNFINISHED_KEYSTORE) {
            " (a file that it cannot write; if its log says that a keystore.tmp already exists, an \
             earlier start was cut short: remove that file)"
        } else {
            ""
        };
        format!("{how}{reason} after {ran}{hint}")
    }

    fn asked_by(&self, what: &str) -> String {
        match &self.intent.asked {
            Some(asked) => format!("{what} by {} at {}", asked.by, timestamp(asked.at)),
            None => format!("{what} by request"),
        }
    }

    fn until(&self, timer: Timer) -> String {
        match self.timers.get(&timer) {
            Some(due) => format!("at {}", timestamp(*due)),
            None => "is left to the kubelet".to_owned(),
        }
    }

    /// The processes that KILL did not end.
    fn survivors(&self) -> String {
        match self.unseen() {
            Some(reason) => format!(
                "processes are left that may be the engine's and cannot be seen, so KILL could not \
                 reach them: {reason}; then replace the pod"
            ),
            None => format!(
                "KILL did not end {}: probably blocked in the kernel on a disk; repair that, or \
                 replace the pod",
                self.left_behind()
            ),
        }
    }

    fn unseen(&self) -> Option<&str> {
        self.ending.as_ref().and_then(super::Ending::unseen)
    }

    fn left_behind(&self) -> String {
        let stragglers = self.ending.as_ref().map_or(&[][..], super::Ending::stragglers);
        if let Some(reason) = self.unseen() {
            return format!("processes that cannot be seen ({reason})");
        }
        if stragglers.is_empty() {
            return "its processes".to_owned();
        }
        let named: Vec<String> = stragglers
            .iter()
            .take(5)
            .map(|process| format!("{} ({})", process.pid, process.command))
            .collect();
        let more = stragglers.len().saturating_sub(named.len());
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{rest}", named.join(", "))
    }
}

fn reason(code: &str, message: impl Into<String>) -> Reason {
    Reason { code: code.to_owned(), message: message.into() }
}

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
