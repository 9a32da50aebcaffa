//! The nodes that the status lists.

use std::collections::{BTreeMap, BTreeSet};

use crate::flow::phase_of;
use crate::index::{Index, Marks};
use crate::report::{MAX_NODES, NodeReport};
use crate::snapshot::{Replacement, exec_manager, namespace_and_name};
use crate::{
    Blocker, Cluster, Code, Ledger, Manager, Member, MemberStep, MissingPod, NotStarted, Operator,
    Phase, Plan, Pod, Policy, Restart, Snapshot, Time, Waiting,
};
use stayput_api::checksum::short;
use stayput_api::{Desired, State};
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
    let members = by_pod(snapshot);
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

/// Maximum number of nodes in one message; the table of nodes has the others.
const MAX_DESCRIBED: usize = 3;
/// Number of lines of a log to show where the time of the end is not known.
const LOG_LINES: u32 = 100;
/// Time before its end in which an engine logs the reason, in milliseconds.
const LAST_MINUTE: u64 = 60_000;

/// Why a node is down.
#[derive(Debug)]
pub(super) struct Down {
    node: String,
    /// The reason, for programs.
    pub(super) code: &'static str,
    /// The reason, the place of the log, and the remedy, for people.
    pub(super) message: String,
    /// True if the node stays down unless a person does something.
    needs_a_person: bool,
}

/// The nodes that are down, by uid of their pods, or by the name of one that is missing.
pub(super) type DownNodes<'a> = BTreeMap<&'a str, Down>;

/// The nodes that are down, without those that are being restarted, that are to be kept stopped, or
/// whose pod is being deleted. A node that was stopped by a restart that only goes forward counts as
/// down after the time for a phase.
pub(super) fn down<'a>(snapshot: &'a Snapshot, policy: &Policy) -> DownNodes<'a> {
    let index = Index::new(snapshot);
    let under_way = under_way(snapshot);
    let members = by_pod(snapshot);
    let kept = &snapshot.ledger.kept_stopped;
    let kept: BTreeSet<&str> = kept.iter().map(|kept| kept.pod_uid.as_str()).collect();
    let restart = snapshot.ledger.restart.as_ref();
    let late = |restart: &&Restart| restart.is_late_forward(snapshot.now, policy.phase_timeout);
    let retrying = restart.filter(late);
    let is_expected = |pod: &&Pod| {
        let uid = pod.uid.as_str();
        let is_kept = snapshot.cluster.keeps_stopped(pod) || kept.contains(uid);
        let is_normal = under_way.contains(uid) && retrying.is_none();
        !(pod.terminating || is_kept || is_normal)
    };
    let expected = snapshot.pods.iter().filter(is_expected);
    let down = expected.filter_map(|pod| {
        let retrying = retrying.filter(|_| under_way.contains(pod.uid.as_str()));
        let (code, message) = why(&index, &Commands { snapshot, pod, retrying })?;
        let needs_a_person = needs_a_person(snapshot, &members, pod);
        let down = Down { node: pod.node.clone(), code, message, needs_a_person };
        Some((pod.uid.as_str(), down))
    });
    // One that was deleted for `replace` is made at once, unless something refuses it.
    let is_replaced = |member: &Member| {
        let update = member.update.as_ref();
        update.is_some_and(|fixed| fixed.update.step == UpdateStep::Replace)
    };
    let moving = snapshot.ledger.under_way();
    let moving = moving.filter(|member| retrying.is_none() && !is_replaced(member));
    let mut not_missed: BTreeSet<&str> = moving.map(|member| member.pod.as_str()).collect();
    not_missed.extend(snapshot.cluster.stopped.iter().map(String::as_str));
    not_missed.extend(snapshot.ledger.debts.leaving.nodes.iter().map(String::as_str));
    let missing = snapshot.missing.iter().filter(|one| !not_missed.contains(one.name.as_str()));
    down.chain(missing.map(|one| (one.name.as_str(), without_a_pod(snapshot, one)))).collect()
}

/// The entry of a node without a pod. The StatefulSet retries by itself to create it.
fn without_a_pod(snapshot: &Snapshot, missing: &MissingPod) -> Down {
    let MissingPod { name, set } = missing;
    let (namespace, _) = namespace_and_name(&snapshot.cluster.name);
    let message = format!(
        "StatefulSet {set} wants its pod, and there is none: `kubectl -n {namespace} describe \
         statefulset {set}`"
    );
    Down { node: name.clone(), code: "pod_missing", message, needs_a_person: false }
}

/// True if one of the nodes stays down unless a person does something.
pub(super) fn wait_for_a_person(down: &DownNodes<'_>) -> bool {
    down.values().any(|one| one.needs_a_person)
}

/// True if nobody starts the node's engine: neither its manager, nor a restart that includes it, under
/// way or queued, nor a start debt.
fn needs_a_person(snapshot: &Snapshot, members: &BTreeMap<&str, &Member>, pod: &Pod) -> bool {
    let Ledger { queued, .. } = &snapshot.ledger;
    let is_owed = snapshot.ledger.owes_start(&pod.uid);
    let has_its_turn =
        members.get(pod.uid.as_str()).is_some_and(|member| member.step != MemberStep::Finished);
    // Its role and zone are not known while it is down.
    let is_meant = queued.as_ref().is_some_and(|request| {
        let nodes = &request.target.nodes;
        nodes.is_empty() || nodes.contains(&pod.node)
    });
    let Ok(manager) = Index::manager_of(pod) else { return false };
    let is_held = match manager.state {
        State::Failed | State::Stuck => true,
        State::Stopped => manager.desired == Desired::Stopped,
        State::Starting | State::Running | State::Stopping | State::Killing | State::Backoff => {
            false
        }
    };
    is_held && !is_owed && !has_its_turn && !is_meant
}

/// The first of the nodes, in a sentence each, if any node is down.
pub(super) fn summary(down: &DownNodes<'_>) -> Option<String> {
    let mut by_name: Vec<&Down> = down.values().collect();
    by_name.sort_by_key(|down| &down.node);
    let described = by_name.iter().take(MAX_DESCRIBED);
    let mut sentences: Vec<String> =
        described.map(|down| format!("{} is down: {}", down.node, down.message)).collect();
    let more = by_name.len().saturating_sub(MAX_DESCRIBED);
    if more > 0 {
        sentences.push(format!("{more} more nodes are down"));
    }
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Code and message, if the node is down and something shows that.
fn why(index: &Index<'_>, commands: &Commands<'_>) -> Option<(&'static str, String)> {
    let pod = commands.pod;
    let is_missing = index.engine().is_ok() && index.node(&pod.node).is_none();
    let manager = match Index::manager_of(pod) {
        Ok(manager) => manager,
        Err(blocker)
            if blocker.code == Code::PodNotStarted
                && !is_made_anew(pod, &commands.snapshot.cluster) =>
        {
            let how = commands.unstarted();
            return Some((blocker.code.as_str(), format!("{}: {how}", blocker.message)));
        }
        Err(_) if pod.crash_looping => {
            let log = commands.last_log(None);
            let message = format!("its container is crash-looping (CrashLoopBackOff): {log}");
            return Some(("crash_looping", message));
        }
        Err(blocker) if is_missing || !pod.ready => {
            return Some(without_manager(&blocker, commands));
        }
        Err(_) => return None,
    };
    let because = manager.reason.clone().unwrap_or_else(|| ended(manager));
    match manager.state {
        State::Failed => {
            let log = commands.last_log(Some(manager));
            let how = commands.how_started(Commands::restart);
            Some(("failed", format!("{because}; its log: {log}; {how}")))
        }
        State::Backoff => {
            let log = commands.last_log(Some(manager));
            Some(("backoff", format!("{because}; its log: {log}")))
        }
        State::Stopped if manager.desired == Desired::Stopped => {
            let how = commands.how_started(Commands::start);
            Some(("stopped", format!("{because}; {how}")))
        }
        State::Stopped => Some(("stopped", because)),
        State::Stuck => Some(("stuck", because)),
        State::Starting | State::Running | State::Stopping | State::Killing if is_missing => {
            let (state, log) = (manager.state.as_str(), commands.log());
            let message = format!("its engine is {state}, but not in the cluster; its log: {log}");
            Some(("not_in_cluster", message))
        }
        State::Starting | State::Running | State::Stopping | State::Killing => None,
    }
}

/// Code and message for a pod that is not ready and whose manager does not answer. For an operator's pod
/// that is normal while the operator replaces pods.
fn without_manager(blocker: &Blocker, commands: &Commands<'_>) -> (&'static str, String) {
    let (code, describe) = (blocker.code.as_str(), commands.describe());
    let cluster = &commands.snapshot.cluster;
    let message = match &commands.pod.operator {
        Some(operator) if deletes_unready_pods(operator, cluster) => {
            return (
                Code::OperatorReplaces.as_str(),
                format!("{}: {describe}", operator.replaces(cluster)),
            );
        }
        Some(operator) if operator.replaces_pods => {
            format!("{}; {}: {describe}", blocker.message, operator.replaces(cluster))
        }
        Some(operator) => format!(
            "{}; {} makes its pod (for {}) and may just have replaced it: {describe}",
            blocker.message,
            operator.name(),
            operator.describe_object()
        ),
        None => format!("{}: {describe}", blocker.message),
    };
    (code, message)
}

/// True while an operator replaces pods, and nothing hinders the new one.
fn is_made_anew(pod: &Pod, cluster: &Cluster) -> bool {
    let is_free = pod.not_started.as_ref().is_some_and(|why| why.reason == NotStarted::CREATING);
    is_free && pod.operator.as_ref().is_some_and(|operator| deletes_unready_pods(operator, cluster))
}

/// True while the operator deletes pods of an older revision that are not ready, or others, too.
fn deletes_unready_pods(operator: &Operator, cluster: &Cluster) -> bool {
    operator.replaces_pods && operator.replacement(cluster) != Replacement::NoPod
}

/// How the engine ended, where its manager gives no reason why it does not run.
fn ended(manager: &Manager) -> String {
    match manager.last_exit.as_ref().and_then(|exit| exit.code) {
        Some(code) => format!("the engine ended with code {code}"),
        None => "the engine does not run".to_owned(),
    }
}

/// Commands about one pod, to be copied from a message.
struct Commands<'a> {
    snapshot: &'a Snapshot,
    pod: &'a Pod,
    /// The restart that is going to start the node, if need be again and again.
    retrying: Option<&'a Restart>,
}

impl Commands<'_> {
    fn cluster(&self) -> (&str, &str) {
        namespace_and_name(&self.snapshot.cluster.name)
    }

    /// The option `-c NAME`; without it kubectl takes the pod's default container.
    fn container(&self) -> String {
        self.pod.container.as_ref().map_or_else(String::new, |name| format!(" -c {name}"))
    }

    fn logs(&self, options: &str) -> String {
        let ((namespace, _), container) = (self.cluster(), self.container());
        format!("`kubectl -n {namespace} logs {}{container} {options}`", self.pod.name)
    }

    fn log(&self) -> String {
        self.logs(&format!("--tail={LOG_LINES}"))
    }

    /// Command that shows the engine's log before its end. If no manager saw the end, its container was
    /// ended, too.
    fn last_log(&self, manager: Option<&Manager>) -> String {
        match manager.map(|manager| manager.last_exit.as_ref().map(|exit| exit.ended)) {
            Some(Some(Some(ended))) => {
                let since = Time(ended.0.saturating_sub(LAST_MINUTE));
                self.logs(&format!("--since-time={since}"))
            }
            Some(None) => self.log(),
            Some(Some(None)) | None => self.logs(&format!("--previous --tail={LOG_LINES}")),
        }
    }

    fn restart(&self) -> String {
        let (namespace, cluster) = self.cluster();
        format!("`kubectl stayput -n {namespace} restart {cluster} --node {}`", self.pod.node)
    }

    /// Command that starts the engine, unless a restart starts it.
    fn how_started(&self, command: impl Fn(&Self) -> String) -> String {
        match self.retrying {
            Some(restart) => {
                let when = match restart.frozen {
                    Some(_) => "again and again",
                    None => "once all of its nodes are stopped",
                };
                format!("restart {} only goes forward, and starts it {when}", restart.request.id)
            }
            None => format!("to start it: {}", command(self)),
        }
    }

    fn start(&self) -> String {
        let ((namespace, _), pod) = (self.cluster(), self.pod);
        let manager = exec_manager(&pod.name, pod.container.as_deref(), pod.program.as_deref());
        format!("`kubectl -n {namespace} exec {manager} start`")
    }

    /// Command that shows why a pod does not start: the log of the container that fails, or the events
    /// of the pod.
    fn unstarted(&self) -> String {
        let failing = self.pod.not_started.as_ref().filter(|why| {
            matches!(why.reason.as_str(), "CrashLoopBackOff" | "Error" | "OOMKilled")
        });
        match failing.and_then(|why| why.container.as_ref()) {
            Some(container) => {
                let (namespace, _) = self.cluster();
                format!("`kubectl -n {namespace} logs {} -c {container}`", self.pod.name)
            }
            None => self.describe(),
        }
    }

    fn describe(&self) -> String {
        let (namespace, _) = self.cluster();
        format!("`kubectl -n {namespace} describe pod {}`", self.pod.name)
    }
}

/// The members, by uid of their current pod, or of their own if there is none.
pub(super) fn by_pod(snapshot: &Snapshot) -> BTreeMap<&str, &Member> {
    let listed: BTreeSet<&str> = snapshot.pods.iter().map(|pod| pod.uid.as_str()).collect();
    let (there, gone): (Vec<&Member>, Vec<&Member>) =
        snapshot.ledger.members().partition(|member| listed.contains(member.pod_uid.as_str()));
    let names: BTreeSet<&str> = gone.iter().map(|member| member.pod.as_str()).collect();
    let replacing: BTreeMap<&str, &Pod> = snapshot
        .pods
        .iter()
        .filter(|pod| names.contains(pod.name.as_str()))
        .map(|pod| (pod.name.as_str(), pod))
        .collect();
    let mut members: BTreeMap<&str, &Member> =
        there.into_iter().map(|member| (member.pod_uid.as_str(), member)).collect();
    for member in gone {
        let pod = replacing.get(member.pod.as_str());
        members.insert(pod.map_or(&member.pod_uid, |pod| &pod.uid), member);
    }
    members
}

/// Uids of the current pods of the members under way.
pub(super) fn under_way(snapshot: &Snapshot) -> BTreeSet<&str> {
    let is_under_way = |(_, member): &(&str, &Member)| member.is_under_way();
    by_pod(snapshot).into_iter().filter(is_under_way).map(|(uid, _)| uid).collect()
}
