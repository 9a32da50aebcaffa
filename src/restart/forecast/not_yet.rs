//! Which blocked nodes need only time, and no person.

use std::collections::BTreeSet;

use super::returned_nodes::bring_back;
use super::working_copy::WorkingCopy;
use crate::{Code, Member, Pod, Snapshot, Waiting};
use stayput_api::{Desired, State};

/// Tells which of the nodes that are blocked in `copy` are not blocked any more once every node that
/// is starting serves and every copy that has a node is complete; `still_blocked` then returns those
/// that are. While the engine does not answer because nodes are being restarted, no node can be
/// judged.
pub(super) fn passes_by_itself(
    copy: &mut WorkingCopy,
    is_under_way: bool,
    still_blocked: impl FnOnce(&mut WorkingCopy) -> Vec<Waiting>,
) -> impl FnMut(&Waiting) -> bool {
    let starting = starting(&copy.snapshot);
    let engine_returns = copy.snapshot.engine.is_err() && (is_under_way || !starting.is_empty());
    let never: BTreeSet<Option<String>> = if copy.snapshot.engine.is_ok() {
        bring_back(&mut copy.snapshot, &starting);
        still_blocked(copy).into_iter().map(|one| one.pod).collect()
    } else {
        BTreeSet::new()
    };
    let is_known = copy.snapshot.engine.is_ok();
    move |one| match is_known {
        true => !never.contains(&one.pod),
        false => engine_returns && one.code == Code::EngineUnreachable,
    }
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
