//! Changes in a restart since the last report, a line for each change.
//!
//! Pure: [`observe`] takes the last report, the cluster and the time, and returns the new lines with the
//! new report.

mod line;
mod under_way;

use super::cluster_view::ClusterView;
use super::page::Tone;
use super::pages::NOT_PROCESSED;
use super::pod_view::PodView;
use stayput_restart::{HistoryEntry, Time};

pub(super) use line::Line;
use under_way::UnderWay;

/// Time in which the reconciler accepts a request, in milliseconds; usually it takes seconds. After that
/// a line advises the user to check that it runs.
const REQUEST_ACCEPTANCE_TIMEOUT: u64 = 15_000;

/// Time in which pods may still show their last phase after the ledger has closed a restart, in
/// milliseconds. Their last lines are worth waiting for.
const POD_UPDATE_TIMEOUT: u64 = 2_000;

/// The report about one restart so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reported {
    /// Id of the watched restart, once there is one.
    id: Option<String>,
    /// True if somebody has requested the restart.
    is_requested: bool,
    /// The line about a restart that is not under way yet.
    waiting: Option<String>,
    /// Time at which the request was first seen, while the reconciler has not accepted it yet.
    requested_at: Option<Time>,
    /// True if a line has advised the user to check that the reconciler runs.
    acceptance_overdue: bool,
    /// The report about the restart under way, once it is.
    under_way: Option<UnderWay>,
    /// Time at which the restart was first seen in the history.
    ended_at: Option<Time>,
}

/// Result of one observation.
#[derive(Debug)]
pub(super) struct Observation {
    pub(super) reported: Reported,
    pub(super) lines: Vec<Line>,
    pub(super) state: State,
}

/// The state of the watched restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// The restart has not begun, or is under way.
    Open,
    Ended(HistoryEntry),
    /// The restart with this id will never begin.
    Lost(String),
}

impl Reported {
    /// An empty report about the restart with this id, or else the one under way, or else the next.
    pub(super) fn new(id: Option<String>) -> Self {
        Self { id, ..Self::default() }
    }

    /// True if somebody has requested the watched restart.
    pub(super) const fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// Milliseconds until the next observation even if nothing changes.
    pub(super) fn next_check_in(&self, now: Time) -> Option<u64> {
        if let Some(ended_at) = self.ended_at {
            return Some(ended_at.plus(POD_UPDATE_TIMEOUT).since(now).max(1));
        }
        let requested_at = self.requested_at.filter(|_| !self.acceptance_overdue)?;
        Some(requested_at.plus(REQUEST_ACCEPTANCE_TIMEOUT).since(now).max(1))
    }

    /// The report with a line about the reason for waiting, if the line is new.
    fn waiting(self, line: Line) -> (Self, Vec<Line>) {
        if self.waiting.as_ref() == Some(&line.message) {
            return (self, Vec::new());
        }
        (Self { waiting: Some(line.message.clone()), ..self }, vec![line])
    }
}

/// Compares the cluster with the last report.
pub(super) fn observe(before: Reported, view: &ClusterView, now: Time) -> Observation {
    let id = before.id.clone().or_else(|| current_or_next(view));
    let is_requested = id.as_deref().is_some_and(|id| is_requested(view, id));
    let reported = Reported { id: id.clone(), is_requested, ..before };
    let Some(id) = id else {
        let idle = "no restart is under way; waiting for the next one";
        let line = Line::cluster(now, Tone::Neutral, idle.to_owned());
        let (reported, lines) = reported.waiting(line);
        return Observation::open(reported, lines);
    };
    if let Some(restart) = view.restart().filter(|restart| restart.request.id == id) {
        let (under_way, lines) =
            under_way::observe(reported.under_way.as_ref(), view, restart, now);
        let reported = Reported { under_way: Some(under_way), requested_at: None, ..reported };
        return Observation::open(reported, lines);
    }
    if let Some(entry) = view.history().iter().rfind(|entry| entry.id == id) {
        return ended(reported, view, entry, now);
    }
    if reported.under_way.is_some() || is_lost(view, &id) {
        return Observation { reported, lines: Vec::new(), state: State::Lost(id) };
    }
    not_begun(reported, view, &id, now)
}

impl Observation {
    const fn open(reported: Reported, lines: Vec<Line>) -> Self {
        Self { reported, lines, state: State::Open }
    }
}

fn current_or_next(view: &ClusterView) -> Option<String> {
    let current = view.restart().map(|restart| restart.request.id.clone());
    current.or_else(|| Some(view.requested()?.ok()?.id))
}

fn is_requested(view: &ClusterView, id: &str) -> bool {
    let requested = view.requested().and_then(Result::ok);
    view.has_handled(id) || requested.is_some_and(|request| request.id == id)
}

/// True if the reconciler has accepted the request and has forgotten it.
fn is_lost(view: &ClusterView, id: &str) -> bool {
    view.has_handled(id) && view.queued().is_none_or(|queued| queued.id != id)
}

/// The observation of a restart that is in the history. Its pods may be a moment behind.
fn ended(before: Reported, view: &ClusterView, entry: &HistoryEntry, now: Time) -> Observation {
    let under_way = before.under_way.clone().unwrap_or_default();
    let (finished, mut lines) = under_way::finished_nodes(&under_way, view, &entry.id, now);
    let ended_at = before.ended_at.unwrap_or(now);
    let is_behind = |pod: &PodView| pod.phase.is_some() && under_way.has_reported(pod);
    let wait_for_pods = view.pods.iter().any(is_behind) && now.since(ended_at) < POD_UPDATE_TIMEOUT;
    let reported = Reported {
        under_way: before.under_way.map(|under_way| under_way.with_finished(finished)),
        ended_at: Some(ended_at),
        ..before
    };
    if wait_for_pods {
        return Observation::open(reported, lines);
    }
    lines.push(Line::ended(now, entry));
    Observation { reported, lines, state: State::Ended(entry.clone()) }
}

/// The observation of a request that is not made or not accepted yet, or waits in the queue.
fn not_begun(before: Reported, view: &ClusterView, id: &str, now: Time) -> Observation {
    let is_queued = view.queued().is_some_and(|queued| queued.id == id);
    let requested = view.requested().and_then(Result::ok);
    let is_requested = requested.is_some_and(|request| request.id == id);
    let neutral = |message| Line::cluster(now, Tone::Neutral, message);
    let line = match (is_queued, view.restart()) {
        (true, Some(restart)) => {
            neutral(format!("restart {id} waits until restart {} has ended", restart.request.id))
        }
        (true, None) => neutral(format!("restart {id} is about to begin")),
        (false, _) if is_requested => neutral(format!("restart {id} is requested")),
        (false, _) => {
            let message = format!("no restart {id} is known; waiting for it");
            Line::trouble(now, Tone::Warning, message)
        }
    };
    let was_overdue = before.acceptance_overdue;
    let requested_at = is_requested.then(|| before.requested_at.unwrap_or(now));
    let acceptance_overdue =
        requested_at.is_some_and(|at| now.since(at) >= REQUEST_ACCEPTANCE_TIMEOUT);
    let (reported, mut lines) = before.waiting(line);
    if acceptance_overdue && !was_overdue {
        let text = match view.status {
            None => NOT_PROCESSED,
            Some(_) => "the request is not accepted yet; check that stayput-reconciler runs",
        };
        lines.push(Line::trouble(now, Tone::Warning, text.to_owned()));
    }
    Observation::open(Reported { requested_at, acceptance_overdue, ..reported }, lines)
}
