//! The statuses of each manager, by long poll: no status is missed, and the times are the
//! manager's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use super::{moment, now};
use crate::support::api::Api;

/// Threads that poll until [`Statuses::end`].
pub(super) struct Statuses {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<History>>,
}

/// The statuses of one manager, and when they arrived.
#[derive(Debug)]
pub(super) struct History(Vec<(u64, Value)>);

/// The times of one node's restart.
#[derive(Debug)]
pub(super) struct RestartTimes {
    /// The stop was decided.
    pub(super) stop: u64,
    /// No process of the engine was left.
    pub(super) exited: u64,
    /// From the first step of the stop on.
    pub(super) took: u64,
    /// The start was decided.
    pub(super) start: u64,
    /// The new process was started.
    pub(super) spawned: u64,
    /// When the manager's probe was answered, as reported in the status.
    pub(super) ready: u64,
}

impl Statuses {
    pub(super) fn start(managers: impl IntoIterator<Item = Api>) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let poll = |api: Api| {
            let is_over = ended.clone();
            thread::spawn(move || {
                let mut statuses = vec![(now(), api.status())];
                while !is_over.load(Ordering::Relaxed) {
                    let cursor =
                        statuses[statuses.len() - 1].1["cursor"].as_str().expect("a cursor");
                    let answer = api.get(&format!("/es/status?after={cursor}&timeout=1s"));
                    match answer.status {
                        204 => {}
                        _ => statuses.push((now(), answer.expect(200))),
                    }
                }
                History(statuses)
            })
        };
        let threads = managers.into_iter().map(poll).collect();
        Self { ended, threads }
    }

    /// All statuses, in the managers' order.
    pub(super) fn end(self) -> Vec<History> {
        self.ended.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("the poller ends")).collect()
    }
}

impl History {
    /// The times of the restart from one run to the next.
    #[track_caller]
    pub(super) fn of_run(&self, old: &Value, new: &Value) -> RestartTimes {
        let judged = |kind: &str| {
            let is_one = |request: &&Value| request["kind"] == kind && request["accepted"] == true;
            let mut requests = self.0.iter().map(|(_, status)| &status["last_request"]);
            // The first status may still be about the start before.
            requests.rfind(is_one).unwrap_or_else(|| panic!("no {kind}: {self:?}"))
        };
        let first = |wished: &dyn Fn(&Value) -> bool| {
            let found = self.0.iter().find(|(_, status)| wished(status));
            found.unwrap_or_else(|| panic!("no such status: {self:?}"))
        };
        let exit = &first(&|status| status["last_exit"]["run"] == *old).1["last_exit"];
        let run = &first(&|status| status["run"]["id"] == *new).1["run"];
        let is_ready = |status: &Value| status["run"]["id"] == *new && status["ready"] == true;
        RestartTimes {
            stop: at(&judged("stop")["at"]),
            exited: at(&exit["at"]),
            took: exit["took_ms"].as_u64().expect("milliseconds"),
            start: at(&judged("start")["at"]),
            spawned: at(&run["started_at"]),
            ready: first(&is_ready).0,
        }
    }
}

fn at(text: &Value) -> u64 {
    moment(text.as_str().expect("a moment"))
}
