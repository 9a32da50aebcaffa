//! Changes on the engine before a stop, and how they are undone afterwards: votes, shutdown
//! records, allocation of shards.

pub(super) mod allocation;
pub(super) mod record;
pub(super) mod voting;

use super::turn::Turn;
use crate::context::Context;
use crate::{Color, Ledger, Member, Restart};

/// Prepares the engine for a stop of this member; passes once that is complete.
pub(super) fn prepare(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Result<(), Turn> {
    record::announce(context, ledger, restart, member)?;
    allocation::tighten(context, ledger, member)?;
    match (context.index.engine(), &member.node_id) {
        // Another client may have announced a restart at the same time as we did.
        (Ok(engine), Some(node_id)) => Ok(record::is_alone(context, engine, ledger, node_id)?),
        (Ok(_), None) | (Err(_), _) => Ok(()),
    }
}

/// True if a flush is still due before a stop of this node, or of all (`*`). With a primary missing no flush
/// is due: an engine lets the flush wait for that primary for a minute, and the stop flushes the shards of
/// the node itself.
pub(super) fn is_to_be_flushed(context: &Context<'_>, node: &str) -> bool {
    let Ok(engine) = context.index.engine() else { return false };
    let is_red = engine.health.as_ref().is_ok_and(|health| health.color == Color::Red);
    !is_red && !context.snapshot.flushed.contains(node)
}

/// Undoes our changes on the engine for this member, once the node is proven back or at the end of a
/// compensation; passes when none is left.
pub(super) fn clean_up(
    context: &Context<'_>,
    ledger: &Ledger,
    member: &Member,
) -> Result<(), Turn> {
    voting::vote_again(context, ledger, member)?;
    record::withdraw(context, ledger, member)?;
    allocation::lift_limit(context, ledger, member)
}
