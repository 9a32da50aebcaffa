//! Protects data that an update would delete: of a replaced pod whose data is on no volume claim, of a pod
//! whose data is on no volume and that gets another container, and of a pod whose template has the data at
//! another place, so that the engine would start without it.

use crate::changes::{Check, refuse};
use crate::rules::evaluation::Evaluation;
use crate::rules::node_counts::Peer;
use crate::rules::quorum::QuorumAfterStop;
use crate::snapshot::hold_data;
use crate::{
    Blocker, Code, Color, DataPlace, Ledger, MemberStep, Pod, PodUpdate, Policy, Predicate,
    Strategy, UpdateStep,
};

/// Part of a pod whose deletion takes the data of a node with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    Pod,
    /// The pod; its engine has not reported where the data is.
    PodOfUnknown,
    /// The pod; the new pod looks for the data at another place, so the data is gone from the cluster
    /// wherever it was kept.
    Elsewhere,
    Container,
}

impl Deletion {
    /// The part that this update deletes, with or without data in it.
    pub(crate) fn of(update: &PodUpdate) -> Option<Self> {
        if update.step == UpdateStep::Replace {
            return Some(if update.data_elsewhere { Self::Elsewhere } else { Self::Pod });
        }
        update.makes_a_container().then_some(Self::Container)
    }

    /// Beginning of a sentence about the loss of this node's data.
    pub(crate) fn describe(self, node: &str) -> String {
        match self {
            Self::Pod => format!(
                "the step replace would delete the pod of {node}, whose data is on no volume claim"
            ),
            Self::PodOfUnknown => format!(
                "the step replace would delete the pod of {node}, whose engine has not said yet where its data is"
            ),
            Self::Elsewhere => format!(
                "the step replace would start the engine of {node} without its data, which the template has at \
                 another place (volume, subPath, mountPath or path.data)"
            ),
            Self::Container => format!(
                "the container of {node} would be deleted for another one, and its data is on no volume"
            ),
        }
    }
}

/// The part that a restart with this strategy deletes with the pod's data in it; `None`: the data stays.
/// `fixed`: the part that the pod's turn deletes, if the turn has begun.
pub(crate) fn deletion(
    policy: &Policy,
    strategy: Strategy,
    fixed: Option<Deletion>,
    pod: &Pod,
) -> Option<Deletion> {
    let live = pod.live.as_ref().filter(|_| strategy != Strategy::Coordinated)?;
    let update = pod.update.as_ref().ok().and_then(Option::as_ref);
    let is_carried_out = |update: &&PodUpdate| {
        let is_possible = update.step != UpdateStep::Replace || pod.undeletable.is_none();
        policy.update.contains(&update.step) && is_possible
    };
    let wanted = update.filter(is_carried_out).and_then(Deletion::of);
    [fixed, wanted].into_iter().flatten().find_map(|deletion| match (deletion, live.data) {
        (Deletion::Pod, DataPlace::Claim) => None,
        (Deletion::Pod, DataPlace::Unknown) => Some(Deletion::PodOfUnknown),
        (Deletion::Container, data) => (data == DataPlace::Container).then_some(deletion),
        (Deletion::Pod | Deletion::PodOfUnknown | Deletion::Elsewhere, _) => Some(deletion),
    })
}

/// Uids of the pods whose turn has begun, and the part that the turn deletes.
pub(crate) fn of_turns(ledger: &Ledger) -> impl Iterator<Item = (&str, Deletion)> {
    let open = ledger.members().filter(|member| member.step != MemberStep::Finished);
    open.filter_map(|member| {
        Some((member.pod_uid.as_str(), Deletion::of(&member.update.as_ref()?.update)?))
    })
}

/// Blocks a pod whose data would be deleted while the pod may have the only copy of anything. To accept that
/// a shard, or the cluster, is unavailable is not to accept that it is gone: no consent, no allowed outage
/// and no disabled rule counts here.
pub(crate) fn check(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    let Some(deletion) = evaluation.deletion(candidate) else { return Ok(()) };
    let name = candidate.name();
    let gone = format!("{}: that", deletion.describe(name));
    if candidate.is_master
        && let QuorumAfterStop::Lost(blocker) = evaluation.quorum_after_stop(candidate)
    {
        let message = format!(
            "{gone} could be the only state of the cluster, and an allowed outage does not count: {}; \
             {ELSEWHERE}",
            blocker.message
        );
        return Err(Blocker { message, ..blocker });
    }
    if candidate.roles.is_some_and(|roles| !hold_data(roles)) {
        return Ok(());
    }
    let health = evaluation.engine.health.as_ref().map_err(Blocker::engine_unreachable)?;
    if !matches!(health.color, Color::Green | Color::Yellow) {
        let message = format!(
            "{gone} could be the only copy of a shard that the cluster misses: waits until the \
             cluster is not red; {ELSEWHERE}"
        );
        return refuse(Code::Predicate(Predicate::GreenOrYellow), message);
    }
    let copies = evaluation.copies();
    let lost = copies.lost(name).map_err(Blocker::engine_unreachable)?;
    if let Some(shard) = lost.first {
        let more = super::more_shards(lost.number);
        let message = format!(
            "{gone} is the last started copy of {shard}{more}, and an allowed outage does not count: \
             waits until another copy is started on a node that stays up; {ELSEWHERE}"
        );
        return refuse(Code::Predicate(Predicate::StartedReplica), message);
    }
    let mut immovable = evaluation.engine.immovable.iter();
    if let Some(index) = immovable.next() {
        let more = match immovable.count() {
            0 => String::new(),
            many => format!(" (and {many} more)"),
        };
        let message = format!(
            "{gone} could be the only copy of index {index}{more}, which is closed: this engine does not \
             replicate closed indices, and does not say on which nodes they are; open it, or delete it; \
             {ELSEWHERE}"
        );
        return refuse(Code::UnreplicatedIndex, message);
    }
    let single = copies.single(name).map_err(Blocker::engine_unreachable)?;
    let mut single = single.filter(|shard| !evaluation.is_searchable_snapshot(shard.index));
    let Some(shard) = single.next() else { return Ok(()) };
    let more = super::more_shards(1 + single.count());
    let message = format!(
        "{gone} is the only copy of {shard}, which has no replica{more}, and neither consent nor an \
         allowed outage counts: add a replica (index.number_of_replicas); {ELSEWHERE}"
    );
    refuse(Code::UnreplicatedIndex, message)
}

/// The end of a message: advice for a person who does not need the data.
const ELSEWHERE: &str = "if nobody needs this data, delete the pod yourself";
