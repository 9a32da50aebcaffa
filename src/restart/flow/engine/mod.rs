//! What is asked of the engine around a stop, and undone afterwards: its vote, its shutdown record,
//! the allocation of shards.

pub(super) mod allocation;
pub(super) mod record;
pub(super) mod voting;

use super::turn::Turn;
use crate::context::Context;
use crate::{Ledger, Member, Restart};

/// Before a stop: passes once the engine is prepared for it.
pub(super) fn prepare(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    member: &Member,
) -> Result<(), Turn> {
    record::announce(context, ledger, restart, member)?;
    allocation::tighten(context, ledger, member)
}

/// After the proof, or at the end of a compensation: passes once nothing of ours is left at the
/// engine for this member.
pub(super) fn clean_up(
    context: &Context<'_>,
    ledger: &Ledger,
    member: &Member,
) -> Result<(), Turn> {
    voting::vote_again(context, ledger, member)?;
    record::withdraw(context, ledger, member)?;
    allocation::loosen(context, ledger, member)
}
