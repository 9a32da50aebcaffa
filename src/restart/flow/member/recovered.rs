//! A node that is back keeps its slot for a moment while shards recover. Mostly that is all that the next
//! node waits for: then the end of one and the slot of the other are one write of the ledger.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::turn::Turn;
use crate::{Blocker, Code, Color, Disabled, Health, Manager, Predicate, Restart, Strategy};

/// Longest wait for recovering shards, in milliseconds from when the node is ready: a large recovery is not
/// waited for, since people would look at a node that is back and counts as under way.
const LONGEST: u64 = 5_000;

/// Passes once no shard recovers, if nothing is gained by waiting for that, or after [`LONGEST`].
pub(super) fn until_recovered(
    context: &Context<'_>,
    restart: &Restart,
    manager: &Manager,
) -> Result<(), Turn> {
    let Some(left) = left(context, manager) else { return Ok(()) };
    if !another_waits_for_green(&context.policy.disabled, restart) || !recovers(context) {
        return Ok(());
    }
    let message = "it is back; its shards recover, and the next node waits for that".to_owned();
    let blocker = Blocker { code: Code::Recovering, message };
    let changes = Changes { requeue: Some(left), ..Changes::default() };
    Err(Turn::Act(Box::new(changes), Some(blocker)))
}

/// Time that the node may still wait, in milliseconds.
fn left(context: &Context<'_>, manager: &Manager) -> Option<u64> {
    let waited = context.snapshot.now.since(manager.ready_since?);
    LONGEST.checked_sub(waited).filter(|left| *left > 0)
}

/// True if a node of the same restart still needs a slot, and gets it only in a green or settled cluster.
fn another_waits_for_green(disabled: &Disabled, restart: &Restart) -> bool {
    restart.request.strategy == Strategy::Rolling
        && restart.ending.is_none()
        && restart.has_scheduled()
        && !disabled.clone().with_restart(Some(restart)).contains(Predicate::Yellow)
}

fn recovers(context: &Context<'_>) -> bool {
    let health = context.index.engine().ok().and_then(|engine| engine.health.as_ref().ok());
    let moves = |health: &Health| {
        health.initializing + health.delayed + health.in_flight_fetch > 0 || health.timed_out
    };
    health.is_some_and(|health| health.color == Color::Yellow && moves(health))
}
