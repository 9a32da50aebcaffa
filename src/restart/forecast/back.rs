//! The assumption of a dry run: a node that was restarted serves again, and what the cluster misses
//! has come back with it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Color, Engine, Member, Node, ShardCopy, Snapshot};
use stayput_api::{Desired, State};

/// Brings the nodes of these members back, as far as they are not there.
pub(super) fn bring(snapshot: &mut Snapshot, members: &[Member]) {
    if members.is_empty() {
        return;
    }
    let uids: BTreeSet<&str> = members.iter().map(|member| &*member.pod_uid).collect();
    for pod in snapshot.pods.iter_mut().filter(|pod| uids.contains(&*pod.uid)) {
        pod.ready = true;
        pod.crash_looping = false;
        if let Ok(manager) = &mut pod.manager {
            manager.state = State::Running;
            manager.desired = Desired::Running;
            manager.ready = Some(true);
        }
    }
    if let Ok(engine) = &mut snapshot.engine {
        list(engine, members);
    }
}

/// Lists those that are missing, and gives them the copies that are nowhere.
fn list(engine: &mut Engine, members: &[Member]) {
    let listed: BTreeSet<&str> = engine.nodes.iter().map(|node| &*node.name).collect();
    let missing: Vec<Node> = members
        .iter()
        .filter(|member| !listed.contains(&*member.node))
        .map(|member| returned(member, engine))
        .collect();
    let names: Vec<String> = missing.iter().map(|node| node.name.clone()).collect();
    engine.nodes.extend(missing);
    let Ok(copies) = &mut engine.shards else { return };
    let left = house(copies, &names);
    let data = engine.nodes.iter().filter(|node| node.holds_data());
    let data_nodes = u32::try_from(data.count()).unwrap_or(u32::MAX);
    if let Ok(health) = &mut engine.health {
        health.color = match left {
            Left { primaries: 0, replicas: 0 } => Color::Green,
            Left { primaries: 0, .. } => Color::Yellow,
            Left { .. } => Color::Red,
        };
        health.data_nodes = data_nodes;
        health.timed_out = false;
        health.initializing = 0;
        health.relocating = 0;
        health.delayed = 0;
        health.in_flight_fetch = 0;
        health.unassigned = left.primaries + left.replicas;
    }
}

/// A node that was not listed. What nobody knows of it stays unknown.
fn returned(member: &Member, engine: &Engine) -> Node {
    let role = member.master_eligible.then(|| "master".to_owned());
    Node {
        id: member.node_id.clone().unwrap_or_else(|| format!("returned {}", member.node)),
        name: member.node.clone(),
        ephemeral_id: format!("returned {}", member.node),
        roles: role.into_iter().collect(),
        zone: None,
        version: engine.nodes.first().map(|node| node.version.clone()).unwrap_or_default(),
    }
}

/// Copies that stay nowhere.
struct Left {
    primaries: u32,
    replicas: u32,
}

/// Puts each copy that is nowhere on one of the nodes, no two of one shard on the same, and lets
/// those being built be ready.
fn house(copies: &mut [ShardCopy], nodes: &[String]) -> Left {
    let mut left = Left { primaries: 0, replicas: 0 };
    let mut taken: BTreeMap<(String, u32), usize> = BTreeMap::new();
    for copy in copies {
        if copy.node.is_some() {
            copy.started = true;
            continue;
        }
        let place = taken.entry((copy.index.clone(), copy.shard)).or_default();
        match nodes.get(*place) {
            Some(node) => {
                copy.node = Some(node.clone());
                copy.started = true;
                *place += 1;
            }
            None if copy.primary => left.primaries += 1,
            None => left.replicas += 1,
        }
    }
    left
}
