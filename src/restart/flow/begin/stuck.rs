//! A restart that the reconciler requested itself ends if none of its nodes can be restarted for a
//! long time. Nobody waits for it, and the requests of people wait behind it.

use std::time::Duration;

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::observed::not_held;
use crate::flow::requests::is_own;
use crate::ledger::RestartChange;
use crate::{Member, MemberStep, Outcome, Restart, Time};

/// Time after which a stuck restart ends, in phase timeouts: four hours by default, so that the shards of a
/// large node can be copied meanwhile.
const PHASES: u64 = 16;

/// Ends the restart once it has been stuck for too long; `chosen`: the changes of this plan for the nodes
/// that wait. The time counts from the plan that first found it stuck, not from its last node: in between the
/// reconciler may have been down, a person may have paused the restart, or no maintenance window was open.
pub(crate) fn end_if_stuck(context: &Context<'_>, restart: &Restart, chosen: &Changes) -> Changes {
    let mut changes = Changes::default();
    let has_turns = restart.members.iter().any(Member::is_under_way) || !chosen.ledger.is_empty();
    if !is_own(restart) || has_turns || !restart.has_scheduled() {
        return changes;
    }
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    let is_held = not_held(context, &restart.request).is_err();
    let last_turn = last_turn(restart);
    let known = restart.stuck_since.filter(|at| *at >= last_turn);
    let longest = phase.saturating_mul(PHASES);
    match known {
        Some(_) if is_held => changes.change(RestartChange::SetStuck(None)),
        Some(since) if now.since(since) >= longest => {
            let longest = humantime::format_duration(Duration::from_millis(longest));
            let reason = format!("no node could be restarted for {longest}{}", why(chosen));
            changes.end_with(Outcome::Aborted, reason);
        }
        None if now.since(last_turn) >= phase && !is_held => {
            changes.change(RestartChange::SetStuck(Some(now)));
        }
        Some(_) | None => {}
    }
    changes
}

/// Time when the last finished member took its slot, or when the restart started if none is finished.
pub(crate) fn last_turn(restart: &Restart) -> Time {
    let finished = restart.members.iter().filter(|member| member.step == MemberStep::Finished);
    finished.map(|member| member.since).fold(restart.started, Time::max)
}

/// The reason of the first node that waits, as the end of a message; a blocker comes before other reasons.
fn why(chosen: &Changes) -> String {
    let blocked = chosen.waits.iter().filter(|wait| wait.pod.is_some());
    let first = blocked.clone().find(|wait| wait.code.blocks()).or_else(|| blocked.clone().next());
    first.map_or(String::new(), |wait| format!(": {}", wait.message))
}
