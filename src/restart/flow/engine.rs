//! Changes on the engine before a stop, and how they are undone afterwards: votes, shutdown
//! records, allocation of shards.

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

/// Once the node is proven back, or at the end of a compensation: passes when none of our changes
/// on the engine is left for this member.
pub(super) fn clean_up(
    context: &Context<'_>,
    ledger: &Ledger,
    member: &Member,
) -> Result<(), Turn> {
    voting::vote_again(context, ledger, member)?;
    record::withdraw(context, ledger, member)?;
    allocation::loosen(context, ledger, member)
}
