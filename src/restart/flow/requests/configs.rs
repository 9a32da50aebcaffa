//! Remembers configs and changes of them, and ends rolling restarts that a change of a config rules out.

use std::collections::BTreeSet;

use crate::blocker::{Check, refuse};
use crate::changes::Changes;
use crate::configs::beginning;
use crate::context::Context;
use crate::flow::member::update::planned_update;
use crate::flow::requests::is_own;
use crate::ledger::LedgerChange;
use crate::needs_coordinated::{
    needs_coordinated, needs_coordinated_between, template_needs_coordinated,
};
use crate::{
    Blocker, Code, Ledger, Manager, Member, MemberStep, OnConfigChange, Outcome, Pod, Restart,
    Sources, Strategy,
};

/// Remembers the decisive settings of configs that engines are to run on. With a new one, those are
/// forgotten that no engine runs on any more.
pub(crate) fn remember_configs(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let seen = &context.snapshot.configs;
    if ledger.configs.contains(seen) {
        return Changes::default();
    }
    let used = used(context);
    // If an engine is not known now, its config may be known still.
    let may_be_used = |checksum: &str| used.as_ref().is_none_or(|used| used.contains(checksum));
    let renewed = ledger.configs.renewed(seen, may_be_used);
    if renewed == ledger.configs {
        return Changes::default();
    }
    Changes::of_ledger(LedgerChange::SetConfigs(renewed))
}

/// Remembers, for nodes that need no restart for a change, the config that theirs counts as.
pub(crate) fn remember_ignored_changes(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut all = ledger.ignored_changes.clone();
    let is_ignored = |pod: &&Pod| pod.ignores_change;
    for (runs_on, wanted) in context.index.pods().filter(is_ignored).filter_map(Pod::change) {
        all.add(runs_on, wanted);
    }
    if all.is_empty() {
        return Changes::default();
    }
    let used = used(context);
    let wanted: Option<BTreeSet<&str>> = context
        .index
        .pods()
        .map(|pod| match &pod.sources {
            Sources::Checksum(wanted) => Some(beginning(wanted)),
            // Absent sources may come back as they were.
            Sources::Unknown(_) | Sources::Absent(_) => None,
        })
        .collect();
    all.retain(|runs_on, counts_as| {
        used.as_ref().is_none_or(|used| used.contains(runs_on))
            && wanted.as_ref().is_none_or(|wanted| wanted.contains(counts_as))
    });
    if all == ledger.ignored_changes {
        return Changes::default();
    }
    Changes::of_ledger(LedgerChange::SetIgnoredChanges(all))
}

/// The configs that engines run on or may be started on, by the beginning of the checksum. `None`: a manager
/// is unknown.
fn used<'a>(context: &Context<'a>) -> Option<BTreeSet<&'a str>> {
    let of_pod = |pod: &'a Pod| {
        let manager = pod.manager.as_ref().ok()?;
        let run = manager.run.as_ref().and_then(|run| run.checksum.as_deref());
        Some([run, manager.mounted.as_deref(), manager.last_good.as_deref()])
    };
    let all: Option<Vec<_>> = context.index.pods().map(of_pod).collect();
    Some(all?.into_iter().flatten().flatten().map(beginning).collect())
}

/// Ends a rolling restart as soon as a node that waits for its turn could not be in one cluster
/// with the others afterwards.
pub(crate) fn end_one_by_one(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(restart) = ledger.restart.as_ref().filter(|restart| restart.ending.is_none()) else {
        return changes;
    };
    if restart.request.strategy != Strategy::Rolling
        || context.snapshot.configs.are_alike(&ledger.configs)
    {
        return changes;
    }
    let may_be_stopped = |step| matches!(step, MemberStep::Scheduled | MemberStep::Restarting);
    // A node that is starting counts as well: it may be stopped as soon as one that runs.
    let waiting: Vec<&Pod> = restart
        .members
        .iter()
        .filter(|member| may_be_stopped(member.step))
        .filter_map(|member| context.index.pod(&member.pod_uid))
        .filter(|pod| !pod.ignores_change && pod.change().is_some())
        .collect();
    // An unknown answer is a person's own risk.
    if let Ok(Some(change)) = needs_coordinated(context, ledger, &waiting) {
        let reason = format!("{}: ask for a coordinated restart", change.sentence());
        changes.end_with(Outcome::Aborted, reason);
    }
    changes
}

/// Reason why a member that was stopped in a rolling restart must not be started on the config of its
/// sources: they have moved since, to a config with which it could not form one cluster with the others.
/// `None`: it may be started, or that is unknown and may be risked ([`may_be_risked`]).
pub(crate) fn why_not_started(
    context: &Context<'_>,
    ledger: &Ledger,
    member: &Member,
    pod: &Pod,
) -> Option<String> {
    let (Sources::Checksum(wanted), Some(expected)) = (&pod.sources, &member.expected) else {
        return None;
    };
    let restart = ledger.restart.as_ref()?;
    if restart.request.strategy != Strategy::Rolling
        || wanted == expected
        || context.snapshot.configs.are_alike(&ledger.configs)
    {
        return None;
    }
    match needs_coordinated_between(context, ledger, pod, expected, wanted) {
        Ok(change) => {
            change.map(|change| format!("{}: ask for a coordinated restart", change.sentence()))
        }
        Err(blocker) => (!may_be_risked(context, restart, &blocker)).then_some(blocker.message),
    }
}

/// Passes unless a rolling restart would take the node to a pod template or a config with which it could not
/// form one cluster with the others; or to a config of which that is unknown, unless this may be risked
/// ([`may_be_risked`]).
pub(crate) fn may_change_alone(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    pod: &Pod,
    manager: &Manager,
) -> Check {
    if restart.request.strategy != Strategy::Rolling {
        return Ok(());
    }
    if let Some(update) = planned_update(context.policy, restart.request.strategy, pod)
        && let Ok(Some(change)) = template_needs_coordinated(context, ledger, pod, update)
    {
        refuse(Code::NeedsCoordinated, change.by_template(pod))?;
    }
    if context.snapshot.configs.are_alike(&ledger.configs) {
        return Ok(());
    }
    let runs_on = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
    let from = runs_on.or(manager.last_good.as_ref());
    let (Sources::Checksum(wanted), Some(from)) = (&pod.sources, from) else { return Ok(()) };
    match needs_coordinated_between(context, ledger, pod, from, wanted) {
        Ok(Some(change)) => refuse(Code::NeedsCoordinated, change.sentence()),
        Err(blocker) if !may_be_risked(context, restart, &blocker) => Err(blocker),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// True if a rolling restart goes on although it is unknown whether its nodes can change their config one by
/// one. A person's does: it is a person's own risk. One of ours does not; but with `rolling`, one by one was
/// asked for by name also where nobody can know.
fn may_be_risked(context: &Context<'_>, restart: &Restart, blocker: &Blocker) -> bool {
    let is_auto = context.policy.on_config_change == OnConfigChange::Auto;
    !is_own(restart) || (!is_auto && blocker.code == Code::PendingRestart)
}
