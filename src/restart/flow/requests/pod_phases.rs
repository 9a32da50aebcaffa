//! Phases that a person wrote on pods, and phases that a person removed.

use super::open::{open, remember};
use super::{ignore_input, is_own, kept_phase};
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::coordinated::unreachable_manager;
use crate::flow::member::changes_of;
use crate::flow::target::scheduled;
use crate::ledger::RestartChange;
use crate::lookup::lookup;
use crate::marks::Marks;
use crate::{
    Code, Ending, Ledger, MAX_MEMBERS, Member, MemberStep, Outcome, Phase, Pod, Reason, Request,
    Restart, Strategy, Target, annotation,
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
    if let Some(turn) = unreachable_manager::left_out(context, restart, member) {
        return changes_of(context, ledger, index, member, turn);
    }
    let mut changes = Changes::default();
    let cancelled = || format!("cancelled: the phase annotation of {} was removed", pod.node);
    match member.step {
        // A coordinated restart needs all of its nodes: without one of them it is cancelled.
        MemberStep::Scheduled if restart.request.strategy == Strategy::Coordinated => {
            changes.end_with(Outcome::Aborted, cancelled());
        }
        MemberStep::Scheduled => {
            let mut withdrawn = member.clone();
            withdrawn.step = MemberStep::Finished;
            withdrawn.ending = Some(Ending {
                outcome: Outcome::Aborted,
                reason: "its phase annotation was removed".into(),
            });
            changes.change(RestartChange::SetMember { index, member: Box::new(withdrawn) });
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
    if let Some(ignored) = kept_phase::of_pod(&context.snapshot.ledger, pod) {
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
    let mut nodes: Vec<String> = same.map(|(_, pod)| pod.node.clone()).collect();
    nodes.sort();
    // The other nodes get a restart of their own after this one.
    nodes.truncate(MAX_MEMBERS);
    let id = context.snapshot.fresh_id.clone();
    changes.change(remember(context, &id));
    let target = Target { nodes, ..Target::default() };
    changes.merge(open(context, Request { id, strategy, target, ..Request::default() }));
    changes
}
