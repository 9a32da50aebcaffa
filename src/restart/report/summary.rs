//! The phase of the cluster, the rule or fault that blocks it, and the message for people.

use std::collections::BTreeSet;

use crate::debts_due;
use crate::flow::{why_done, why_kept};
use crate::report::nodes::under_way;
use crate::report::nodes::{self, DownNodes};
use crate::rules::NameList;
use crate::{
    Cluster, Code, Color, Counts, Direction, Member, MemberStep, OnConfigChange, Operator, Outcome,
    Plan, Pod, PodUpdate, Policy, Predicate, Restart, Snapshot, Time, Waiting, annotation,
    ended_recently,
};
use stayput_api::State;
use stayput_pod_update::UpdateStep;

/// The rule or fault that blocks the cluster, unless this wait is a part of every restart.
pub(super) fn blocker<'a>(
    snapshot: &Snapshot,
    policy: &Policy,
    plan: &'a Plan,
) -> Option<&'a Waiting> {
    waited_for(snapshot, plan).filter(|waiting| !is_progress(snapshot, policy, waiting))
}

/// The rule or fault for which the cluster waits. While a node is under way the others wait for it and
/// not for a rule: then only the reason of that node counts.
fn waited_for<'a>(snapshot: &Snapshot, plan: &'a Plan) -> Option<&'a Waiting> {
    let under_way = under_way(snapshot);
    let counts = |waiting: &&Waiting| {
        waiting.code.blocks() && (under_way.is_empty() || is_of(&under_way, waiting))
    };
    // Invalid input comes last. A limit that is reached comes after the reason why it is reached.
    // What blocks the whole cluster comes before what blocks one pod.
    plan.waiting.iter().filter(counts).min_by_key(|waiting| {
        let is = |code| waiting.code == code;
        (
            is(Code::InvalidInput),
            is(Code::Predicate(Predicate::MaxUnavailable)),
            waiting.pod.is_some(),
            *waiting,
        )
    })
}

/// The blocker in words that name the node, because they are not in the line of that node.
pub(super) fn blocker_message(waiting: &Waiting) -> String {
    let is_of_a_node = matches!(
        waiting.code,
        Code::Debts
            | Code::ManagerUnreachable
            | Code::PodNotStarted
            | Code::WrongPod
            | Code::OwnerWillReplace
            | Code::WouldNotFit
            | Code::NotDurable
            | Code::NotListed
            | Code::LivenessWouldKill
            | Code::LiveMismatch
            | Code::ConfigUnknown
            | Code::EngineBusy
            | Code::Interfered
    );
    let speaks_of_it = ["it ", "its "].iter().any(|word| waiting.message.starts_with(word));
    match &waiting.node {
        Some(node) if (is_of_a_node || speaks_of_it) && !waiting.message.contains(node) => {
            format!("{node}: {}", waiting.message)
        }
        Some(_) | None => waiting.message.to_string(),
    }
}

/// True if one of these pods waits.
fn is_of(pods: &BTreeSet<&str>, waiting: &Waiting) -> bool {
    waiting.pod.as_deref().is_some_and(|uid| pods.contains(uid))
}

/// True if a rolling restart that goes on waits for the nodes it has restarted: until their shards are
/// back, or, where no other engine runs, until the engine answers. After `phaseTimeout` this is no
/// longer normal.
fn is_progress(snapshot: &Snapshot, policy: &Policy, waiting: &Waiting) -> bool {
    let Some(restart) = snapshot.ledger.restart.as_ref().filter(|one| one.ending.is_none()) else {
        return false;
    };
    let had_its_turn =
        |member: &&Member| member.step != MemberStep::Scheduled && member.stop_sequence > 0;
    let turns = restart.members.iter().filter(had_its_turn).map(|member| member.since);
    let is_late = |last: Time| snapshot.now.since(last) >= policy.phase_timeout;
    if turns.max().is_none_or(is_late) {
        return false;
    }
    if waiting.code == Code::EngineUnreachable {
        return no_other_engine_runs(snapshot);
    }
    let health = snapshot.engine.as_ref().ok().and_then(|engine| engine.health.as_ref().ok());
    let serves = health.is_some_and(|health| matches!(health.color, Color::Green | Color::Yellow));
    serves && waiting.code.passes_by_itself()
}

/// True if no engine runs but those of the nodes under way.
fn no_other_engine_runs(snapshot: &Snapshot) -> bool {
    let under_way = under_way(snapshot);
    let runs = |pod: &Pod| {
        pod.manager.as_ref().is_ok_and(|manager| manager.state == State::Running)
            && !under_way.contains(pod.uid.as_str())
    };
    !under_way.is_empty() && !snapshot.pods.iter().any(runs)
}

pub(super) fn phase(
    snapshot: &Snapshot,
    blocker: Option<&Waiting>,
    counts: &Counts,
) -> &'static str {
    let blocked =
        blocker.map(|waiting| if waiting.code == Code::Paused { "Paused" } else { "Blocked" });
    if snapshot.cluster.deleting {
        return "Deleting";
    }
    if let Some(restart) = &snapshot.ledger.restart {
        let given_up =
            restart.ending.as_ref().is_some_and(|ending| ending.outcome != Outcome::Done);
        let under_way = if given_up || restart.direction == Direction::Back {
            "Aborting"
        } else {
            "Restarting"
        };
        return blocked.unwrap_or(under_way);
    }
    if counts.down > 0 || !debts_due(&snapshot.ledger).is_empty() {
        return "Degraded";
    }
    match blocked {
        Some(blocked) => blocked,
        None if snapshot.cluster.paused => "Paused",
        None if counts.pending_restart > 0 || counts.pending_update > 0 => "PendingRestart",
        None => "Idle",
    }
}

/// The message: the blocker, the reason for waiting, or the action that a person should take.
pub(super) fn message(
    snapshot: &Snapshot,
    policy: &Policy,
    plan: &Plan,
    blocker: Option<&Waiting>,
    counts: &Counts,
    down: &DownNodes<'_>,
) -> Option<String> {
    let is_idle = snapshot.ledger.restart.is_none();
    if let Some(waiting) = blocker {
        return Some(blocker_message(waiting));
    }
    let mut due = debts_due(&snapshot.ledger);
    due.extend(nodes::summary(down).filter(|_| is_idle));
    if !due.is_empty() {
        return Some(due.join("; "));
    }
    let under_way = under_way(snapshot);
    let of_it = plan.waiting.iter().filter(|waiting| is_of(&under_way, waiting));
    let next = of_it.min().or_else(|| waited_for(snapshot, plan));
    if let Some(waiting) = next {
        return Some(waiting.message.to_string());
    }
    if let Some(waiting) = plan.waiting.iter().find(|waiting| waiting.code.waits_for_its_time()) {
        return Some(waiting.message.to_string());
    }
    let update = update_message(snapshot, plan, counts).filter(|_| is_idle);
    if is_idle && counts.pending_restart > 0 && policy.on_config_change == OnConfigChange::None {
        let (nodes, their) = match counts.pending_restart {
            1 => ("1 node runs".to_owned(), "its"),
            many => (format!("{many} nodes run"), "their"),
        };
        let what = match Operator::replacing(snapshot) {
            Some(operator) => operator.replaces(&snapshot.cluster),
            None => "request a restart".to_owned(),
        };
        let config = format!("{nodes} on another config than {their} sources have: {what}");
        return Some([Some(config), update].into_iter().flatten().collect::<Vec<_>>().join("; "));
    }
    if update.is_some() {
        return update;
    }
    let tells = |code| plan.waiting.iter().find(|waiting| waiting.code == code);
    let told = tells(Code::PendingRestart).or_else(|| tells(Code::SourcesUnknown));
    if let Some(waiting) = told.filter(|_| is_idle) {
        return Some(waiting.message.to_string());
    }
    if !is_idle {
        return None;
    }
    let kept = snapshot.ledger.kept_phase.as_deref();
    kept.map(|phase| why_kept(&snapshot.cluster, phase))
        .or_else(|| why_done(&snapshot.cluster, &snapshot.ledger))
        .or_else(|| unread_objects(&snapshot.cluster))
}

/// Message that annotations on an object of an operator are not read, with the reason.
fn unread_objects(cluster: &Cluster) -> Option<String> {
    let mut objects = cluster.operator_objects.iter();
    objects.find_map(|object| {
        let why = &object.facts.as_ref().err()?.message;
        Some(format!("annotations on {} are not read: {why}", object.describe()))
    })
}

/// The update that brings a pod to the template that its owner wants, if it needs one.
pub(super) fn pending_update(pod: &Pod) -> Option<&PodUpdate> {
    pod.update.as_ref().ok()?.as_ref().filter(|update| update.step != UpdateStep::None)
}

/// The number of pods that are to get another template, and why the first of them has not got it yet.
fn update_message(snapshot: &Snapshot, plan: &Plan, counts: &Counts) -> Option<String> {
    let pending = snapshot.pods.iter().filter_map(|pod| Some((pod, pending_update(pod)?)));
    let (pod, update) = pending.min_by_key(|(pod, _)| &pod.node)?;
    let says_why = |waiting: &&Waiting| {
        waiting.pod.as_ref() == Some(&pod.uid)
            && matches!(waiting.code, Code::UpdateNotAllowed | Code::UpdateTried)
    };
    let why = plan.waiting.iter().find(says_why).map(|waiting| waiting.message.clone());
    let why = why.unwrap_or_else(|| update.fields().into());
    let pods = match counts.pending_update {
        1 => "1 pod has an outdated template".to_owned(),
        many => format!("{many} pods have an outdated template"),
    };
    Some(format!("{pods}; {}: {why}", pod.node))
}

/// The message while a SearchCluster is being deleted: it always has the reason why that waits.
pub(super) fn of_deletion(snapshot: &Snapshot, message: Option<String>) -> Option<String> {
    let cluster = &snapshot.cluster;
    if !cluster.deleting || !cluster.finalizer {
        return message;
    }
    let is_said = |_: &String| snapshot.ledger.still_shown_since.is_none();
    let what = message.filter(is_said).unwrap_or_else(|| left_to_do(snapshot));
    Some(format!(
        "deletion waits for cleanup: {what}; to skip that, delete its pods too, or remove the finalizer {}",
        annotation::FINALIZER
    ))
}

/// Unfinished work of a SearchCluster that is being deleted, if no node has a message.
fn left_to_do(snapshot: &Snapshot) -> String {
    let ledger = &snapshot.ledger;
    let mut nodes: Vec<&str> = ledger.under_way().map(|member| member.node.as_str()).collect();
    nodes.extend(ledger.debts.start.iter().map(|debt| debt.node.as_str()));
    let releasing = ledger.kept_stopped.iter().filter(|kept| kept.releasing);
    nodes.extend(releasing.map(|kept| kept.node.as_str()));
    match nodes.as_slice() {
        [] if ended_recently(snapshot) => {
            "waiting a minute for late requests of the last restart".into()
        }
        [] if ledger.still_shown_since.is_some() => {
            let shows = |pod: &&Pod| pod.annotations.contains_key(annotation::SHOWN);
            let mut names = NameList::default();
            snapshot.pods.iter().filter(shows).for_each(|pod| names.add(&pod.node));
            format!(
                "annotations cannot be removed from the pods of {names}; deletion continues without that \
                 after phaseTimeout"
            )
        }
        [] => "annotations are removed from its pods".into(),
        nodes => format!("{} must be started", nodes.join(", ")),
    }
}

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Factor by which a node may take longer than the slowest finished node before there is no estimate.
const SLOWER_THAN_ALL: u64 = 3;

/// An estimate for people. Nodes of one cluster differ, so no decision uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// Remaining time, in milliseconds.
    pub(crate) left: u64,
    /// Number of nodes that were restarted.
    pub(crate) done: usize,
    /// Number of nodes that were restarted or are still to be restarted.
    pub(crate) nodes: usize,
}

impl Estimate {
    /// Estimates from the ledger alone, so that the estimate survives a restart of the controller.
    /// `None` before the first node is done, when no further node is restarted, in a coordinated
    /// restart, and while a node takes far longer than any before it.
    pub(crate) fn of(restart: &Restart, now: Time) -> Option<Self> {
        let goes_on = restart.ending.is_none() && restart.direction != Direction::Back;
        if !goes_on || restart.is_coordinated() {
            return None;
        }
        let mut last = restart.began?;
        let began = last;
        let is_over = |step| step == MemberStep::Finished;
        let to_come = restart.members.iter().filter(|member| !is_over(member.step)).count();
        // A member without a sequence was withdrawn before it was stopped.
        let ends = restart.members.iter().filter(|one| is_over(one.step) && one.stop_sequence > 0);
        let mut ends: Vec<Time> = ends.map(|member| member.since).collect();
        if ends.is_empty() || to_come == 0 {
            return None;
        }
        ends.sort_unstable();
        let mut longest = 0;
        for end in &ends {
            longest = longest.max(end.since(last));
            last = *end;
        }
        let waited = now.since(last);
        if waited > longest.saturating_mul(SLOWER_THAN_ALL).max(MINUTE) {
            return None;
        }
        let count = |nodes: usize| u64::try_from(nodes).unwrap_or(u64::MAX);
        let all = last.since(began).saturating_mul(count(to_come)) / count(ends.len());
        Some(Self {
            left: all.saturating_sub(waited.min(longest)),
            done: ends.len(),
            nodes: ends.len() + to_come,
        })
    }

    /// The remaining time in words: `about 12 minutes left`. The steps are wider for longer times,
    /// because the estimate is not precise and the status should not be written again all the time.
    pub(crate) fn left(self) -> String {
        let (step, unit, name) = if self.left <= MINUTE {
            return "less than a minute left".into();
        } else if self.left <= 10 * MINUTE {
            (1, MINUTE, "minutes")
        } else if self.left <= HOUR {
            (5, MINUTE, "minutes")
        } else if self.left <= 3 * HOUR {
            (15, MINUTE, "minutes")
        } else if self.left <= 2 * DAY {
            (1, HOUR, "hours")
        } else {
            (1, DAY, "days")
        };
        let count = self.left.div_ceil(unit).next_multiple_of(step);
        format!("about {count} {name} left")
    }
}

/// Prints `about 12 minutes left, estimated from 3 of 12 nodes`.
impl std::fmt::Display for Estimate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { done, nodes, .. } = self;
        write!(formatter, "{}, estimated from {done} of {nodes} nodes", self.left())
    }
}

#[cfg(test)]
mod tests;
