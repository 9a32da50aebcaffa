//! Phases that a person wrote on pods, and phases that a person removed. A phase that a GitOps tool writes
//! again whenever it is removed is carried out once and then left alone. Phases that are older than the
//! status, as after a restore from a backup, request nothing.

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::flow::coordinated::stop_all::left_out;
use crate::flow::member::changes_of;
use crate::flow::requests::{ignore_input, is_own, open, remember};
use crate::flow::target::scheduled;
use crate::flow::turn::TurnView;
use crate::index::{Marks, lookup};
use crate::ledger::{LedgerChange, RestartChange};
use crate::rules::list_names;
use crate::{
    Cluster, Code, Context, Ending, Ledger, MAX_MEMBERS, Member, MemberStep, NodeResult, Outcome,
    Phase, Pod, Reason, Request, Restart, Strategy, Target, annotation,
};

/// Handles every phase on a pod that differs from the one that we last showed there.
pub(crate) fn apply_people_changes(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let changed = context.index.marked_pods();
    let changed: Vec<(&Pod, &Marks<'_>)> = changed
        .filter(|(_, marks)| marks.phase != marks.shown_phase())
        .filter(|(pod, _)| !ledger.old_phases.contains(&pod.uid))
        .collect();
    if changed.is_empty() {
        return changes;
    }
    let members = ledger.members().enumerate();
    let members = members.map(|(index, member)| (member.pod_uid.as_str(), (index, member)));
    let members = lookup(context.index.pods().len(), members);
    let mut asked: Vec<(Strategy, &Pod)> = Vec::new();
    for (pod, marks) in changed {
        let entry = members.get(pod.uid.as_str()).copied();
        match marks.phase.map(Phase::parse) {
            None => {
                if let (Some(entry), Some(restart)) = (entry, &ledger.restart) {
                    changes.merge(phase_removed(context, ledger, restart, pod, entry));
                }
            }
            Some(Err(unknown)) => {
                changes.merge(ignore_input(Some(&pod.uid), unknown.to_string()));
            }
            Some(Ok(phase)) => {
                let restart = ledger.restart.as_ref().filter(|_| !changes.ends_restart());
                let member = entry.map(|(_, member)| member);
                match phase_written(context, restart, (pod, marks), member, phase) {
                    Written::Settled(settled) => changes.merge(settled),
                    Written::AsksFor(strategy) => asked.push((strategy, pod)),
                }
            }
        }
    }
    changes.merge(open_for(context, ledger, &asked));
    changes
}

/// Handles a removed phase: a node that waits is left out of the restart, and so is one whose manager is
/// waited for in vain; for any other node under way this cancels the restart.
fn phase_removed(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    pod: &Pod,
    (index, member): (usize, &Member),
) -> Changes {
    let view = &TurnView { context, ledger, restart, index, member };
    if let Some(turn) = left_out(view) {
        return changes_of(view, turn);
    }
    let mut changes = Changes::default();
    let cancelled = || format!("cancelled: the phase annotation of {} was removed", pod.node);
    match member.step {
        // A coordinated restart needs all of its nodes: without one of them it is cancelled.
        MemberStep::Scheduled if restart.is_coordinated() => {
            changes.end_with(Outcome::Aborted, cancelled());
        }
        MemberStep::Scheduled => {
            let mut withdrawn = member.clone();
            withdrawn.step = MemberStep::Finished;
            withdrawn.ending = Some(Ending {
                outcome: Outcome::Aborted,
                reason: "its phase annotation was removed".into(),
            });
            changes.set_member(index, withdrawn);
        }
        MemberStep::Restarting | MemberStep::GivingBack => match restart.why_not_cancellable() {
            // `show_phases` writes the phase again.
            Some(why) => {
                let message = format!(
                    "The phase annotation of {} was removed; restored, since its restart cannot be cancelled \
                     any more: {why}",
                    pod.node
                );
                changes.event(Some(&pod.uid), Reason::PhaseRewritten, message);
            }
            None => changes.end_with(Outcome::Aborted, cancelled()),
        },
        MemberStep::Aborting | MemberStep::Finished => {}
    }
    changes
}

/// The meaning of a phase that a person wrote.
enum Written {
    /// The phase requests nothing more, after these changes.
    Settled(Changes),
    /// The phase requests a restart that is not under way.
    AsksFor(Strategy),
}

/// Reads a phase that a person wrote. `restart` is the one under way, unless it is being ended.
fn phase_written(
    context: &Context<'_>,
    restart: Option<&Restart>,
    (pod, marks): (&Pod, &Marks<'_>),
    member: Option<&Member>,
    phase: Phase,
) -> Written {
    let mut changes = Changes::default();
    if member.is_some_and(|member| member.step != MemberStep::Finished) {
        // `show_phases` writes our phase again.
        let message =
            format!("{} on {} does not match its restart; restored", phase.as_str(), pod.node);
        if marks.shown_phase().is_some() {
            changes.event(Some(&pod.uid), Reason::PhaseRewritten, message);
        }
        return Written::Settled(changes);
    }
    let Some(strategy) = phase.asks_for() else {
        let message = format!("{} on {} asks for nothing and is removed", phase.as_str(), pod.node);
        changes.event(Some(&pod.uid), Reason::InputIgnored, message);
        changes.annotate(pod, [(annotation::PHASE, None), (annotation::SHOWN, None)]);
        return Written::Settled(changes);
    };
    if let Some(ignored) = kept_phase_of_pod(&context.snapshot.ledger, pod) {
        return Written::Settled(ignored);
    }
    if marks.is_to_be_stopped {
        let message = format!("{} is kept stopped: it is not restarted", pod.node);
        return Written::Settled(ignore_input(Some(&pod.uid), message));
    }
    if member.is_none() && restart.is_some_and(|restart| may_join(restart, strategy)) {
        let member = Box::new(scheduled(pod, context.snapshot.now));
        return Written::Settled(Changes::of_ledger(RestartChange::AddMember(member)));
    }
    Written::AsksFor(strategy)
}

/// True if a node that a phase asks for becomes a member of the restart under way. The permissions of a
/// request are for the nodes that it names; and a zone, or the nodes that a changed config or template is
/// for, are no more than those.
fn may_join(restart: &Restart, strategy: Strategy) -> bool {
    let request = &restart.request;
    restart.ending.is_none()
        && restart.members.len() < MAX_MEMBERS
        && request.strategy == strategy
        && strategy != Strategy::Coordinated
        && request.is_plain()
        && !request.goes_as_a_whole()
        && !is_own(restart)
}

/// Begins one restart for the pods with the same phase; pods with another phase wait for its end.
fn open_for(context: &Context<'_>, ledger: &Ledger, asked: &[(Strategy, &Pod)]) -> Changes {
    let mut changes = Changes::default();
    let Some(strategy) = asked.iter().map(|(strategy, _)| *strategy).min() else { return changes };
    if ledger.restart.is_some() {
        let message = "its restart begins when the one under way is over";
        for (_, pod) in asked {
            changes.wait(&pod.uid, Code::NotItsTurn, message);
        }
        return changes;
    }
    let same = asked.iter().filter(|(one, _)| *one == strategy);
    let same: Vec<&Pod> = same.map(|(_, pod)| *pod).collect();
    let mut target = Target::of(&same);
    // The other nodes get a restart of their own after this one.
    target.nodes.truncate(MAX_MEMBERS);
    let id = context.snapshot.fresh_id.clone();
    changes.change(remember(context, &id));
    changes.merge(open(context, Request { id, strategy, target, ..Request::default() }));
    changes
}

/// Value of `by` in a request that was a phase on the SearchCluster.
pub(crate) const BY_PHASE: &str = "restart-phase";

/// End of a message: the way to request further restarts.
const INSTEAD: &str = "for each further restart, commit stayput.dev/restart-request with a new id";

/// True if a restart of the same phase is under way or in the queue: the phase on the SearchCluster was
/// written again.
pub(crate) fn phase_comes_back(ledger: &Ledger, strategy: Strategy) -> bool {
    let under_way = ledger.restart.iter().map(|restart| &restart.request);
    under_way
        .chain(&ledger.queued)
        .any(|request| request.strategy == strategy && request.by.as_deref() == Some(BY_PHASE))
}

/// Records that this phase is not carried out again, and reports it.
pub(crate) fn keep_phase(context: &Context<'_>, phase: &str) -> Changes {
    let mut changes = Changes::of_ledger(LedgerChange::SetKeptPhase(Some(phase.to_owned())));
    let message = why_kept(&context.snapshot.cluster, phase);
    changes.event(None, Reason::InputIgnored, message);
    changes
}

/// Records a phase on the SearchCluster that is older than its status: such a phase is not carried out.
pub(crate) fn adopt_older_phase(phase: &str) -> Changes {
    let mut changes = Changes::of_ledger(LedgerChange::SetKeptPhase(Some(phase.to_owned())));
    let message =
        format!("The restart-phase {phase} is older than this SearchCluster's status: ignored");
    changes.event(None, Reason::RequestAdopted, message);
    changes
}

/// Forgets a kept phase that nobody writes any more: the next phase is a new request.
pub(crate) fn forget_kept_phase(ledger: &Ledger) -> Changes {
    match ledger.kept_phase {
        Some(_) => Changes::of_ledger(LedgerChange::SetKeptPhase(None)),
        None => Changes::default(),
    }
}

/// Message that the phase on the SearchCluster is not carried out again, with the reason.
pub(crate) fn why_kept(cluster: &Cluster, phase: &str) -> String {
    let who = match &cluster.phase_applied_by {
        Some(tool) => format!("{tool} applies it as part of a configuration"),
        None => "it is older than the status, or was written again while its restart was under way"
            .to_owned(),
    };
    format!(
        "the restart-phase {phase} on the SearchCluster is carried out once, not again: {who}; remove \
         it there; {INSTEAD}"
    )
}

/// Reports a phase on a pod that requests nothing: it is part of a configuration, and the pod was restarted
/// before. `None`: the phase requests a restart.
fn kept_phase_of_pod(ledger: &Ledger, pod: &Pod) -> Option<Changes> {
    let tool = pod.phase_applied_by.as_ref()?;
    // The result of the last node is in the ledger before it is on its pod.
    let is_to_show = |result: &NodeResult| result.pod_uid == pod.uid;
    let is_to_show = ledger.last_result.as_ref().is_some_and(is_to_show);
    if !is_to_show && !pod.annotations.contains_key(annotation::LAST_RESTART) {
        return None;
    }
    let message = format!(
        "the restart-phase on {} requests nothing: {tool} applies it as part of a configuration, \
         and it was restarted already; remove it there; {INSTEAD} on the SearchCluster",
        pod.node
    );
    let mut changes = Changes::default();
    changes.wait(&pod.uid, Code::Idle, message.clone());
    changes.event(Some(&pod.uid), Reason::InputIgnored, message);
    Some(changes)
}

/// Remembers the pods with a phase that is older than the status, until it is removed, and removes it.
pub(crate) fn adopt_phases(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let marked = context.index.marked_pods();
    let marked = marked.filter(|(_, marks)| marks.phase.is_some());
    if context.snapshot.cluster.has_status {
        if ledger.old_phases.is_empty() {
            return changes;
        }
        let old: Vec<&Pod> =
            marked.map(|(pod, _)| pod).filter(|pod| ledger.old_phases.contains(&pod.uid)).collect();
        let uids: BTreeSet<String> = old.iter().map(|pod| pod.uid.clone()).collect();
        if uids != ledger.old_phases {
            changes.change(LedgerChange::SetOldPhases(uids));
        }
        for pod in old {
            changes.annotate(pod, [(annotation::PHASE, None), (annotation::SHOWN, None)]);
        }
        return changes;
    }
    let old: Vec<&Pod> = marked
        .filter(|(_, marks)| marks.phase != marks.shown_phase())
        .map(|(pod, _)| pod)
        .collect();
    if old.is_empty() {
        return changes;
    }
    let nodes: Vec<&str> = old.iter().map(|pod| pod.node.as_str()).collect();
    let message = format!(
        "The restart-phase on {} is older than this SearchCluster's status: removed, not carried out",
        list_names(&nodes)
    );
    changes.event(None, Reason::RequestAdopted, message);
    let uids = old.iter().map(|pod| pod.uid.clone()).collect();
    changes.change(LedgerChange::SetOldPhases(uids));
    changes
}
