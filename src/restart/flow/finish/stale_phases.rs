//! Pods that still show the phase of a restart whose nodes are all done. The apiserver may refuse their
//! patches for good, by an admission webhook for example; the restart ends all the same, and so does a
//! SearchCluster that is being deleted.

use std::time::Duration;

use crate::flow::begin::stuck::last_turn;
use crate::rules::NameList;
use crate::{Context, Ledger, Member, Restart, Time, last_end};

/// Decision on a restart, or on the end of a SearchCluster, whose pods still show a phase.
pub(super) enum StalePhases {
    /// Wait for the patches.
    Waits,
    /// Wait for the patches, which this plan is the first to find late.
    Late,
    /// End without the patches, with this message.
    GivenUp(String),
}

/// Decides if the restart waits for the patches of these members' pods.
pub(super) fn of(context: &Context<'_>, restart: &Restart, members: &[&Member]) -> StalePhases {
    let last_turn = last_turn(restart);
    let since = restart.stuck_since.filter(|at| *at >= last_turn);
    let nodes = members.iter().map(|member| member.node.as_str());
    wait(context, last_turn, since, nodes)
}

/// Decides if the end of a SearchCluster that is being deleted waits for the patches of these nodes' pods.
pub(super) fn of_deletion<'a>(
    context: &Context<'_>,
    ledger: &Ledger,
    nodes: impl Iterator<Item = &'a str>,
) -> StalePhases {
    let last_end = last_end(ledger).unwrap_or_default();
    wait(context, last_end, ledger.still_shown_since, nodes)
}

/// Waits for the patches as long as a phase may take, from the plan that first found them late: until then
/// nobody may have tried them. They are late a phase after `from`.
fn wait<'a>(
    context: &Context<'_>,
    from: Time,
    since: Option<Time>,
    nodes: impl Iterator<Item = &'a str>,
) -> StalePhases {
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    match since {
        Some(since) if now.since(since) >= phase => {
            let mut names = NameList::default();
            nodes.for_each(|node| names.add(node));
            let phase = humantime::format_duration(Duration::from_millis(phase));
            StalePhases::GivenUp(format!(
                "the pods of {names} still show an old phase: they could not be patched for {phase}"
            ))
        }
        None if now.since(from) >= phase => StalePhases::Late,
        Some(_) | None => StalePhases::Waits,
    }
}
