//! Requests on the SearchCluster, and the one that waits in the queue.

use super::open::{open, remember, waits_for_engine};
use super::{ignore_input, kept_phase};
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::coordinated::supersede::why_not_superseded;
use crate::flow::finish::finished;
use crate::flow::history::{record_end, record_unbegun};
use crate::flow::observed::is_deleted_with_its_pods;
use crate::ledger::LedgerChange;
use crate::{Action, Ending, Ledger, MAX_HANDLED, Outcome, Phase, Reason, Request, annotation};

/// Ends the restart under way and the queued request of a SearchCluster that is being deleted: it accepts
/// nothing any more.
pub(crate) fn end_for_deletion(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    if is_deleted_with_its_pods(context) {
        // There is no node left to wait for, and no debt left that could be paid.
        if let Some(restart) = &ledger.restart {
            let reason = "the SearchCluster was deleted together with its pods".to_owned();
            let ending = Ending { outcome: Outcome::Aborted, reason };
            changes.merge(record_end(context, restart, ending, finished(restart), None));
            changes.change(LedgerChange::CloseRestart);
        }
        changes.change(LedgerChange::ForgetDebts);
        return changes;
    }
    if ledger.restart.is_some() {
        changes.end_with(Outcome::Aborted, "the SearchCluster is being deleted");
    }
    if ledger.queued.is_some() {
        changes.change(LedgerChange::SetQueued(None));
    }
    changes
}

/// Replaces a phase on the SearchCluster by a request, so that it is accepted only once.
pub(crate) fn claim_phase(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let cluster = &context.snapshot.cluster;
    let Some(written) = cluster.annotations.get(annotation::PHASE) else {
        return kept_phase::forget(ledger);
    };
    if ledger.kept_phase.as_ref() == Some(written) {
        return Changes::default();
    }
    if !cluster.has_status {
        return kept_phase::adopt(written);
    }
    match Phase::parse(written).map(|phase| (phase, phase.asks_for())) {
        Ok((
            Phase::Schedule | Phase::ScheduleRolling | Phase::ScheduleCoordinated,
            Some(strategy),
        )) => {
            let id = context.snapshot.fresh_id.clone();
            let by = Some(kept_phase::BY_PHASE.to_owned());
            let request = Request { id, strategy, by, ..Request::default() };
            if kept_phase::comes_back(ledger, strategy) {
                return kept_phase::keep(context, written);
            }
            if cluster.phase_applied_by.is_some() {
                let mut changes = kept_phase::keep(context, written);
                changes.merge(accept_new(context, ledger, request));
                return changes;
            }
            Changes::action(Action::ClaimTrigger { phase: written.clone(), request })
        }
        Ok((phase, _)) => ignore_input(
            None,
            format!(
                "{} on the SearchCluster asks for nothing: write schedule, schedule-rolling or \
                 schedule-coordinated",
                phase.as_str()
            ),
        ),
        Err(unknown) => ignore_input(None, unknown.to_string()),
    }
}

/// Accepts the request on the SearchCluster, once.
pub(crate) fn accept_request(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let cluster = &context.snapshot.cluster;
    let Some(text) = cluster.annotations.get(annotation::REQUEST) else {
        return Changes::default();
    };
    match Request::parse(text) {
        Ok(request) if ledger.has_handled(&request.id) => keep_in_mind(context, ledger, &request),
        Ok(request) => accept_new(context, ledger, request),
        Err(error) => ignore_input(None, error.to_string()),
    }
}

/// Remembers a known request anew before its id is forgotten. One that stays on the SearchCluster, or comes
/// back there, is never forgotten, however many others are made meanwhile.
fn keep_in_mind(context: &Context<'_>, ledger: &Ledger, request: &Request) -> Changes {
    let newer = ledger.handled.iter().rev().take_while(|id| **id != request.id).count();
    if newer < MAX_HANDLED / 2 {
        Changes::default()
    } else {
        Changes::of_ledger(remember(context, &request.id))
    }
}

fn accept_new(context: &Context<'_>, ledger: &Ledger, request: Request) -> Changes {
    if context.snapshot.cluster.has_status {
        begin_or_queue(context, ledger, request)
    } else {
        adopt(context, &request)
    }
}

/// Remembers a request that is older than the status, without carrying it out: it was made before the
/// reconciler was there.
fn adopt(context: &Context<'_>, request: &Request) -> Changes {
    let mut changes = Changes::of_ledger(remember(context, &request.id));
    let message =
        format!("Request {} is older than this SearchCluster's status: ignored", request.id);
    changes.event(None, Reason::RequestAdopted, message);
    changes
}

/// Begins a request, or lets it wait for the one under way.
fn begin_or_queue(context: &Context<'_>, ledger: &Ledger, request: Request) -> Changes {
    let mut changes = Changes::of_ledger(remember(context, &request.id));
    let waits = ledger.restart.is_some() || waits_for_engine(context, &request).is_some();
    if let Some(replaced) = ledger.queued.as_ref().filter(|_| waits) {
        let reason = format!("request {} took its place in the queue", request.id);
        changes.change(record_unbegun(context, replaced, Outcome::Superseded, reason));
    }
    match ledger.restart {
        None => changes.merge(open(context, request)),
        Some(_) => changes.change(LedgerChange::SetQueued(Some(request))),
    }
    changes
}

/// Reports once that a request waits in the queue.
pub(crate) fn report_queued(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let (Some(queued), Some(restart)) = (&ledger.queued, &ledger.restart) else { return changes };
    if context.snapshot.ledger.queued.as_ref() != Some(queued) {
        let mut message = format!("Request {} waits for the restart under way", queued.id);
        if let Some(obstacle) = why_not_superseded(context, ledger, restart) {
            message = format!("{message} and does not take its place: {}", obstacle.message);
        }
        changes.event(None, Reason::RestartQueued, message);
    }
    changes
}

/// Begins the request in the queue once nothing is under way.
pub(crate) fn open_queued(context: &Context<'_>, ledger: &Ledger) -> Changes {
    match (&ledger.restart, &ledger.queued) {
        (None, Some(queued)) => {
            let mut changes = Changes::of_ledger(LedgerChange::SetQueued(None));
            changes.merge(open(context, queued.clone()));
            changes
        }
        (Some(_), _) | (None, None) => Changes::default(),
    }
}
