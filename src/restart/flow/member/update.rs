//! What of a member's pod changes between its stop and its start, so that it is as its owner wants
//! it: labels, images, sizes, or the whole pod. And the way back.
//!
//! [`fixed`]: what is fixed when the member takes its slot. [`carry_out`]: after the stop, until the
//! engine may be started. [`container`]: the kubelet makes the manager's container anew, [`others`] those
//! beside it. [`hindrance`]: what keeps them from running, and may pass. [`labels`]: after the proof. [`heap`]:
//! whether the heap has followed. [`back`]: images and sizes as they were before. [`stay`]: what the apiserver
//! refuses to set back.

pub(in crate::flow) mod back;
mod carry_out;
mod container;
mod fixed;
mod heap;
mod hindrance;
pub(in crate::flow) mod labels;
mod others;
pub(in crate::flow) mod stay;

use crate::{Member, UpdateStep};

pub(super) use carry_out::{is_carried_out, until_carried_out};
pub(super) use container::without_manager;
pub(in crate::flow) use fixed::{BY_UPDATE, exits, fix, is_for_updates, why_left_out};
pub(in crate::flow) use fixed::{due_images, due_resources};
pub(super) use fixed::{may_be_replaced, refresh};
pub(crate) use fixed::{planned_update, why_not_allowed};
pub(super) use heap::kept_heap;
pub(super) use others::why_others_are_not_ready;
pub(crate) use stay::set_back_next;

/// The step by which a member is restarted.
pub(in crate::flow) fn step_of(member: &Member) -> UpdateStep {
    member.update.as_ref().map_or(UpdateStep::Restart, |fixed| fixed.update.step)
}

/// In how many phases a member must be back: the one between stop and start is one more.
pub(in crate::flow) fn phases(member: &Member) -> u64 {
    let waits_for_others = member.update.as_ref().is_some_and(|fixed| !fixed.others.is_empty());
    2 + u64::from(step_of(member) > UpdateStep::Restart || waits_for_others)
}
