//! A pod without volume claims that is replaced: its data is deleted with it.

use super::quorum::QuorumAfterStop;
use super::{evaluation::Evaluation, peer::Peer};
use crate::blocker::{Blocker, Check, refuse};
use crate::snapshot::hold_data;
use crate::{Code, Color, Ledger, Pod, Policy, Predicate, Step, Strategy, UpdateStep};

/// Whether a restart of this strategy deletes the data of a pod: its step is `replace`, and none of its
/// volumes is a claim. `is_fixed`: the pod's turn has begun with that step.
pub(crate) fn is_deleted(policy: &Policy, strategy: Strategy, is_fixed: bool, pod: &Pod) -> bool {
    let has_no_claim = pod.live.as_ref().is_some_and(|live| live.claims.is_empty());
    let update = pod.update.as_ref().ok().and_then(Option::as_ref);
    let is_replaced = update.is_some_and(|update| update.step == UpdateStep::Replace);
    let is_allowed = policy.update.contains(&UpdateStep::Replace) && pod.undeletable.is_none();
    has_no_claim && strategy != Strategy::Coordinated && (is_fixed || is_replaced && is_allowed)
}

/// Uids of the pods whose turn has begun with the step `replace`.
pub(super) fn fixed(ledger: &Ledger) -> impl Iterator<Item = &str> {
    let is_fixed = |step| step == UpdateStep::Replace;
    let open = ledger.members().filter(|member| member.step != Step::Finished);
    open.filter(move |member| {
        member.update.as_ref().is_some_and(|fixed| is_fixed(fixed.update.step))
    })
    .map(|member| member.pod_uid.as_str())
}

/// A pod whose data is deleted is not stopped while it may have the only copy of anything. That a shard,
/// or the cluster, may be unavailable is not that it may be gone: no consent, no allowed outage and no
/// disabled rule counts here.
pub(super) fn check(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !evaluation.is_deleted(candidate) {
        return Ok(());
    }
    let name = candidate.name();
    let gone = format!(
        "the step replace would delete the pod of {name}, whose data is on no volume claim: that"
    );
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

/// The end of a message: what a person can do who does not need the data.
const ELSEWHERE: &str = "if nobody needs this data, delete the pod yourself";
