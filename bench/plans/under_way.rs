//! A rolling restart in progress.

use stayput_restart::{
    Allocation, AllocationBefore, AllocationDebt, Color, Engine, Marker, MemberStep, Policy,
    ShardCopy, Snapshot,
};

use crate::quiet::{ID, name, uid};
use crate::restarting::{member, rolling, shown};

/// Paused before the first node, and no pod shows its phase yet.
pub(super) fn to_be_shown(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    snapshot.cluster.paused = true;
    (snapshot, Policy::default())
}

/// Half are done, one is about to be stopped, the others wait.
pub(super) fn under_way(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, nodes / 2);
    let number = nodes / 2;
    if let Some(restart) = &mut snapshot.ledger.restart {
        let name = name(number);
        if let Some(one) = restart.members.iter_mut().find(|member| member.node == name) {
            *one = member(number, MemberStep::Restarting);
            (one.stop_sequence, one.start_sequence) = (6, 8);
            one.ephemeral_id = Some(format!("process-{number}"));
        }
    }
    tighten(&mut snapshot, vec![uid(number)]);
    snapshot.flushed.insert(name(number));
    (shown(snapshot), Policy::default())
}

/// Allocation is limited by us.
fn tighten(snapshot: &mut Snapshot, holders: Vec<String>) {
    let before = AllocationBefore::default();
    snapshot.ledger.debts.allocation =
        Some(AllocationDebt { restart: ID.into(), before: before.clone(), holders });
    if let Ok(engine) = &mut snapshot.engine {
        engine.allocation = Ok(Allocation {
            setting: AllocationBefore { persistent: Some("primaries".into()), transient: None },
            marker: Some(Marker { cluster: "search/logs".into(), restart: ID.into(), before }),
            ..Allocation::default()
        });
    }
}

/// No node may be stopped: the cluster is red.
pub(super) fn blocked_by_health(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = shown(rolling(nodes, 0));
    if let Ok(Engine { health: Ok(health), .. }) = &mut snapshot.engine {
        health.color = Color::Red;
        health.unassigned = 4;
    }
    (snapshot, Policy::default())
}

/// No node may be stopped: no replica is started.
pub(super) fn blocked_by_shards(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = shown(rolling(nodes, 0));
    if let Ok(Engine { shards: Ok(copies), .. }) = &mut snapshot.engine {
        let changed = copies.iter().map(|copy| ShardCopy { started: copy.primary, ..copy });
        *copies = changed.collect();
    }
    (snapshot, Policy::default())
}
