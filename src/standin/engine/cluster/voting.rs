//! The voting configuration: the nodes of which a majority decides.

use std::collections::BTreeSet;

use super::state::{NodeInfo, State};

/// Whether `votes` are more than half of `config`.
fn is_majority(config: &BTreeSet<String>, votes: &BTreeSet<String>) -> bool {
    config.intersection(votes).count() * 2 > config.len()
}

/// Whether `votes` are enough to be elected on this state and to commit it.
pub(super) fn is_quorum(state: &State, votes: &BTreeSet<String>) -> bool {
    is_majority(&state.last_committed_config, votes)
        && is_majority(&state.last_accepted_config, votes)
}

/// Adapts the accepted configuration to the nodes that are there, as the real engines do: an odd
/// number, never below three after there were three, and only if it can decide at once.
pub(super) fn reconfigure(state: &mut State) {
    let excluded: BTreeSet<&String> =
        state.voting_config_exclusions.iter().map(|(id, _)| id).collect();
    let current = &state.last_accepted_config;
    let live: BTreeSet<&String> = (state.nodes.values())
        .filter(|node| node.is_master_eligible())
        .map(|node| &node.id)
        .filter(|id| !excluded.contains(id))
        .collect();
    let mut candidates: Vec<&String> =
        live.iter().copied().chain(current.iter().filter(|id| !excluded.contains(id))).collect();
    // The preferred nodes first: live, the master, already in the configuration, then by id.
    candidates.sort_by_key(|id| {
        (!live.contains(id), state.master.as_ref() != Some(id), !current.contains(*id), *id)
    });
    candidates.dedup();
    let least = if current.len() < 3 { 1 } else { 3 };
    let odd = live.len() - usize::from(live.len().is_multiple_of(2) && !live.is_empty());
    let next: BTreeSet<String> = candidates.into_iter().take(odd.max(least)).cloned().collect();
    let live: BTreeSet<String> = live.into_iter().cloned().collect();
    if is_majority(&next, &live) {
        state.last_accepted_config = next;
    }
}

/// The first configuration, made by a node that sees more than half of the initial masters; nodes
/// that it does not see have a placeholder in it. `None` if it must not be made.
pub(super) fn bootstrap(
    initial_masters: &BTreeSet<String>,
    seen: &[NodeInfo],
) -> Option<BTreeSet<String>> {
    let id_of = |name: &String| {
        let node = seen.iter().find(|node| node.name == *name && node.is_master_eligible());
        node.map(|node| node.id.clone())
    };
    let found = initial_masters.iter().filter(|name| id_of(name).is_some()).count();
    (found * 2 > initial_masters.len()).then(|| {
        let placeholder = |name: &String| format!("{{bootstrap-placeholder}}-{name}");
        initial_masters
            .iter()
            .map(|name| id_of(name).unwrap_or_else(|| placeholder(name)))
            .collect()
    })
}
