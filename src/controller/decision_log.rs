//! Logs the decisions that people ask about after an incident: which node is next, in which state of the
//! cluster, and what the others wait for. Each is logged when it changes, and not at each look.

use std::collections::{BTreeMap, BTreeSet};

use stayput_restart::{Code, Engine, Node, Plan, Snapshot, Waiting, are_master_eligible};

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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn plan(waits: &[(&str, Code, &'static str)]) -> Plan {
        let waiting = |(node, code, message): &(&str, Code, &'static str)| Waiting {
            pod: Some(format!("{node}-uid")),
            node: Some((*node).to_owned()),
            code: *code,
            message: Cow::Borrowed(message),
        };
        Plan { waiting: waits.iter().map(waiting).collect(), ..Plan::default() }
    }

    fn wait(code: Code, nodes: &str, message: &str) -> Line {
        Line::Wait { code, nodes: nodes.to_owned(), message: message.to_owned() }
    }

    #[test] // proves OPERATE-1
    fn a_wait_is_logged_when_it_changes_and_once_for_all_nodes() {
        let mut log = DecisionLog::default();
        let names: Vec<String> = (0..7).map(|at| format!("logs-{at}")).collect();
        let all: Vec<(&str, Code, &'static str)> = names
            .iter()
            .map(|name| (name.as_str(), Code::NotItsTurn, "its turn comes later"))
            .collect();
        let nodes = "logs-0 logs-1 logs-2 logs-3 logs-4 and 2 more";
        let lines = log.waits(&plan(&all));
        assert_eq!(lines, [wait(Code::NotItsTurn, nodes, "its turn comes later")]);
        assert_eq!(log.waits(&plan(&all)), []);
        // Numbers in a message change at each look.
        let mut later = all.clone();
        later[3] = ("logs-3", Code::NotItsTurn, "its turn comes in 5 s");
        later[4] = ("logs-4", Code::Quorum, "a majority would be lost: 2 of 3");
        let lines = log.waits(&plan(&later));
        assert_eq!(lines, [wait(Code::Quorum, "logs-4", "a majority would be lost: 2 of 3")]);
        let idle = [("logs-4", Code::Idle, "nothing to do")];
        assert_eq!(log.waits(&plan(&idle)), []);
        assert_eq!(log.waits(&plan(&later)).len(), 2, "they wait again");
    }
}
