//! Phases on the objects that operators make the pods from. We never write there: the ledger remembers the phase
//! that was last seen, which is done until it is absent or another one.

use crate::changes::Changes;
use crate::flow::requests::pod_phases::BY_PHASE;
use crate::flow::requests::{accept_new, ignore_input, request_by_phase, requested_strategy};
use crate::ledger::LedgerChange;
use crate::{Cluster, Context, Ledger, OperatorObject, Reason, annotation};

/// Accepts a new phase on one object. A phase that is there when the object is first read is older than our first
/// look, and not carried out.
pub(crate) fn accept_operator_phases(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let objects = context.snapshot.cluster.operator_objects.iter();
    objects.map(|object| accept_phase(context, ledger, object)).find(has_any).unwrap_or_default()
}

fn has_any(changes: &Changes) -> bool {
    *changes != Changes::default()
}

fn accept_phase(context: &Context<'_>, ledger: &Ledger, object: &OperatorObject) -> Changes {
    if object.facts.is_err() {
        return Changes::default();
    }
    let described = object.describe();
    let phase = object.annotation(annotation::PHASE).unwrap_or_default();
    let before = ledger.operator_phases.get(&described);
    if before.is_some_and(|before| before == phase) {
        return Changes::default();
    }
    let seen =
        LedgerChange::SetOperatorPhase { object: described.clone(), phase: phase.to_owned() };
    let mut changes = Changes::of_ledger(seen);
    if phase.is_empty() {
        return changes;
    }
    let ignored = |why| format!("The restart-phase {phase} on {described} is ignored: {why}");
    if before.is_none() {
        let message = ignored("it is older than the first look at this object");
        changes.event(None, Reason::RequestAdopted, message);
        return changes;
    }
    let strategy = match requested_strategy(phase, "it") {
        Ok(strategy) => strategy,
        Err(why) => return ignore_input(None, format!("{described}: {why}")),
    };
    if is_asked_for(&context.snapshot.cluster, ledger) {
        let message = ignored("the one on the SearchCluster counts");
        changes.event(None, Reason::InputIgnored, message);
        return changes;
    }
    let request = request_by_phase(context, strategy, format!("{BY_PHASE} on {described}"));
    changes.merge(accept_new(context, ledger, request));
    changes
}

/// True if a phase on the SearchCluster is about to be carried out.
fn is_asked_for(cluster: &Cluster, ledger: &Ledger) -> bool {
    let phase = cluster.annotations.get(annotation::PHASE);
    phase.is_some_and(|phase| {
        ledger.kept_phase.as_ref() != Some(phase) && requested_strategy(phase, "it").is_ok()
    })
}

/// Message that the phase on an object of an operator is not carried out again.
pub(crate) fn why_done(cluster: &Cluster, ledger: &Ledger) -> Option<String> {
    let mut objects = cluster.operator_objects.iter();
    let done = |object: &OperatorObject| {
        let phase = object.annotation(annotation::PHASE)?;
        let described = object.describe();
        let is_seen = ledger.operator_phases.get(&described).is_some_and(|seen| seen == phase);
        is_seen.then(|| {
            format!(
                "the restart-phase {phase} on {described} was seen and is not carried out again: remove it there, \
                 then write it for another restart"
            )
        })
    };
    objects.find_map(done)
}
