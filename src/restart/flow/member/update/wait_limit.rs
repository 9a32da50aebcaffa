//! Limits the wait for hindrances of a changed pod that may pass by themselves.

use crate::context::Context;
use crate::flow::turn::Turn;
use crate::{Member, MemberUpdate};

/// Passes while a hindrance of the member (its reason, and a number of milliseconds) may still pass: for that
/// time, from when it was first seen. The ledger has the time when it was seen until it has passed.
pub(super) fn while_it_may_pass(
    context: &Context<'_>,
    member: &Member,
    hindrance: Option<(&str, u64)>,
) -> Result<(), Turn> {
    let Some(fixed) = &member.update else { return Ok(()) };
    let now = context.snapshot.now;
    let hindered_since = match (hindrance, fixed.hindered_since) {
        (None, None) => return Ok(()),
        (None, Some(_)) => None,
        (Some(_), None) => Some(now),
        (Some((why, within)), Some(since)) => {
            let is_over = now.since(since) >= within;
            return if is_over { Err(Turn::Abort(why.to_owned())) } else { Ok(()) };
        }
    };
    let update = MemberUpdate { hindered_since, ..(**fixed).clone() };
    Err(Turn::change(Member { update: Some(Box::new(update)), ..member.clone() }))
}
