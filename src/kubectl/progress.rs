//! Changes in a restart since the last report, a line for each change.
//!
//! Pure: [`observe`] takes the last report, the cluster and the time, and returns the new lines with the
//! new report.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use stayput_restart::{HistoryEntry, Outcome, Phase, Restart, Time};

use crate::format::{NOT_PROCESSED, after_colon, node_count, rounded_duration};
use crate::view::pod::PodView;
use crate::view::{ClusterView, Tone, finished};

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

    /// The report with a line about the reason for waiting, if the line is new.
    fn waiting(self, line: Line) -> (Self, Vec<Line>) {
        if self.waiting.as_ref() == Some(&line.message) {
            return (self, Vec::new());
        }
        (Self { waiting: Some(line.message.clone()), ..self }, vec![line])
    }
}

/// Compares the cluster with the last report.
pub(crate) fn observe(before: Reported, view: &ClusterView, now: Time) -> Observation {
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
        let (under_way, lines) = observe_under_way(reported.under_way.as_ref(), view, restart, now);
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
    let (finished, mut lines) = finished_nodes(&under_way, view, &entry.id, now);
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

impl UnderWay {
    /// True if a phase of this pod was reported.
    fn has_reported(&self, pod: &PodView) -> bool {
        self.nodes.contains_key(&pod.uid)
    }

    fn with_finished(self, finished: BTreeSet<String>) -> Self {
        Self { finished, ..self }
    }
}

/// Compares a restart under way with the last report, which is absent if it has just begun.
fn observe_under_way(
    before: Option<&UnderWay>,
    view: &ClusterView,
    restart: &Restart,
    now: Time,
) -> (UnderWay, Vec<Line>) {
    let begun = before.is_none().then(|| begun(restart, now));
    let nothing = UnderWay::default();
    let before = before.unwrap_or(&nothing);
    let (finished, finished_lines) = finished_nodes(before, view, &restart.request.id, now);
    let (nodes, node_lines) = node_phases(before, view, restart, now);
    let (blocked, blocked_line) = blocked(before, view, now);
    let (finished_at_estimate, estimate_line) = estimate(before, view, restart, now);
    let (ending, ending_line) = ending(before, restart, now);
    let lines = begun.into_iter().chain(finished_lines).chain(node_lines);
    let lines = lines.chain(blocked_line).chain(estimate_line).chain(ending_line).collect();
    (UnderWay { nodes, finished, blocked, finished_at_estimate, ending }, lines)
}

fn begun(restart: &Restart, now: Time) -> Line {
    let request = &restart.request;
    let by = request.by.as_ref().map(|by| format!(", requested by {by}")).unwrap_or_default();
    let (strategy, nodes) = (request.strategy.as_str(), node_count(restart.members.len()));
    let message = format!("{strategy} restart {} of {nodes}{by}", request.id);
    Line::cluster(now, Tone::Neutral, message)
}

/// Lines for nodes that are finished: an annotation on the pod has the outcome.
fn finished_nodes(
    before: &UnderWay,
    view: &ClusterView,
    id: &str,
    now: Time,
) -> (BTreeSet<String>, Vec<Line>) {
    let mut finished = before.finished.clone();
    let mut lines = Vec::new();
    for pod in &view.pods {
        let Some(last) = pod.last_restart.as_ref().filter(|last| last.id == id) else { continue };
        if pod.phase.is_none() && finished.insert(pod.uid.clone()) {
            let tone = if last.outcome == Outcome::Done { Tone::Good } else { Tone::Bad };
            let (outcome, reason) = (last.outcome.as_str(), after_colon(&last.reason));
            let message = format!("{outcome} after {}{reason}", rounded_duration(last.seconds));
            lines.push(Line::node(now, &pod.node, tone, message));
        }
    }
    (finished, lines)
}

/// Lines for nodes under way: their phase, and the reason why they wait.
fn node_phases(
    before: &UnderWay,
    view: &ClusterView,
    restart: &Restart,
    now: Time,
) -> (BTreeMap<String, NodePhase>, Vec<Line>) {
    let mut nodes = before.nodes.clone();
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
        lines.extend(phase_line(nodes.get(&pod.uid), &current, &pod.node, is_blocked, now));
        nodes.insert(pod.uid.clone(), current);
    }
    (nodes, lines)
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

fn blocked(
    before: &UnderWay,
    view: &ClusterView,
    now: Time,
) -> (Option<(String, String)>, Option<Line>) {
    let Some(report) = view.report() else { return (before.blocked.clone(), None) };
    let code = report.blocked.clone();
    let current = code.map(|code| (code, report.message.clone().unwrap_or_default()));
    if current == before.blocked {
        return (current, None);
    }
    let line = match &current {
        Some((code, message)) => {
            let message = format!("blocked by {code}{}", after_colon(message));
            Line::cluster(now, Tone::Warning, message)
        }
        None => Line::cluster(now, Tone::Neutral, "no longer blocked".to_owned()),
    };
    (current, Some(line))
}

/// A line with the remaining time, for each finished node rather than for each minute that passes.
fn estimate(
    before: &UnderWay,
    view: &ClusterView,
    restart: &Restart,
    now: Time,
) -> (usize, Option<Line>) {
    let finished = finished(restart);
    match view.report().and_then(|report| report.estimate.clone()) {
        Some(estimate) if finished != before.finished_at_estimate => {
            (finished, Some(Line::cluster(now, Tone::Neutral, estimate)))
        }
        Some(_) | None => (before.finished_at_estimate, None),
    }
}

fn ending(before: &UnderWay, restart: &Restart, now: Time) -> (Option<Outcome>, Option<Line>) {
    let Some(ending) = &restart.ending else { return (before.ending, None) };
    if before.ending == Some(ending.outcome) {
        return (before.ending, None);
    }
    let (outcome, reason) = (ending.outcome.as_str(), after_colon(&ending.reason));
    let message = format!("no further node is stopped; the restart will end as {outcome}{reason}");
    let tone = if ending.outcome == Outcome::Done { Tone::Neutral } else { Tone::Bad };
    (Some(ending.outcome), Some(Line::cluster(now, tone, message)))
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
        let tone = if entry.outcome == Outcome::Done { Tone::Good } else { Tone::Bad };
        Self { ended: Some(entry.clone()), ..Self::cluster(time, tone, message) }
    }
}
