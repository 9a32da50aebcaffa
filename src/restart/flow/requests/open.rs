//! A restart begins: its members are written to the ledger, and none of them has a slot yet.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::history::record_unbegun;
use crate::flow::target::members_of;
use crate::ledger::LedgerChange;
use crate::{Blocker, Direction, Once, Outcome, Reason, Request, Restart, annotation};

/// The blocker of a request that selects nodes by role or zone while the engine, which alone knows these, is
/// unreachable.
pub(super) fn waits_for_engine(context: &Context<'_>, request: &Request) -> Option<Blocker> {
    context.index.engine().err().filter(|_| request.target.is_by_engine())
}

/// Begins a restart of the nodes that the request selects.
pub(super) fn open(context: &Context<'_>, request: Request) -> Changes {
    let mut changes = Changes::default();
    if let Some(blocker) = waits_for_engine(context, &request) {
        let message = format!("only the engine knows roles and zones: {}", blocker.message);
        changes.wait_all(blocker.code, message);
        changes.change(LedgerChange::SetQueued(Some(request)));
        return changes;
    }
    let members = match members_of(context, &request.target) {
        Ok(members) => members,
        Err(message) => {
            let skipped = format!("Request {} skipped: {message}", request.id);
            changes.event(None, Reason::RestartSkipped, skipped);
            changes.change(record_unbegun(context, &request, Outcome::Aborted, message));
            return changes;
        }
    };
    let mut message = format!(
        "Starting {} restart {} of {} node{}",
        request.strategy.as_str(),
        request.id,
        members.len(),
        if members.len() == 1 { "" } else { "s" }
    );
    if request.allow_outage {
        message += ", allowing an outage";
    }
    if !request.skip_rules.is_empty() {
        message = format!("{message}, without {}", request.skip_rules.join(", "));
    }
    changes.event(None, Reason::RestartStarted, message);
    changes.change(LedgerChange::OpenRestart(Box::new(Restart {
        request,
        started: context.snapshot.now,
        began: None,
        stuck_since: None,
        direction: Direction::default(),
        ending: None,
        once: Once::default(),
        frozen: None,
        members,
    })));
    changes
}

/// Remembers an accepted request. The id of the request that is still on the SearchCluster is never
/// dropped: otherwise it would count as a new request.
pub(super) fn remember(context: &Context<'_>, id: &str) -> LedgerChange {
    let text = context.snapshot.cluster.annotations.get(annotation::REQUEST);
    let present = text.and_then(|text| Request::parse(text).ok());
    LedgerChange::RememberRequest { id: id.to_owned(), keep: present.map(|request| request.id) }
}
