//! Copies move away from nodes that are excluded by name: a new copy is made beside the old one,
//! and takes its place when it has every document.

use std::collections::BTreeSet;

use super::state::{CopyState, Index, Shard, ShardCopy, State, now_ms};

/// The setting with the names of the excluded nodes.
pub(crate) const EXCLUDED: &str = "cluster.routing.allocation.exclude._name";

/// Ids of the nodes that may have no copies. The transient value wins.
pub(crate) fn excluded(state: &State) -> BTreeSet<String> {
    let levels = [&state.transient, &state.persistent];
    let value = levels.into_iter().find_map(|settings| settings.get(EXCLUDED));
    let names: Vec<&str> = value.into_iter().flat_map(|value| value.split(',')).collect();
    let is_named = |name: &str| names.iter().any(|one| one.trim() == name);
    let nodes = state.nodes.values().filter(|node| is_named(&node.name));
    nodes.map(|node| node.id.clone()).collect()
}

/// Begins to move copies away from excluded nodes, to the first of `nodes` without a copy.
pub(super) fn begin(
    shard: &mut Shard,
    excluded: &BTreeSet<String>,
    nodes: &[String],
    enabled: &str,
) {
    let started: BTreeSet<String> = shard.started().map(str::to_owned).collect();
    // One of the two nodes is gone.
    shard.copies.retain(|copy| match &copy.moves_from {
        Some(from) => started.contains(from) && copy.node().is_some(),
        None => true,
    });
    for from in started.intersection(excluded) {
        let is_moving = |copy: &ShardCopy| copy.moves_from.as_ref() == Some(from);
        let is_primary = shard.primary_node() == Some(from);
        let is_allowed = enabled == "all" || (enabled == "primaries" && is_primary);
        if !is_allowed || shard.copies.iter().any(is_moving) {
            continue;
        }
        let has_copy =
            |node: &&String| shard.copies.iter().any(|copy| copy.node() == Some(node.as_str()));
        let Some(to) = nodes.iter().find(|node| !has_copy(node)) else { continue };
        let place = CopyState::Initializing { node: to.clone(), since_ms: now_ms() };
        let moves_from = Some(from.clone());
        shard.copies.push(ShardCopy { primary: false, place, last_node: None, moves_from });
    }
}

/// The copy on `node` is complete: it takes the place of the one that it was made from.
pub(super) fn finish(index: &mut Index, number: usize, node: &str) {
    let Some(shard) = index.shards.get_mut(number) else { return };
    let at = shard.copies.iter().position(|copy| copy.started_on() == Some(node));
    let Some(copy) = at.map(|at| &mut shard.copies[at]) else { return };
    let Some(from) = copy.moves_from.take() else { return };
    if shard.primary_node() == Some(&from) {
        shard.primary_term += 1;
        for copy in &mut shard.copies {
            copy.primary = copy.started_on() == Some(node);
        }
    }
    shard.copies.retain(|copy| copy.node() != Some(&from));
    shard.in_sync.remove(&from);
}
