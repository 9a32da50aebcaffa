//! What is remembered of configs, and rolling restarts that a change of them rules out.

use std::collections::BTreeSet;

use crate::at_once::{at_once, at_once_after_stop};
use crate::changes::Changes;
use crate::configs::beginning;
use crate::context::Context;
use crate::ledger::LedgerChange;
use crate::{Ledger, Member, Outcome, Pod, Sources, Step, Strategy};

/// Remembers the decisive settings of configs that engines are to run on. With a new one, those are
/// forgotten that no engine runs on any more.
pub(in crate::flow) fn remember_configs(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let seen = &context.snapshot.configs;
    if ledger.configs.contains(seen) {
        return Changes::default();
    }
    let managers: Vec<_> = context.index.pods().map(|pod| pod.manager.as_ref()).collect();
    let is_complete = managers.iter().all(Result::is_ok);
    let used: BTreeSet<&str> = managers
        .into_iter()
        .flatten()
        .flat_map(|manager| {
            let run = manager.run.as_ref().and_then(|run| run.checksum.as_deref());
            [run, manager.mounted.as_deref(), manager.last_good.as_deref()]
        })
        .flatten()
        .map(beginning)
        .collect();
    // Of an engine that is not known now, the config may be known still.
    let renewed = ledger.configs.renewed(seen, |checksum| !is_complete || used.contains(checksum));
    if renewed == ledger.configs {
        return Changes::default();
    }
    Changes::of_ledger(LedgerChange::SetConfigs(renewed))
}

/// Ends a rolling restart as soon as a node that waits for its turn could not be in one cluster
/// with the others afterwards.
pub(in crate::flow) fn end_one_by_one(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(restart) = ledger.restart.as_ref().filter(|restart| restart.ending.is_none()) else {
        return changes;
    };
    if restart.request.strategy != Strategy::Rolling
        || context.snapshot.configs.are_alike(&ledger.configs)
    {
        return changes;
    }
    let may_be_stopped = |step| matches!(step, Step::Scheduled | Step::Restarting);
    let waiting: Vec<&Pod> = restart
        .members
        .iter()
        .filter(|member| may_be_stopped(member.step))
        .filter_map(|member| context.index.pod(&member.pod_uid))
        .filter(|pod| pod.drifts())
        .collect();
    // What is not known is a person's own risk.
    if let Ok(Some(change)) = at_once(context, ledger, &waiting) {
        let reason = format!("{}: ask for a coordinated restart", change.sentence());
        changes.end_with(Outcome::Aborted, reason);
    }
    changes
}

/// Why a member that was stopped in a rolling restart must not be started on what its sources have now:
/// they have moved since, to a config with which it could not be in one cluster with the others. None
/// if it may be, or if that is not known.
pub(in crate::flow) fn why_not_started(
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
    let change = at_once_after_stop(context, ledger, pod, expected).ok()??;
    Some(format!("{}: ask for a coordinated restart", change.sentence()))
}
