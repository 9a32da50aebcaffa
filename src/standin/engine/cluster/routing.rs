//! Allocation: what happens to copies when nodes leave, and where copies are placed.

use std::collections::BTreeSet;

use super::state::{CopyState, Index, Shard, ShardCopy, State, now_ms, time_value};

/// The setting for which copies may be allocated.
pub(crate) const ALLOCATION: &str = "cluster.routing.allocation.enable";

/// Removes `gone` from the cluster and unassigns their copies. `reason` is shown to operators.
pub(super) fn remove_nodes(state: &mut State, gone: &BTreeSet<String>, reason: &str) {
    let now = now_ms();
    for id in gone {
        state.nodes.remove(id);
    }
    let State { indices, shutdowns, .. } = state;
    for index in indices.values_mut() {
        let delay = index.delayed_timeout_ms;
        for shard in &mut index.shards {
            for copy in &mut shard.copies {
                let Some(node) = copy.node().filter(|node| gone.contains(*node)) else { continue };
                let node = node.to_owned();
                let record = shutdowns.get(&node).filter(|record| record.kind == "restart");
                let (reason, delay) = match record {
                    // Five minutes unless the request sets it; the longer of both is used.
                    Some(record) => {
                        let asked = record.allocation_delay.as_deref().and_then(time_value);
                        ("NODE_RESTARTING", delay.max(asked.unwrap_or(300_000)))
                    }
                    None => (reason, delay),
                };
                // After a stop of the whole cluster, no copy waits for its node.
                let delayed = delay > 0 && reason != "CLUSTER_RECOVERED";
                copy.place = CopyState::Unassigned {
                    reason: reason.to_owned(),
                    since_ms: now,
                    delayed_ms: delayed.then_some(now.saturating_add(delay)),
                };
                copy.last_node = Some(node);
            }
            settle_primary(shard);
        }
    }
}

/// Unassigns one replica that could not be written to.
pub(super) fn fail_copy(index: &mut Index, number: usize, node: &str) {
    let Some(shard) = index.shards.get_mut(number) else { return };
    let copy = shard.copies.iter_mut().find(|copy| !copy.primary && copy.node() == Some(node));
    if let Some(copy) = copy {
        copy.place = CopyState::Unassigned {
            reason: "ALLOCATION_FAILED".to_owned(),
            since_ms: now_ms(),
            delayed_ms: None,
        };
        copy.last_node = Some(node.to_owned());
        settle_primary(shard);
    }
}

/// Unassigns all copies of an index that was closed; each is where it was, on disk.
pub(super) fn reopen(index: &mut Index) {
    for shard in &mut index.shards {
        shard.copies.retain(|copy| copy.moves_from.is_none());
        for copy in &mut shard.copies {
            copy.last_node = copy.node().map(str::to_owned).or(copy.last_node.take());
            copy.place = CopyState::Unassigned {
                reason: "INDEX_REOPENED".to_owned(),
                since_ms: now_ms(),
                delayed_ms: None,
            };
        }
    }
}

/// Promotes a replica if the primary is gone, and updates the list of complete copies.
fn settle_primary(shard: &mut Shard) {
    if shard.primary_node().is_none()
        && let Some(new_primary) = shard.copies.iter().position(|copy| copy.started_on().is_some())
    {
        for (at, copy) in shard.copies.iter_mut().enumerate() {
            copy.primary = at == new_primary;
        }
        shard.primary_term += 1;
    }
    let started: BTreeSet<String> = shard.started().map(str::to_owned).collect();
    // If all are gone, the last complete copies stay complete.
    if !started.is_empty() {
        shard.in_sync = started;
    } else if shard.copies.iter().any(|copy| copy.primary && copy.node().is_none()) {
        for copy in shard.copies.iter_mut().filter(|copy| copy.node().is_some()) {
            copy.last_node = copy.node().map(str::to_owned);
            copy.place = CopyState::Unassigned {
                reason: "PRIMARY_FAILED".to_owned(),
                since_ms: now_ms(),
                delayed_ms: None,
            };
        }
    }
}

/// Marks a copy as in use.
pub(super) fn start_copy(index: &mut Index, number: usize, node: &str) {
    let Some(shard) = index.shards.get_mut(number) else { return };
    for copy in &mut shard.copies {
        if matches!(&copy.place, CopyState::Initializing { node: on, .. } if on == node) {
            copy.place = CopyState::Started { node: node.to_owned() };
            shard.in_sync.insert(node.to_owned());
        }
    }
    finish_moves(index, number, node);
}

/// Places every copy that may be placed.
pub(super) fn reroute(state: &mut State, configured: &str) {
    let now = now_ms();
    let enabled = [&state.transient, &state.persistent]
        .into_iter()
        .find_map(|settings| settings.get(ALLOCATION))
        .map_or(configured, String::as_str)
        .to_owned();
    let excluded = excluded(state);
    let names: Vec<String> = state.indices.keys().cloned().collect();
    for name in names {
        let shards = state.indices.get(&name).map_or(0, |index| index.shards.len());
        for number in 0..shards {
            // The load counts all copies, also those that were placed just now.
            let mut load = load(state);
            load.retain(|node| !excluded.contains(node));
            let Some(index) = state.indices.get_mut(&name) else { continue };
            place(&mut index.shards[number], &load, &enabled, now);
            begin_moves(&mut index.shards[number], &excluded, &load, &enabled);
        }
    }
}

/// Data nodes with the number of copies on each, the least loaded first, then by name.
fn load(state: &State) -> Vec<String> {
    let copies = || {
        let shards = state.indices.values().flat_map(|index| &index.shards);
        shards.flat_map(|shard| &shard.copies)
    };
    let mut nodes: Vec<_> = (state.nodes.values())
        .filter(|node| node.is_data())
        .map(|node| {
            let count = copies().filter(|copy| copy.node() == Some(&node.id)).count();
            (count, &node.name, &node.id)
        })
        .collect();
    nodes.sort();
    nodes.into_iter().map(|(_, _, id)| id.clone()).collect()
}

fn place(shard: &mut Shard, nodes: &[String], enabled: &str, now: u64) {
    for copy in &mut shard.copies {
        if let CopyState::Unassigned { delayed_ms: delayed @ Some(_), .. } = &mut copy.place
            && delayed.is_some_and(|until| until <= now)
        {
            *delayed = None;
        }
    }
    for at in 0..shard.copies.len() {
        let Some(node) = target(shard, &shard.copies[at], nodes, enabled) else { continue };
        let copy = &mut shard.copies[at];
        copy.place = CopyState::Initializing { node, since_ms: now };
        if copy.primary {
            shard.primary_term += 1;
        }
    }
}

/// The nodes where `copy` may be placed now.
fn target(shard: &Shard, copy: &ShardCopy, nodes: &[String], enabled: &str) -> Option<String> {
    let CopyState::Unassigned { delayed_ms, .. } = &copy.place else { return None };
    let last = copy.last_node.as_ref();
    let is_new = copy.primary && shard.in_sync.is_empty();
    let allowed = match enabled {
        "all" => true,
        "primaries" => copy.primary,
        "new_primaries" => is_new,
        _ => false,
    };
    if !allowed || (!copy.primary && shard.primary_node().is_none()) {
        return None;
    }
    let mut free = nodes.iter().filter(|node| {
        let taken = shard.copies.iter().any(|other| other.node() == Some(node));
        // An existing primary may only be placed where all documents are.
        let complete = !copy.primary || is_new || shard.in_sync.contains(*node);
        let waited_for = copy.primary || delayed_ms.is_none() || last == Some(*node);
        !taken && complete && waited_for
    });
    free.clone().find(|node| last == Some(*node)).or_else(|| free.next()).cloned()
}

/// When the next change can happen without an event, in milliseconds since 1970.
pub(super) fn next_deadline(state: &State) -> Option<u64> {
    let shards = state.indices.values().flat_map(|index| &index.shards);
    let copies = shards.flat_map(|shard| &shard.copies);
    let deadlines = copies.filter_map(|copy| match &copy.place {
        CopyState::Unassigned { delayed_ms, .. } => *delayed_ms,
        CopyState::Initializing { .. } | CopyState::Started { .. } => None,
    });
    deadlines.min()
}

// Copies move away from nodes that are excluded by name: a new copy is made beside the old one,
// and takes its place when it has every document.

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
fn begin_moves(shard: &mut Shard, excluded: &BTreeSet<String>, nodes: &[String], enabled: &str) {
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
fn finish_moves(index: &mut Index, number: usize, node: &str) {
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
