//! The log of decisions: which node is next, in which state of the cluster, and what the others wait for; and
//! the changes between two ledgers, which also count in the metrics. A line is logged when it changes, not at
//! each look.

use std::collections::{BTreeMap, BTreeSet};

use stayput_restart::{
    Action, Code, Engine, HistoryEntry, Ledger, Member, MemberStep, Node, Plan, Snapshot, Time,
    Waiting, are_master_eligible,
};

use crate::metrics::Metrics;

/// Limit of the nodes that one line names.
const MAX_NAMED: usize = 5;

/// The decisions that were logged last.
#[derive(Debug, Default)]
pub(super) struct DecisionLog {
    /// Reason why each node waits; the key `None` is the cluster as a whole.
    waits: BTreeMap<Option<String>, Code>,
    /// Uids of the pods whose turn it is.
    turns: BTreeSet<String>,
}

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A node's turn begins.
    Turn {
        /// Id of the restart.
        restart: String,
        node: String,
        /// Group of the node by its roles: `dataOnly`, `dataAndMaster`, `masterOnly` or `other`; `unknown`
        /// without an engine.
        group: &'static str,
        /// State of the cluster at that time.
        state: String,
    },
    /// Nodes that begin to wait for the same reason.
    Wait {
        code: Code,
        /// Names of the first few, and the number of the others; empty for the cluster as a whole.
        nodes: String,
        /// Message of the first node.
        message: String,
    },
}

impl DecisionLog {
    /// The lines that a plan adds.
    pub(super) fn lines(&mut self, snapshot: &Snapshot, plan: &Plan) -> Vec<Line> {
        let mut lines = self.turns(snapshot);
        lines.extend(self.waits(plan));
        lines
    }

    fn turns(&mut self, snapshot: &Snapshot) -> Vec<Line> {
        let ledger = &snapshot.ledger;
        let restart = ledger.restart.as_ref().map_or("", |restart| restart.request.id.as_str());
        let engine = snapshot.engine.as_ref().ok();
        let line = |node: &str| Line::Turn {
            restart: restart.to_owned(),
            node: node.to_owned(),
            group: group(engine, node),
            state: state(engine),
        };
        let new = ledger.under_way().filter(|member| !self.turns.contains(&member.pod_uid));
        let lines = new.map(|member| line(&member.node)).collect();
        self.turns = ledger.under_way().map(|member| member.pod_uid.clone()).collect();
        lines
    }

    fn waits(&mut self, plan: &Plan) -> Vec<Line> {
        let is_told = |waiting: &&Waiting| {
            !matches!(waiting.code, Code::Idle | Code::Finished | Code::Recording)
        };
        let told = || plan.waiting.iter().filter(is_told);
        let mut new: BTreeMap<Code, Vec<&Waiting>> = BTreeMap::new();
        for waiting in told().filter(|one| self.waits.get(&one.node) != Some(&one.code)) {
            new.entry(waiting.code).or_default().push(waiting);
        }
        let line = |(code, waits): (Code, Vec<&Waiting>)| Line::Wait {
            code,
            nodes: named(&waits.iter().filter_map(|one| one.node.as_deref()).collect::<Vec<_>>()),
            message: waits[0].message.to_string(),
        };
        let lines = new.into_iter().map(line).collect();
        self.waits = told().map(|waiting| (waiting.node.clone(), waiting.code)).collect();
        lines
    }
}

fn named(nodes: &[&str]) -> String {
    let first = nodes.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(" ");
    match nodes.len().saturating_sub(MAX_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn group(engine: Option<&Engine>, name: &str) -> &'static str {
    let listed = engine.and_then(|engine| engine.nodes.iter().find(|node| node.name == name));
    match listed.map(|node| (node.holds_data(), are_master_eligible(&node.roles))) {
        Some((true, false)) => "dataOnly",
        Some((true, true)) => "dataAndMaster",
        Some((false, true)) => "masterOnly",
        Some((false, false)) => "other",
        None => "unknown",
    }
}

/// Health, nodes and masters as the engine has them, in one line.
fn state(engine: Option<&Engine>) -> String {
    let Some(engine) = engine else { return "the engine does not answer".to_owned() };
    let is_master = |node: &&Node| are_master_eligible(&node.roles);
    let (nodes, masters) = (engine.nodes.len(), engine.nodes.iter().filter(is_master).count());
    match &engine.health {
        Ok(health) => format!(
            "{:?}, {} initializing, {} relocating, {} unassigned; {nodes} nodes, {masters} of them master-eligible",
            health.color, health.initializing, health.relocating, health.unassigned
        ),
        Err(unknown) => {
            format!(
                "health unknown: {}; {nodes} nodes, {masters} of them master-eligible",
                unknown.message
            )
        }
    }
}

/// Writes the lines to the log.
pub(super) fn log(cluster: &str, lines: &[Line]) {
    for line in lines {
        match line {
            Line::Turn { restart, node, group, state } => {
                tracing::info!(cluster, restart, node, group, "next node; the cluster is {state}");
            }
            Line::Wait { code, nodes, message } => {
                tracing::info!(cluster, code = code.as_str(), nodes, "waiting: {message}");
            }
        }
    }
}

/// Time at which the engine of each member under way was first started again, by uid of the pod. Lost with
/// the process: then the two phases of such a member are not measured.
#[derive(Debug, Clone, Default)]
pub(super) struct StartTimes(BTreeMap<String, Time>);

/// One change of a ledger.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Transition {
    /// A member entered a step.
    Step { restart: String, node: String, step: &'static str, stop: u64, start: u64 },
    /// The engine of a member was started again, so that its stop is over. `seconds`: since it got its slot.
    Stopped { strategy: &'static str, seconds: f64 },
    /// A member is finished. `seconds`: since its slot; `start`: seconds since its engine was started again.
    Finished { restart: String, node: String, strategy: &'static str, seconds: f64, start: f64 },
    /// A restart has ended.
    Ended(HistoryEntry),
}

/// The changes that these actions made, and the start times after them.
pub(super) fn of_actions(
    actions: &[Action],
    ledger: &Ledger,
    now: Time,
    mut starts: StartTimes,
) -> (Vec<Transition>, StartTimes) {
    let mut transitions = Vec::new();
    let Some(restart) = &ledger.restart else { return (transitions, starts) };
    for action in actions {
        let Action::Start { uid, .. } = action else { continue };
        let member = restart.members.iter().find(|member| member.pod_uid == *uid);
        // A start that gives a slot back only makes the manager refuse the stop.
        if let Some(member) = member.filter(|member| member.step != MemberStep::GivingBack)
            && !starts.0.contains_key(uid)
        {
            let strategy = restart.request.strategy.as_str();
            let seconds = seconds(member.since, now);
            transitions.push(Transition::Stopped { strategy, seconds });
            starts.0.insert(uid.clone(), now);
        }
    }
    (transitions, starts)
}

/// The changes from one ledger to another, and the start times after them.
pub(super) fn between(
    before: &Ledger,
    after: &Ledger,
    now: Time,
    mut starts: StartTimes,
) -> (Vec<Transition>, StartTimes) {
    let mut transitions = Vec::new();
    let (before_id, after_id) = (id(before), id(after));
    let (was, is) = (members(before), members(after));
    for (uid, member) in &is {
        if was.get(uid).map(|member| member.step) != Some(member.step) {
            transitions.push(Transition::Step {
                restart: after_id.to_owned(),
                node: member.node.clone(),
                step: step_name(member.step),
                stop: member.stop_sequence,
                start: member.start_sequence,
            });
        }
    }
    let strategy = before.restart.as_ref().map_or("", |restart| restart.request.strategy.as_str());
    for (uid, member) in was.iter().filter(|(_, member)| member.is_under_way()) {
        // The end of the last member is often the end of the restart.
        let is_over = before_id != after_id
            || is.get(uid).is_none_or(|member| member.step == MemberStep::Finished);
        if is_over && let Some(started) = starts.0.remove(*uid) {
            transitions.push(Transition::Finished {
                restart: before_id.to_owned(),
                node: member.node.clone(),
                strategy,
                seconds: seconds(member.since, now),
                start: seconds(started, now),
            });
        }
    }
    let ended = after.history.iter().filter(|entry| !before.history.contains(entry));
    transitions.extend(ended.cloned().map(Transition::Ended));
    (transitions, starts)
}

fn id(ledger: &Ledger) -> &str {
    ledger.restart.as_ref().map_or("", |restart| restart.request.id.as_str())
}

fn members(ledger: &Ledger) -> BTreeMap<&str, &Member> {
    ledger.members().map(|member| (member.pod_uid.as_str(), member)).collect()
}

/// Seconds from one time to another; more than fifty days count as fifty days.
fn seconds(from: Time, to: Time) -> f64 {
    f64::from(u32::try_from(to.since(from)).unwrap_or(u32::MAX)) / 1000.0
}

const fn step_name(step: MemberStep) -> &'static str {
    match step {
        MemberStep::Scheduled => "scheduled",
        MemberStep::Restarting => "restarting",
        MemberStep::GivingBack => "giving-back",
        MemberStep::Aborting => "aborting",
        MemberStep::Finished => "finished",
    }
}

/// Logs and counts transitions of one SearchCluster.
pub(crate) fn record(transitions: &[Transition], cluster: &str, metrics: &Metrics) {
    for transition in transitions {
        match transition {
            Transition::Step { restart, node, step, stop, start } => {
                tracing::info!(cluster, restart, node, step, stop, start, "ledger written");
            }
            Transition::Stopped { strategy, seconds } => {
                metrics.observe_phase("stop", strategy, *seconds);
            }
            Transition::Finished { restart, node, strategy, seconds, start } => {
                metrics.observe_phase("start", strategy, *start);
                tracing::info!(cluster, restart, node, seconds, "node finished");
            }
            Transition::Ended(entry) => {
                metrics.count_restart(entry.outcome.as_str(), entry.strategy.as_str());
                for (step, nodes) in &entry.steps {
                    metrics.count_nodes(step, *nodes);
                }
                tracing::info!(
                    cluster,
                    restart = entry.id,
                    outcome = entry.outcome.as_str(),
                    seconds = entry.seconds,
                    nodes = entry.nodes,
                    "restart ended: {}",
                    entry.reason
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
