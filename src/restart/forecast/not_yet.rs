//! Finds the blocked nodes that need only time, and no person.

use std::collections::BTreeSet;

use super::returned_nodes::bring_back;
use super::working_copy::WorkingCopy;
use crate::{Code, Member, Pod, Snapshot, Waiting};
use stayput_api::{Desired, State};

/// Splits the nodes that are `blocked` into those that are not blocked any more once every node that
/// is starting serves, every copy that has a node is complete and every snapshot has ended, and the
/// others: `still_blocked` returns them. While the engine does not answer because nodes are being
/// restarted, no node can be judged.
pub(super) fn split(
    copy: &mut WorkingCopy,
    is_under_way: bool,
    blocked: Vec<Waiting>,
    still_blocked: impl FnOnce(&mut WorkingCopy) -> Vec<Waiting>,
) -> (Vec<Waiting>, Vec<Waiting>) {
    if blocked.is_empty() {
        return (Vec::new(), blocked);
    }
    let starting = starting(&copy.snapshot);
    if copy.snapshot.engine.is_err() {
        let returns = is_under_way || !starting.is_empty();
        return blocked.into_iter().partition(|one| returns && one.code == Code::EngineUnreachable);
    }
    bring_back(&mut copy.snapshot, &starting);
    end_snapshots(&mut copy.snapshot);
    let never: BTreeSet<Option<String>> =
        still_blocked(copy).into_iter().map(|one| one.pod).collect();
    blocked.into_iter().partition(|one| !never.contains(&one.pod))
}

/// Assumes that the engine takes no snapshot any more.
fn end_snapshots(snapshot: &mut Snapshot) {
    let nodes = snapshot.engine.iter_mut().flat_map(|engine| &mut engine.nodes);
    nodes.for_each(|node| node.snapshot = None);
}

/// The nodes that are starting: as members of the restart, so that what the ledger remembers of them
/// is known.
fn starting(snapshot: &Snapshot) -> Vec<Member> {
    let is_starting = |pod: &&Pod| {
        pod.manager.as_ref().is_ok_and(|manager| {
            manager.desired == Desired::Running
                && matches!(manager.state, State::Starting | State::Backoff)
        })
    };
    let known = |uid: &str| snapshot.ledger.members().find(|member| member.pod_uid == uid).cloned();
    let member = |pod: &Pod| {
        known(&pod.uid).unwrap_or_else(|| Member {
            pod_uid: pod.uid.clone(),
            pod: pod.name.clone(),
            node: pod.node.clone(),
            ..Member::default()
        })
    };
    snapshot.pods.iter().filter(is_starting).map(member).collect()
}
