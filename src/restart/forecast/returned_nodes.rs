//! The assumption of a forecast: a node that was restarted serves again, and the shard copies that
//! the cluster misses are on it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Color, Engine, Member, MemberStep, Node, ShardCopy, Snapshot};
use stayput_api::{Desired, State};

/// Makes the nodes of these members serve, and lets copies that are being built be complete.
pub(super) fn bring_back(snapshot: &mut Snapshot, members: &[Member]) {
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
    // What the cluster misses may be what it has been missing since the nodes before.
    let is_done =
        |member: &&Member| member.step == MemberStep::Finished && !uids.contains(&*member.pod_uid);
    let done: Vec<String> =
        snapshot.ledger.members().filter(is_done).map(|member| member.node.clone()).collect();
    if let Ok(engine) = &mut snapshot.engine {
        add_nodes(engine, members, &done);
    }
}

/// Adds the nodes that are missing, and places the unassigned copies on these members' nodes, also on
/// one that has joined already, and on nodes that are `done`: allocation was limited all the time.
fn add_nodes(engine: &mut Engine, members: &[Member], done: &[String]) {
    let listed: BTreeMap<&str, bool> =
        engine.nodes.iter().map(|node| (&*node.name, node.holds_data())).collect();
    let is_listed = |member: &&Member| listed.contains_key(&*member.node);
    let (joined, absent): (Vec<&Member>, Vec<&Member>) = members.iter().partition(is_listed);
    let missing: Vec<Node> = absent.iter().map(|member| node_of(member, engine)).collect();
    let takes_copies = |member: &Member| {
        let known = listed.get(&*member.node).copied();
        known.unwrap_or_else(|| member.roles.is_empty() || node_of(member, engine).holds_data())
    };
    let names: Vec<String> = absent
        .into_iter()
        .chain(joined)
        .filter(|member| takes_copies(member))
        .map(|member| member.node.clone())
        .chain(done.iter().filter(|node| listed.get(&***node) == Some(&true)).cloned())
        .collect();
    engine.nodes.extend(missing);
    let Ok(shards) = &mut engine.shards else { return };
    let mut copies = shards.to_vec();
    let unplaced = place_copies(&mut copies, &names);
    *shards = copies.into_iter().collect();
    let data = engine.nodes.iter().filter(|node| node.holds_data());
    let data_nodes = u32::try_from(data.count()).unwrap_or(u32::MAX);
    if let Ok(health) = &mut engine.health {
        health.color = match unplaced {
            Unplaced { primaries: 0, replicas: 0 } => Color::Green,
            Unplaced { primaries: 0, .. } => Color::Yellow,
            Unplaced { .. } => Color::Red,
        };
        health.data_nodes = data_nodes;
        health.timed_out = false;
        health.initializing = 0;
        health.relocating = 0;
        health.delayed = 0;
        health.in_flight_fetch = 0;
        health.unassigned = unplaced.primaries + unplaced.replicas;
    }
}

/// A node that the engine does not list, as its ledger entry describes it. An entry of an earlier
/// version knows no roles.
fn node_of(member: &Member, engine: &Engine) -> Node {
    let mut roles = member.roles.clone();
    if roles.is_empty() && member.master_eligible {
        roles.insert("master".to_owned());
    }
    Node {
        id: member.node_id.clone().unwrap_or_else(|| format!("returned {}", member.node)),
        name: member.node.clone(),
        ephemeral_id: format!("returned {}", member.node),
        roles,
        roles_unknown: false,
        zone: member.zone.clone(),
        version: engine.nodes.first().map(|node| node.version.clone()).unwrap_or_default(),
        heap_max: None,
        snapshot: None,
    }
}

/// Number of copies that no node could take.
struct Unplaced {
    primaries: u32,
    replicas: u32,
}

/// Places each unassigned copy on one of the nodes, no two copies of a shard on the same node, and
/// makes all copies started.
fn place_copies(copies: &mut [ShardCopy], nodes: &[String]) -> Unplaced {
    let mut unplaced = Unplaced { primaries: 0, replicas: 0 };
    let known: BTreeSet<&String> = nodes.iter().collect();
    let on_them = copies.iter().filter_map(|copy| {
        let node = copy.node.as_ref().filter(|node| known.contains(node))?;
        Some((copy.index.clone(), copy.shard, node.clone()))
    });
    let mut taken: BTreeSet<(String, u32, String)> = on_them.collect();
    for copy in copies {
        if copy.node.is_none() {
            let mut places =
                nodes.iter().map(|node| (copy.index.clone(), copy.shard, node.clone()));
            let Some(place) = places.find(|place| !taken.contains(place)) else {
                if copy.primary {
                    unplaced.primaries += 1
                } else {
                    unplaced.replicas += 1
                }
                continue;
            };
            copy.node = Some(place.2.clone());
            taken.insert(place);
        }
        copy.started = true;
    }
    unplaced
}
