//! Whether a stop would cost the quorum or a shard, computed in the simplest way.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Engine, Request, ShardCopy, Voting};

/// Why no majority would be left without `node` and the nodes that are `down`.
pub(super) fn quorum_lost(engine: &Engine, node: &str, down: &BTreeSet<String>) -> Option<String> {
    let this = engine.nodes.iter().find(|listed| listed.name == node)?;
    if !this.is_master_eligible() {
        return None;
    }
    let stays = |id: &&String| {
        engine
            .nodes
            .iter()
            .any(|listed| &listed.id == *id && listed.name != node && !down.contains(&listed.name))
    };
    match &engine.voting {
        Err(unknown) => Some(format!("who votes is unknown: {}", unknown.message)),
        Ok(Voting::Configurations { committed, accepted, .. }) => {
            for voters in [committed, accepted] {
                let left = voters.iter().filter(stays).count();
                if voters.contains(&this.id) && 2 * left <= voters.len() {
                    return Some(format!("{left} of {} voters stay", voters.len()));
                }
            }
            None
        }
        Ok(Voting::MinimumMasterNodes(minimum)) => {
            let left = engine
                .nodes
                .iter()
                .filter(|listed| listed.is_master_eligible())
                .filter(|listed| listed.name != node && !down.contains(&listed.name))
                .count();
            let needed = usize::try_from(*minimum).unwrap();
            (left < needed).then(|| format!("{left} masters stay, {needed} are needed"))
        }
    }
}

/// A shard that would have no started copy left. A searchable snapshot may, and so may an index
/// without replicas that the `request` consents to.
pub(super) fn copy_lost(
    engine: &Engine,
    node: &str,
    down: &BTreeSet<String>,
    request: Option<&Request>,
) -> Option<String> {
    let consents = request.into_iter().flat_map(|request| &request.allow_unreplicated);
    let consents: Vec<_> = consents.map(|one| glob::Pattern::new(one).unwrap()).collect();
    let this = engine.nodes.iter().find(|listed| listed.name == node)?;
    let copies = match &engine.shards {
        Ok(copies) => copies.to_vec(),
        Err(_) if !this.holds_data() => return None,
        Err(unknown) => return Some(format!("the shards are unknown: {}", unknown.message)),
    };
    let mut of: BTreeMap<(&str, u32), Vec<&ShardCopy>> = BTreeMap::new();
    for copy in &copies {
        of.entry((&copy.index, copy.shard)).or_default().push(copy);
    }
    for ((index, shard), copies) in of {
        let is_up = |copy: &&&ShardCopy| {
            copy.started
                && copy.node.as_ref().is_some_and(|holder| {
                    holder != node
                        && !down.contains(holder)
                        && engine.nodes.iter().any(|listed| &listed.name == holder)
                })
        };
        let from_repository =
            engine.searchable_snapshots.as_ref().is_ok_and(|names| names.contains(index));
        let consented = consents.iter().any(|pattern| pattern.matches(index));
        if copies.len() == 1 && (from_repository || consented) {
            continue;
        }
        let here = copies.iter().any(|copy| copy.started && copy.node.as_deref() == Some(node));
        if here && copies.iter().filter(is_up).count() == 0 {
            return Some(format!("{index}/{shard}"));
        }
    }
    None
}
