//! Restarts of another kind, or requested in another way.

use stayput_restart::{
    AllocationBefore, AllocationDebt, Direction, MemberStep, Once, Policy, Share, Snapshot,
    Strategy, annotation,
};

use crate::quiet::{ID, NOW, at_rest, by_name, uid};
use crate::restarting::{member, restart, rolling, shown};

/// A restart of the first half runs, and a user annotates every pod.
pub(super) fn asked(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    if let Some(restart) = &mut snapshot.ledger.restart {
        restart.members.truncate(nodes / 2);
    }
    let mut snapshot = shown(snapshot);
    for pod in &mut snapshot.pods {
        pod.annotations.insert(annotation::PHASE.into(), "schedule-rolling".into());
    }
    (snapshot, Policy::default())
}

/// Every node gets its slot in one plan.
pub(super) fn immediate(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    if let Some(restart) = &mut snapshot.ledger.restart {
        restart.request.strategy = Strategy::Immediate;
    }
    (
        snapshot,
        Policy { max_unavailable: Share::Nodes(u32::MAX), allow_outage: true, ..Policy::default() },
    )
}

/// Every node gets its slot, because an outage is allowed.
pub(super) fn coordinated_begin(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = rolling(nodes, 0);
    if let Some(restart) = &mut snapshot.ledger.restart {
        restart.request.strategy = Strategy::Coordinated;
    }
    (snapshot, Policy { allow_outage: true, ..Policy::default() })
}

/// Every node has joined again, and allocation is as it was: all are done in one write.
pub(super) fn coordinated_end(nodes: usize) -> (Snapshot, Policy) {
    let mut snapshot = at_rest(nodes);
    let members = by_name(nodes).map(|number| member(number, MemberStep::Restarting));
    let mut restart = restart(Strategy::Coordinated, members.collect());
    restart.direction = Direction::Forward;
    restart.once = Once { allocation: true, flush: true };
    restart.frozen = Some(NOW);
    snapshot.ledger.restart = Some(restart);
    snapshot.ledger.debts.allocation = Some(AllocationDebt {
        restart: ID.into(),
        before: AllocationBefore::default(),
        holders: by_name(nodes).map(uid).collect(),
    });
    (snapshot, Policy { allow_outage: true, ..Policy::default() })
}
