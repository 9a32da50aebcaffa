//! No restart: a cluster at rest, and requests to it.

use std::collections::{BTreeMap, BTreeSet};

use stayput_api::{ConfigChoice, Desired, State};
use stayput_restart::{
    Allocation, Cluster, Color, Engine, Health, KeptStopped, KnownConfigs, Ledger, Manager, Node,
    Pod, Policy, Run, ShardCopy, Snapshot, Sources, Time, Voting, annotation,
};

/// Shard copies of each node.
const COPIES: usize = 100;
pub(super) const NOW: Time = Time(1_795_000_000_000);
/// Of every request.
pub(super) const ID: &str = "1c7d9e52";

/// Every node runs with the config of its sources; green; three masters.
pub(super) fn at_rest(nodes: usize) -> Snapshot {
    let pods = by_name(nodes).map(pod).collect();
    Snapshot {
        now: NOW,
        fresh_id: "f00dbeef".into(),
        cluster: Cluster {
            name: "search/logs".into(),
            finalizer: true,
            has_status: true,
            ..Cluster::default()
        },
        ledger: Ledger { cluster_uuid: Some("uuid".into()), ..Ledger::default() },
        pods,
        configs: KnownConfigs::default(),
        engine: Ok(engine(nodes)),
        missing: Vec::new(),
        no_master: false,
        jumped: 0,
        node_sets: None,
        flushed: BTreeSet::new(),
    }
}

/// The numbers of all nodes in the order of their names. The reconciler lists its pods in this order,
/// and a ledger its members; so they are made in it here, and lie in memory as they do there.
pub(super) fn by_name(nodes: usize) -> impl Iterator<Item = usize> {
    let mut numbers: Vec<usize> = (0..nodes).collect();
    numbers.sort_by_cached_key(|number| name(*number));
    numbers.into_iter()
}

/// The uids are in no order, like those of Kubernetes.
pub(super) fn uid(number: usize) -> String {
    let scattered = scattered(number);
    format!("{:08x}-{:04x}-4000-8000-{number:012x}", scattered >> 32, scattered & 0xffff)
}

fn scattered(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(super) fn name(number: usize) -> String {
    format!("logs-data-{number}")
}

pub(super) fn checksum(round: u32) -> String {
    format!("sha256:{round:064x}")
}

pub(super) fn pod(number: usize) -> Pod {
    Pod {
        uid: uid(number),
        name: name(number),
        node: name(number),
        container: None,
        program: None,
        annotations: BTreeMap::new(),
        ready: true,
        terminating: false,
        crash_looping: false,
        not_started: None,
        outdated: None,
        deadly_probe: None,
        leaving: None,
        phase_applied_by: None,
        endpoint: Err(stayput_restart::Unknown { message: "not read".into() }),
        operator: None,
        unserved_since: None,
        update: Ok(None),
        ahead: None,
        live: None,
        ignores_change: false,
        undeletable: None,
        unreturnable: None,
        unchangeable: None,
        room: Ok(None),
        claim_uids: Ok([].into()),
        config_from: vec![],
        sources: Sources::Checksum(checksum(1)),
        manager: Ok(Manager {
            version: "0.1.0".into(),
            upgraded_from: None,
            pod_uid: Some(uid(number)),
            durable: true,
            desired: Desired::Running,
            state: State::Running,
            draining: false,
            ready: Some(true),
            sequence: 4,
            last_request: None,
            run: Some(Run {
                id: format!("run-{number}"),
                checksum: Some(checksum(1)),
                config: ConfigChoice::Mounted,
                started: None,
                variables: None,
            }),
            last_exit: None,
            mounted: Some(checksum(1)),
            lagging: None,
            live_mismatch: None,
            ignored_archive: None,
            variables: None,
            clock_ahead: 0,
            ready_since: None,
            last_good: Some(checksum(1)),
            reason: None,
        }),
    }
}

/// In no order, either, and as long as those of engines.
pub(super) fn node_id(number: usize) -> String {
    format!("{:016x}-{number:05}", scattered(number))
}

/// As the reconciler makes them of an engine's answer: in the order of their ids.
fn by_id(nodes: usize) -> Vec<Node> {
    let mut numbers: Vec<usize> = (0..nodes).collect();
    numbers.sort_by_cached_key(|number| node_id(*number));
    numbers.into_iter().map(node).collect()
}

/// Shards of two copies, index after index, as `_cat/shards` lists them.
pub(super) fn engine(nodes: usize) -> Engine {
    let shards = (0..nodes * COPIES / 2).flat_map(|shard| {
        [true, false].map(|primary| {
            let place = if primary { shard } else { shard + 1 + shard / nodes % (nodes - 1) };
            ShardCopy {
                index: format!("logs-2026.11.21-{:06}", shard / 10),
                shard: u32::try_from(shard % 10).unwrap_or(0),
                primary,
                search_only: false,
                started: true,
                node: Some(name(place % nodes)),
            }
        })
    });
    let shards = shards.collect();
    let masters: BTreeSet<String> = (0..3).map(node_id).collect();
    Engine {
        version: "elasticsearch 8.19.0".into(),
        cluster_uuid: "uuid".into(),
        nodes: by_id(nodes),
        elected_master: Some(node_id(0)),
        health: Ok(Health {
            color: Color::Green,
            timed_out: false,
            data_nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
            initializing: 0,
            relocating: 0,
            unassigned: 0,
            delayed: 0,
            in_flight_fetch: 0,
        }),
        voting: Ok(Voting::Configurations {
            committed: masters.clone(),
            accepted: masters,
            excluded: BTreeSet::new(),
        }),
        searchable_snapshots: Ok(Default::default()),
        immovable: Default::default(),
        shards: Ok(shards),
        allocation: Ok(Allocation::default()),
        records: Ok(None),
    }
}

fn node(number: usize) -> Node {
    let roles: &[&str] = match number {
        0..3 => &["data", "ingest", "master"],
        _ if number.is_multiple_of(4) => &["data_warm"],
        _ => &["data_hot", "data_content", "ingest"],
    };
    Node {
        id: node_id(number),
        name: name(number),
        ephemeral_id: format!("process-{number}"),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        roles_unknown: false,
        heap_max: None,
        zone: Some(format!("zone-{}", number % 3)),
        version: "8.19.0".into(),
        snapshot: None,
    }
}

/// The config sources have changed, and no restart is requested.
pub(super) fn drifting(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    for pod in &mut snapshot.pods {
        pod.sources = Sources::Checksum(checksum(2));
    }
    (snapshot, Policy::default())
}

/// A request that is accepted now: the restart of all nodes is written to the ledger.
pub(super) fn requested(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    let request = format!(r#"{{"id":"{ID}","strategy":"rolling"}}"#);
    snapshot.cluster.annotations.insert(annotation::REQUEST.into(), request);
    (snapshot, Policy::default())
}

/// Every tenth node is kept stopped, and there is no restart.
pub(super) fn kept_stopped(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    for (number, pod) in by_name(nodes).zip(&mut snapshot.pods) {
        if !number.is_multiple_of(10) {
            continue;
        }
        snapshot.cluster.stopped.insert(name(number));
        let fence = KeptStopped {
            pod_uid: uid(number),
            node: name(number),
            sequence: 4,
            releasing: false,
            config: ConfigChoice::Mounted,
            checksum: None,
        };
        snapshot.ledger.kept_stopped.push(fence);
        if let Ok(manager) = &mut pod.manager {
            manager.desired = Desired::Stopped;
            manager.state = State::Stopped;
        }
    }
    (snapshot, Policy::default())
}
