//! All nodes stopped, then all started. One direction for everybody: until the first has joined it
//! can turn back; after that it goes forward only, so that the cluster is never left split.

pub(super) mod begin_all;
mod complete;
pub(super) mod start_all;
pub(super) mod stop_all;
mod stranded;
pub(super) mod supersede;
mod turn_back;

use crate::{Member, Restart, Step};

/// The one flush a coordinated restart has.
const WHOLE_CLUSTER: &str = "*";

/// Members that still take part.
fn active(restart: &Restart) -> impl Iterator<Item = (usize, &Member)> {
    let members = restart.members.iter().enumerate();
    members.filter(|(_, member)| member.step != Step::Finished)
}
