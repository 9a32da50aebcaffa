//! Changes in a restart that is under way. Each function takes the last report and returns the new one,
//! with its lines.

use std::collections::{BTreeMap, BTreeSet};

use super::line::Line;
use crate::cluster_view::ClusterView;
use crate::format::{after_colon, node_count, rounded_duration};
use crate::page::Tone;
use crate::pod_view::PodView;
use stayput_restart::{MemberStep, Outcome, Phase, Restart, Time};

/// The report about a restart under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UnderWay {
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
    pub(super) fn has_reported(&self, pod: &PodView) -> bool {
        self.nodes.contains_key(&pod.uid)
    }

    pub(super) fn with_finished(self, finished: BTreeSet<String>) -> Self {
        Self { finished, ..self }
    }
}

/// Compares a restart under way with the last report, which is absent if it has just begun.
pub(super) fn observe(
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
pub(super) fn finished_nodes(
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
    let Some(status) = &view.status else { return (before.blocked.clone(), None) };
    let report = &status.report;
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
    let finished =
        restart.members.iter().filter(|member| member.step == MemberStep::Finished).count();
    let status = view.status.as_ref();
    match status.and_then(|status| status.report.estimate.clone()) {
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
