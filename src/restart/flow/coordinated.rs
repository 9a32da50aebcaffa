//! A coordinated restart: all nodes are stopped, then all are started. All members have the same direction:
//! until the first one has joined, the restart can turn back; after that it goes forward only, so that the
//! nodes never run on different configs.

pub(super) mod begin_all;
mod complete;
mod lift_allocation_limit;
mod revert_config;
pub(super) mod start_all;
pub(super) mod stop_all;
mod stranded_nodes;
pub(super) mod supersede;
pub(super) mod unreachable_manager;
mod without_master;

use crate::{Member, MemberStep, Restart};

/// The name of the single flush of a coordinated restart.
const WHOLE_CLUSTER: &str = "*";

/// Members that still take part, with their places among all members.
fn active(restart: &Restart) -> impl Iterator<Item = (usize, &Member)> {
    let members = restart.members.iter().enumerate();
    members.filter(|(_, member)| member.step != MemberStep::Finished)
}
