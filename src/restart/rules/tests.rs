//! The rules, on clusters described as text.

mod copies;
mod kept_stopped;
mod laws;
mod order;
mod order_of_rules;
mod preflight;
mod quorum;
mod quorum_enumerated;
mod settled;
mod silent;
mod table;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::Check;
use crate::index::OwnedNameSet;
use crate::{
    Allocation, Code, Color, Engine, Health, LastRequest, Manager, Node, Pod, Run, ShardCopies,
    ShardCopy, Sources, Unknown, Voting,
};
use stayput_api::{ConfigChoice, Desired, RequestKind, State};

/// A green cluster from `"a master elected, b data_hot ingest, c"`: names and roles. Every
/// electable node is a voter, and there are no shards.
pub(super) fn engine(nodes: &str) -> Engine {
    let mut master = None;
    let nodes: Vec<Node> = nodes
        .split(',')
        .filter(|node| !node.trim().is_empty())
        .map(|node| {
            let mut text = node.split_whitespace();
            let name = text.next().expect("a node has a name");
            let mut roles: BTreeSet<String> = text.map(str::to_owned).collect();
            if roles.remove("elected") {
                master = Some(id(name));
            }
            Node {
                id: id(name),
                name: name.to_owned(),
                ephemeral_id: format!("{name}-1"),
                roles,
                roles_unknown: false,
                zone: None,
                version: "8.19.0".to_owned(),
                heap_max: None,
                snapshot: None,
            }
        })
        .collect();
    let voters: BTreeSet<String> =
        nodes.iter().filter(|node| node.is_master_eligible()).map(|node| node.id.clone()).collect();
    let data_nodes = nodes.iter().filter(|node| node.holds_data()).count();
    Engine {
        version: "elasticsearch 8.19.0".to_owned(),
        cluster_uuid: "uuid".to_owned(),
        elected_master: master,
        health: Ok(Health {
            color: Color::Green,
            timed_out: false,
            data_nodes: u32::try_from(data_nodes).expect("small"),
            initializing: 0,
            relocating: 0,
            unassigned: 0,
            delayed: 0,
            in_flight_fetch: 0,
        }),
        voting: Ok(Voting::Configurations {
            committed: voters.clone(),
            accepted: voters,
            excluded: BTreeSet::new(),
        }),
        shards: Ok(ShardCopies::default()),
        searchable_snapshots: Ok(BTreeSet::new()),
        immovable: BTreeSet::new(),
        allocation: Ok(Allocation::default()),
        records: Ok(None),
        nodes,
    }
}

/// The id of a node.
fn id(name: &str) -> String {
    format!("id of {name}")
}

/// Ids from `"a b"`.
fn ids(names: &str) -> BTreeSet<String> {
    names.split_whitespace().map(id).collect()
}

/// Names from `"a b"`.
fn names(names: &str) -> OwnedNameSet {
    names.split_whitespace().map(str::to_owned).collect()
}

/// Copies from `"events/0: a* b"`: the primary has a star, a copy that is being built a tilde before
/// its node, a plus if it is a search replica, and a question mark is a copy that is nowhere.
fn shards(lines: &[&str]) -> ShardCopies {
    let copies = |line: &&str| -> Vec<ShardCopy> {
        let (shard, copies) = line.split_once(": ").expect("a shard and its copies");
        let (index, number) = shard.split_once('/').expect("an index and a number");
        copies
            .split_whitespace()
            .map(|copy| {
                let node = copy.trim_start_matches(['~', '+']).trim_end_matches('*');
                ShardCopy {
                    index: index.to_owned(),
                    shard: number.parse().expect("a number"),
                    primary: copy.ends_with('*'),
                    search_only: copy.contains('+'),
                    started: node != "?" && !copy.contains('~'),
                    node: Some(node.to_owned()).filter(|node| node != "?"),
                }
            })
            .collect()
    };
    lines.iter().flat_map(copies).collect()
}

/// A fact that could not be read.
fn unknown() -> Unknown {
    Unknown { message: "no answer within 5s".to_owned() }
}

/// A ready pod that runs the node of the same name; its manager has not answered yet.
fn pod(name: &str) -> Pod {
    Pod {
        uid: format!("uid of {name}"),
        name: name.to_owned(),
        node: name.to_owned(),
        container: None,
        program: None,
        annotations: BTreeMap::new(),
        ready: true,
        terminating: false,
        crash_looping: false,
        not_started: None,
        outdated: None,
        deadly_probe: None,
        undeletable: None,
        unchangeable: None,
        unreturnable: None,
        room: Ok(None),
        claim_uids: Ok(BTreeMap::new()),
        leaving: None,
        phase_applied_by: None,
        endpoint: Err(Unknown { message: "not read".into() }),
        operator: None,
        unserved_since: None,
        update: Ok(None),
        ahead: None,
        live: None,
        ignores_change: false,
        config_from: vec![],
        sources: Sources::Checksum("new".to_owned()),
        manager: Err(unknown()),
    }
}

/// A pod that passes every check.
fn fit(name: &str) -> Pod {
    let mut pod = pod(name);
    pod.manager = Ok(Manager {
        version: "0.1.0".to_owned(),
        upgraded_from: None,
        pod_uid: Some(pod.uid.clone()),
        durable: true,
        desired: Desired::Running,
        state: State::Running,
        draining: false,
        ready: Some(true),
        sequence: 7,
        last_request: Some(LastRequest {
            sequence: 7,
            kind: RequestKind::Start,
            accepted: true,
            by: "stayput-reconciler".to_owned(),
        }),
        run: Some(Run {
            id: "run".to_owned(),
            checksum: Some("old".to_owned()),
            config: ConfigChoice::Mounted,
            started: None,
            variables: None,
        }),
        last_exit: None,
        mounted: Some("new".to_owned()),
        lagging: None,
        live_mismatch: None,
        ignored_archive: None,
        variables: None,
        clock_ahead: 0,
        ready_since: None,
        last_good: Some("old".to_owned()),
        reason: None,
    });
    pod
}

/// The code of a blocker.
fn code(check: &Check) -> Option<Code> {
    check.as_ref().err().map(|blocker| blocker.code)
}

/// The message of a blocker.
fn message(check: Check) -> String {
    check.expect_err("a blocker").message
}
