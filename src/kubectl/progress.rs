//! Changes in a restart since the last report, a line for each change.
//!
//! Pure: [`observe`] takes the last report, the cluster and the time, and returns the new lines with the
//! new report.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use schemars::JsonSchema;
use serde::Serialize;
use stayput_restart::{HistoryEntry, Outcome, Phase, Restart, Time};

use crate::format::{NOT_PROCESSED, after_colon, node_count, rounded_duration};
use crate::view::pod::PodView;
use crate::view::{ClusterView, Tone, finished, tone_of_outcome};

/// Time in which the reconciler accepts a request, in milliseconds; usually it takes seconds. After that
/// a line advises the user to check that it runs.
const REQUEST_ACCEPTANCE_TIMEOUT: u64 = 15_000;

/// Time in which pods may still show their last phase after the ledger has closed a restart, in
/// milliseconds. Their last lines are worth waiting for.
const POD_UPDATE_TIMEOUT: u64 = 2_000;

/// The report about one restart so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reported {
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
pub(crate) struct Observation {
    pub(crate) reported: Reported,
    pub(crate) lines: Vec<Line>,
    pub(crate) state: State,
}

/// The state of the watched restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// The restart has not begun, or is under way.
    Open,
    Ended(HistoryEntry),
    /// The restart with this id will never begin.
    Lost(String),
}

impl Reported {
    /// An empty report about the restart with this id, or else the one under way, or else the next.
    pub(crate) fn new(id: Option<String>) -> Self {
        Self { id, ..Self::default() }
    }

    /// True if somebody has requested the watched restart.
    pub(crate) const fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// Milliseconds until the next observation even if nothing changes.
    pub(crate) fn next_check_in(&self, now: Time) -> Option<u64> {
        if let Some(ended_at) = self.ended_at {
            return Some(ended_at.plus(POD_UPDATE_TIMEOUT).since(now).max(1));
        }
        let requested_at = self.requested_at.filter(|_| !self.acceptance_overdue)?;
        Some(requested_at.plus(REQUEST_ACCEPTANCE_TIMEOUT).since(now).max(1))
    }

    /// The line about the reason for waiting, if it is new.
    fn waiting(&mut self, line: Line) -> Option<Line> {
        let before = self.waiting.replace(line.message.clone());
        (before.as_ref() != Some(&line.message)).then_some(line)
    }
}

/// Compares the cluster with the last report.
pub(crate) fn observe(mut reported: Reported, view: &ClusterView, now: Time) -> Observation {
    let id = reported.id.clone().or_else(|| current_or_next(view));
    reported.is_requested = id.as_deref().is_some_and(|id| is_requested(view, id));
    reported.id.clone_from(&id);
    let Some(id) = id else {
        let idle = "no restart is under way; waiting for the next one";
        let line = reported.waiting(Line::cluster(now, Tone::Neutral, idle.to_owned()));
        return Observation::open(reported, line.into_iter().collect());
    };
    if let Some(restart) = view.restart().filter(|restart| restart.request.id == id) {
        let begun = reported.under_way.is_none().then(|| begun(restart, now));
        let mut lines: Vec<Line> = begun.into_iter().collect();
        lines.extend(reported.under_way.get_or_insert_default().observe(view, restart, now));
        reported.requested_at = None;
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
fn ended(
    mut reported: Reported,
    view: &ClusterView,
    entry: &HistoryEntry,
    now: Time,
) -> Observation {
    let under_way = reported.under_way.get_or_insert_default();
    let mut lines = under_way.finished_nodes(view, &entry.id, now);
    let ended_at = *reported.ended_at.get_or_insert(now);
    // A phase of the pod was reported, and it still has one.
    let is_behind = |pod: &PodView| pod.phase.is_some() && under_way.nodes.contains_key(&pod.uid);
    if view.pods.iter().any(is_behind) && now.since(ended_at) < POD_UPDATE_TIMEOUT {
        return Observation::open(reported, lines);
    }
    lines.push(Line::ended(now, entry));
    Observation { reported, lines, state: State::Ended(entry.clone()) }
}

/// The observation of a request that is not made or not accepted yet, or waits in the queue.
fn not_begun(mut reported: Reported, view: &ClusterView, id: &str, now: Time) -> Observation {
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
    let mut lines: Vec<Line> = reported.waiting(line).into_iter().collect();
    reported.requested_at = is_requested.then(|| reported.requested_at.unwrap_or(now));
    let is_overdue =
        reported.requested_at.is_some_and(|at| now.since(at) >= REQUEST_ACCEPTANCE_TIMEOUT);
    if is_overdue && !reported.acceptance_overdue {
        let text = match view.status {
            None => NOT_PROCESSED,
            Some(_) => "the request is not accepted yet; check that stayput-reconciler runs",
        };
        lines.push(Line::trouble(now, Tone::Warning, text.to_owned()));
    }
    reported.acceptance_overdue = is_overdue;
    Observation::open(reported, lines)
}

/// The report about a restart under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnderWay {
    /// The nodes whose phase was reported, by the uid of their pods.
    nodes: BTreeMap<String, NodePhase>,
    /// Uids of the pods whose outcome was reported.
    finished: BTreeSet<String>,
    /// Code and message of the rule or fault that blocks the restart.
    blocked: Option<(String, String)>,
    /// Number of finished members at the last report of the remaining time.
    finished_at_estimate: usize,
    /// The outcome the restart will have, once it stops no further node.
    ending: Option<Outcome>,
}

/// Phase of a node, and the reason why it waits there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodePhase {
    phase: Phase,
    message: Option<String>,
}

/// A line for the begin of a restart.
fn begun(restart: &Restart, now: Time) -> Line {
    let request = &restart.request;
    let by = request.by.as_ref().map(|by| format!(", requested by {by}")).unwrap_or_default();
    let (strategy, nodes) = (request.strategy.as_str(), node_count(restart.members.len()));
    let message = format!("{strategy} restart {} of {nodes}{by}", request.id);
    Line::cluster(now, Tone::Neutral, message)
}

/// Each function takes what has changed into the report, and returns lines about it.
impl UnderWay {
    fn observe(&mut self, view: &ClusterView, restart: &Restart, now: Time) -> Vec<Line> {
        let mut lines = self.finished_nodes(view, &restart.request.id, now);
        lines.extend(self.node_phases(view, restart, now));
        lines.extend(self.blocked(view, now));
        lines.extend(self.estimate(view, restart, now));
        lines.extend(self.ending(restart, now));
        lines
    }

    /// Lines for nodes that are finished: an annotation on the pod has the outcome.
    fn finished_nodes(&mut self, view: &ClusterView, id: &str, now: Time) -> Vec<Line> {
        let mut lines = Vec::new();
        for pod in &view.pods {
            let Some(last) = pod.last_restart.as_ref().filter(|last| last.id == id) else {
                continue;
            };
            if pod.phase.is_none() && self.finished.insert(pod.uid.clone()) {
                let tone = tone_of_outcome(last.outcome);
                let (outcome, reason) = (last.outcome.as_str(), after_colon(&last.reason));
                let message = format!("{outcome} after {}{reason}", rounded_duration(last.seconds));
                lines.push(Line::node(now, &pod.node, tone, message));
            }
        }
        lines
    }

    /// Lines for nodes under way: their phase, and the reason why they wait.
    fn node_phases(&mut self, view: &ClusterView, restart: &Restart, now: Time) -> Vec<Line> {
        let mut lines = Vec::new();
        for pod in &view.pods {
            let mut members = restart.members.iter();
            if !members.any(|member| member.pod_uid == pod.uid && member.is_under_way()) {
                continue;
            }
            let phase = pod.phase.as_deref().and_then(|value| Phase::parse(value).ok());
            let Some(phase) = phase.filter(|phase| !phase.is_scheduled()) else { continue };
            let report = view.node_report(&pod.node);
            // The status may be a moment older than the pod: then its message is about the phase before.
            let report = report.filter(|report| report.phase.as_deref() == Some(phase.as_str()));
            let message = report.and_then(|report| report.message.clone());
            let is_blocked = report.is_some_and(|report| report.blocked_by.is_some());
            let current = NodePhase { phase, message };
            let before = self.nodes.get(&pod.uid);
            lines.extend(phase_line(before, &current, &pod.node, is_blocked, now));
            self.nodes.insert(pod.uid.clone(), current);
        }
        lines
    }

    fn blocked(&mut self, view: &ClusterView, now: Time) -> Option<Line> {
        let report = view.report()?;
        let code = report.blocked.clone();
        let current = code.map(|code| (code, report.message.clone().unwrap_or_default()));
        if current == self.blocked {
            return None;
        }
        let line = match &current {
            Some((code, message)) => {
                let message = format!("blocked by {code}{}", after_colon(message));
                Line::cluster(now, Tone::Warning, message)
            }
            None => Line::cluster(now, Tone::Neutral, "no longer blocked".to_owned()),
        };
        self.blocked = current;
        Some(line)
    }

    /// A line with the remaining time, for each finished node rather than for each minute that passes.
    fn estimate(&mut self, view: &ClusterView, restart: &Restart, now: Time) -> Option<Line> {
        let estimate = view.report()?.estimate.clone()?;
        let before = mem::replace(&mut self.finished_at_estimate, finished(restart));
        let is_new = before != self.finished_at_estimate;
        is_new.then(|| Line::cluster(now, Tone::Neutral, estimate))
    }

    fn ending(&mut self, restart: &Restart, now: Time) -> Option<Line> {
        let ending = restart.ending.as_ref()?;
        if self.ending.replace(ending.outcome) == Some(ending.outcome) {
            return None;
        }
        let (outcome, reason) = (ending.outcome.as_str(), after_colon(&ending.reason));
        let message =
            format!("no further node is stopped; the restart will end as {outcome}{reason}");
        let tone = if ending.outcome == Outcome::Done { Tone::Neutral } else { Tone::Bad };
        Some(Line::cluster(now, tone, message))
    }
}

fn phase_line(
    before: Option<&NodePhase>,
    current: &NodePhase,
    node: &str,
    is_blocked: bool,
    now: Time,
) -> Option<Line> {
    let is_new_phase = before.map(|before| before.phase) != Some(current.phase);
    let message_before = before.and_then(|before| before.message.as_ref());
    let is_new_message = current.message.is_some() && message_before != current.message.as_ref();
    if !is_new_phase && !is_new_message {
        return None;
    }
    let tone = if is_blocked { Tone::Warning } else { Tone::Neutral };
    let message = after_colon(current.message.as_deref().unwrap_or_default());
    Some(Line::node(now, node, tone, format!("{}{message}", current.phase.as_str())))
}

/// One line of `watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ProgressOutput")]
pub(crate) struct Line {
    /// When the change was observed.
    #[schemars(with = "String")]
    pub(crate) time: Time,
    /// The node it is about; absent for the cluster as a whole.
    pub(crate) node: Option<String>,
    /// The change, for people.
    pub(crate) message: String,
    /// In the last line: how the restart ended.
    pub(crate) ended: Option<HistoryEntry>,
    #[serde(skip)]
    pub(crate) tone: Tone,
    /// True if the line gives a reason why there may be no further line, or ends such a reason.
    #[serde(skip)]
    pub(crate) is_trouble: bool,
}

impl Line {
    pub(crate) const fn cluster(time: Time, tone: Tone, message: String) -> Self {
        Self { time, node: None, message, ended: None, tone, is_trouble: false }
    }

    /// A line with a reason why there may be no further line, or with the end of such a reason.
    pub(crate) fn trouble(time: Time, tone: Tone, message: String) -> Self {
        Self { is_trouble: true, ..Self::cluster(time, tone, message) }
    }

    pub(crate) fn node(time: Time, node: &str, tone: Tone, message: String) -> Self {
        let node = Some(node.to_owned());
        Self { node, ..Self::cluster(time, tone, message) }
    }

    /// The last line.
    pub(crate) fn ended(time: Time, entry: &HistoryEntry) -> Self {
        let message = format!(
            "restart {} {}: {} in {}{}",
            entry.id,
            entry.outcome.as_str(),
            node_count(entry.nodes as usize),
            rounded_duration(entry.seconds),
            after_colon(&entry.reason)
        );
        let tone = tone_of_outcome(entry.outcome);
        Self { ended: Some(entry.clone()), ..Self::cluster(time, tone, message) }
    }
}
