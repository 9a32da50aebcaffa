//! The history: restarts that have ended, and requests that never began.

use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;
use crate::{Ending, HistoryEntry, Outcome, Reason, Request, Restart};

/// Reports how a restart ended, and adds it to the history.
pub(super) fn record_end(
    context: &Context<'_>,
    restart: &Restart,
    ending: Ending,
    nodes: usize,
) -> Changes {
    let seconds = context.snapshot.now.since(restart.started) / 1000;
    let id = &restart.request.id;
    let (reason, message) = match ending.outcome {
        Outcome::Done => {
            (Reason::RestartFinished, format!("Restart {id} is done: {nodes} nodes in {seconds} s"))
        }
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => (
            Reason::RestartAborted,
            format!("Restart {id}: {} ({})", ending.outcome.as_str(), ending.reason),
        ),
    };
    let mut changes = Changes::default();
    changes.event(None, reason, message);
    changes.change(LedgerChange::AddHistory(HistoryEntry {
        id: id.clone(),
        strategy: restart.request.strategy,
        outcome: ending.outcome,
        reason: ending.reason,
        started: restart.started,
        seconds,
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
    }));
    changes
}

/// Adds a request to the history that ended before it began.
pub(super) fn record_unbegun(
    context: &Context<'_>,
    request: &Request,
    outcome: Outcome,
    reason: String,
) -> LedgerChange {
    LedgerChange::AddHistory(HistoryEntry {
        id: request.id.clone(),
        strategy: request.strategy,
        outcome,
        reason,
        started: context.snapshot.now,
        seconds: 0,
        nodes: 0,
    })
}
