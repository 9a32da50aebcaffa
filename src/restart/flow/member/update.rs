//! Changes a member's pod between its stop and its start, so that it is as its owner wants it: labels,
//! images, sizes, or the whole pod. Also rolls such a change back.
//!
//! [`frozen_update`]: the update that is frozen into the ledger when the member takes its slot. [`carry_out`]:
//! after the stop, until the engine may be started. [`container`]: the kubelet recreates the manager's
//! container; [`sidecar_images`]: sidecar containers. [`wait_limit`]: temporary reasons why they do not run.
//! [`labels`]: after the proof. [`heap`]: checks if the heap has followed. [`rollback`]: rollback of images and
//! sizes. [`partial_rollback`]: the changes that the apiserver refuses to roll back.

mod carry_out;
mod container;
mod frozen_update;
mod heap;
pub(crate) mod labels;
pub(crate) mod partial_rollback;
pub(crate) mod rollback;
mod sidecar_images;
mod wait_limit;

use crate::{Member, UpdateStep};

pub(super) use carry_out::{is_carried_out, until_carried_out};
pub(super) use container::without_manager;
pub(crate) use frozen_update::{BY_UPDATE, exits, freeze, is_for_updates, why_left_out};
pub(crate) use frozen_update::{due_images, due_resources};
pub(super) use frozen_update::{may_be_replaced, refresh};
pub(crate) use frozen_update::{planned_update, why_not_allowed};
pub(super) use heap::kept_heap;
pub(crate) use partial_rollback::set_back_next;
pub(super) use sidecar_images::why_others_are_not_ready;

/// The step by which a member is restarted.
pub(crate) fn step_of(member: &Member) -> UpdateStep {
    member.update.as_ref().map_or(UpdateStep::Restart, |fixed| fixed.update.step)
}

/// Number of phases in which a member must be back: one more if its pod changes between stop and start.
pub(crate) fn phases(member: &Member) -> u64 {
    let waits_for_others = member.update.as_ref().is_some_and(|fixed| !fixed.others.is_empty());
    2 + u64::from(step_of(member) > UpdateStep::Restart || waits_for_others)
}
