//! Cancel: no further stops; nodes already stopped are finished.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::history::record_unbegun;
use crate::ledger::LedgerChange;
use crate::{Action, Ledger, Outcome, Reason, annotation};

/// Accepts a cancel on the SearchCluster. Once it is in the ledger, the annotation is removed.
pub(crate) fn accept_cancel(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(id) = context.snapshot.cluster.annotations.get(annotation::CANCEL) else {
        return changes;
    };
    if let Some(queued) = ledger.queued.as_ref().filter(|queued| queued.id == *id) {
        changes.change(LedgerChange::SetQueued(None));
        let reason = "cancelled before it began".into();
        changes.change(record_unbegun(context, queued, Outcome::Aborted, reason));
        return changes;
    }
    let clear = Action::ClearAnnotation { key: annotation::CANCEL.to_owned(), value: id.clone() };
    let restart = ledger.restart.as_ref().filter(|restart| restart.request.id == *id);
    match restart.filter(|restart| restart.ending.is_none()) {
        // Ended, cancelled already, or unknown: nothing is left to do.
        None => changes.act(clear),
        Some(restart) => match restart.why_not_cancellable() {
            Some(why) => {
                let message = format!("Restart {id} cannot be cancelled any more: {why}");
                changes.event(None, Reason::InputIgnored, message);
                changes.act(clear);
            }
            None => changes.end_with(Outcome::Aborted, "cancelled"),
        },
    }
    changes
}
