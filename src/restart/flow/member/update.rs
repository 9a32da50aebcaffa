//! Changes a member's pod between its stop and its start, so that it is as its owner wants it: labels,
//! images, sizes, or the whole pod. Also rolls such a change back.
//!
//! [`fixed`]: the update that is frozen into the ledger when the member takes its slot. [`carry_out`]: after
//! the stop, until the engine may be started. [`container`]: the kubelet recreates the manager's container;
//! [`others`]: sidecar containers. [`hindrance`]: temporary reasons why they do not run. [`labels`]: after
//! the proof. [`heap`]: checks if the heap has followed. [`back`]: rollback of images and sizes. [`stay`]:
//! the changes that the apiserver refuses to roll back.

pub(crate) mod back;
mod carry_out;
mod container;
mod fixed;
mod heap;
mod hindrance;
pub(crate) mod labels;
mod others;
pub(crate) mod stay;

use crate::{Member, UpdateStep};

pub(super) use carry_out::{is_carried_out, until_carried_out};
pub(super) use container::without_manager;
pub(crate) use fixed::{BY_UPDATE, exits, fix, is_for_updates, why_left_out};
pub(crate) use fixed::{due_images, due_resources};
pub(super) use fixed::{may_be_replaced, refresh};
pub(crate) use fixed::{planned_update, why_not_allowed};
pub(super) use heap::kept_heap;
pub(super) use others::why_others_are_not_ready;
pub(crate) use stay::set_back_next;

/// The step by which a member is restarted.
pub(crate) fn step_of(member: &Member) -> UpdateStep {
    member.update.as_ref().map_or(UpdateStep::Restart, |fixed| fixed.update.step)
}

/// Number of phases in which a member must be back: one more if its pod changes between stop and start.
pub(crate) fn phases(member: &Member) -> u64 {
    let waits_for_others = member.update.as_ref().is_some_and(|fixed| !fixed.others.is_empty());
    2 + u64::from(step_of(member) > UpdateStep::Restart || waits_for_others)
}
