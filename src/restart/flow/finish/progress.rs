//! Events about the progress of a long restart.

use crate::changes::Changes;
use crate::context::Context;
use crate::estimate::Estimate;
use crate::{Ledger, MemberStep, Reason};

/// Minimum number of nodes for progress events, and the number of these events: with fewer nodes the event of
/// each node is enough.
const MANY: usize = 10;

/// Reports when another tenth of the nodes is done. The event belongs to the ledger write that
/// finishes the node, so it is recorded once. The end of the restart has its own event.
pub(crate) fn report_progress(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let before = done(&context.snapshot.ledger);
    let after = done(ledger);
    let (Some((id, before, _)), Some((same, done, nodes))) = (before, after) else {
        return changes;
    };
    let tenth = |done: usize| done * MANY / nodes;
    if id != same || nodes < MANY || done == nodes || tenth(done) <= tenth(before) {
        return changes;
    }
    let estimate = ledger.restart.as_ref();
    let estimate = estimate.and_then(|restart| Estimate::of(restart, context.snapshot.now));
    let left = estimate.map(|estimate| format!(", estimate: {}", estimate.left()));
    let message = format!("Restart {id}: {done} of {nodes} nodes done{}", left.unwrap_or_default());
    changes.event(None, Reason::RestartProgress, message);
    changes
}

/// Id of the restart under way, number of its finished nodes, and number of all its nodes.
fn done(ledger: &Ledger) -> Option<(&str, usize, usize)> {
    let restart = ledger.restart.as_ref()?;
    let done = restart.members.iter().filter(|member| member.step == MemberStep::Finished).count();
    Some((&restart.request.id, done, restart.members.len()))
}
