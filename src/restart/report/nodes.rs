//! The nodes that the status lists.

use std::collections::{BTreeMap, BTreeSet};

use super::down::{Down, DownNodes};
use super::{MAX_NODES, NodeReport, member_pods};
use crate::flow::phase_of;
use crate::index::Marks;
use crate::{Code, Member, Phase, Plan, Pod, Snapshot, Waiting};
use stayput_api::checksum::short;
use stayput_pod_update::UpdateStep;

/// Entry in [`NodeReport::because`] for a changed config, where fields of the template are beside it.
pub const THE_CONFIG: &str = "the config";

/// Facts about one node.
struct NodeRow<'a> {
    node: &'a str,
    member: Option<&'a Member>,
    pod: Option<&'a Pod>,
    waiting: Option<&'a Waiting>,
    down: Option<&'a Down>,
    phase: Option<Phase>,
    drifts: bool,
    step: Option<UpdateStep>,
    because: Vec<String>,
}

/// The nodes that are not simply idle: first those under way, then those that are down, then those
/// that are blocked, then those that drift, then the others; each group by name.
pub(super) fn listed<'a>(
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    down: &'a DownNodes<'a>,
) -> Vec<NodeReport> {
    let waiting: BTreeMap<&str, &Waiting> = plan
        .waiting
        .iter()
        .filter_map(|waiting| Some((waiting.pod.as_deref()?, waiting)))
        .collect();
    let restart = snapshot.ledger.restart.as_ref();
    let members = member_pods::by_pod(snapshot);
    let row = |uid: &str, node: &'a str, pod: Option<&'a Pod>| {
        let member = members.get(uid).copied();
        let manager = pod.and_then(|pod| pod.manager.as_ref().ok());
        let (step, because) = step_of(member, pod);
        NodeRow {
            node,
            member,
            pod,
            waiting: waiting.get(uid).copied(),
            down: down
                .get(uid)
                .or_else(|| down.get(member.filter(|_| pod.is_none())?.pod.as_str())),
            phase: restart.zip(member).and_then(|(restart, member)| {
                let marks = pod.map(|pod| Marks::of(&snapshot.cluster, pod));
                let shown = marks.and_then(|marks| marks.shown_of(&restart.request.id));
                phase_of(restart, member, manager, shown)
            }),
            drifts: pod.is_some_and(Pod::drifts),
            step,
            because,
        }
    };
    let there: BTreeSet<&str> = snapshot.pods.iter().map(|pod| pod.uid.as_str()).collect();
    let pods = snapshot.pods.iter().map(|pod| row(&pod.uid, pod.node.as_str(), Some(pod)));
    let gone = members.iter().filter(|(uid, _)| !there.contains(*uid));
    let gone = gone.map(|(uid, member)| row(uid, member.node.as_str(), None));
    let lost: BTreeSet<&str> = members.values().map(|member| member.pod.as_str()).collect();
    let missing = snapshot.missing.iter().filter(|missing| !lost.contains(missing.name.as_str()));
    let missing = missing.map(|missing| row(&missing.name, &missing.name, None));
    let rows = pods.chain(gone).chain(missing).filter(NodeRow::is_listed);
    let mut rows: Vec<NodeRow<'_>> = rows.collect();
    rows.sort_by_cached_key(NodeRow::sort_key);
    rows.truncate(MAX_NODES);
    rows.iter().map(NodeRow::report).collect()
}

impl<'a> NodeRow<'a> {
    fn is_listed(&self) -> bool {
        self.phase.is_some() || self.down.is_some() || self.step.is_some() || self.waits().is_some()
    }

    /// The reason why the node waits, if it is worth a line.
    fn waits(&self) -> Option<&'a Waiting> {
        self.waiting.filter(|waiting| {
            !matches!(waiting.code, Code::Idle | Code::Finished | Code::Recording)
        })
    }

    /// Why the node is down, and why it waits besides.
    fn message(&self) -> Option<String> {
        let Some(down) = self.down else {
            return self.waiting.map(|waiting| waiting.message.to_string());
        };
        let waits = self.waits().filter(|waiting| waiting.code != Code::KeptStopped);
        Some(match waits {
            Some(waiting) => format!("{}; {}", down.message, waiting.message),
            None => down.message.clone(),
        })
    }

    /// Key that sorts `logs-10` after `logs-9`.
    fn sort_key(&self) -> (u8, &'a str, Option<u64>, &'a str) {
        let rank = if self.member.is_some_and(Member::is_under_way) {
            0
        } else if self.down.is_some() {
            1
        } else if self.waiting.is_some_and(|waiting| waiting.code.blocks()) {
            2
        } else if self.drifts {
            3
        } else {
            4
        };
        let set = self.node.trim_end_matches(|c: char| c.is_ascii_digit());
        (rank, set, self.node[set.len()..].parse().ok(), self.node)
    }

    fn report(&self) -> NodeReport {
        let manager = self.pod.and_then(|pod| pod.manager.as_ref().ok());
        let run = manager.and_then(|manager| manager.run.as_ref());
        let (blocks, waits) = match self.waits() {
            Some(waiting) if waiting.code.blocks() => (Some(waiting), None),
            other => (None, other),
        };
        let code = |waiting: &Waiting| waiting.code.as_str().to_owned();
        NodeReport {
            name: self.node.to_owned(),
            phase: self.phase.map(|phase| phase.as_str().to_owned()),
            state: manager.map(|manager| manager.state.as_str().to_owned()),
            checksum: run.and_then(|run| run.checksum.as_deref()).map(|one| short(one).to_owned()),
            manager_version: manager.map(|manager| manager.version.clone()),
            down: self.down.map(|down| down.code.to_owned()),
            step: self.step,
            because: self.because.clone(),
            blocked_by: blocks.map(code),
            waits_for: waits.map(code),
            message: self.message(),
        }
    }
}

/// The step of a node's restart and the fields that cause it: of the restart under way, or of the one
/// that the node needs, if it needs one.
pub(crate) fn step_of(
    member: Option<&Member>,
    pod: Option<&Pod>,
) -> (Option<UpdateStep>, Vec<String>) {
    if let Some(member) = member.filter(|member| member.is_under_way()) {
        return match &member.update {
            Some(fixed) => (Some(fixed.update.step), fixed.update.because.clone()),
            None => (Some(UpdateStep::Restart), Vec::new()),
        };
    }
    let Some(pod) = pod else { return (None, Vec::new()) };
    if pod.leaving.is_some() {
        return (Some(UpdateStep::Move), vec!["spec.nodeSets".to_owned()]);
    }
    let restarts = pod.drifts().then_some(UpdateStep::Restart);
    let Some(update) = pod.update.as_ref().ok().and_then(Option::as_ref) else {
        return (restarts, Vec::new());
    };
    let mut because = update.because.clone();
    // What the template alone asks for would leave the engine on the old config.
    if restarts > Some(update.step) && !because.is_empty() {
        because.insert(0, THE_CONFIG.to_owned());
    }
    (restarts.max(Some(update.step)), because)
}
