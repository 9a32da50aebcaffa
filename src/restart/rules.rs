//! The rules that a node must pass before it is stopped. Each is a pure function of the state of the
//! whole cluster and returns a [`Check`](super::blocker::Check) with a message for people.
//!
//! * No rule chooses a node: [`order()`] says which node is next, [`Evaluation::check_rules`] whether
//!   it may be stopped.
//! * Unknown state blocks: the message says what could not be read.
//! * The state of the cluster ([`Evaluation`] and its parts) is built once for a plan and used for
//!   every candidate, so that a plan over many pods stays linear.

mod checks;
mod copies;
mod deleted_data;
mod evaluation;
mod failed_sets;
pub(crate) mod name_list;
mod node_counts;
mod order;
mod peer;
mod predicates;
mod preflight;
mod quorum;
mod selection;
mod settled;
mod stop_impact;
mod tiers;
mod unreplicated_index;
mod version;
mod voters;

use crate::snapshot::namespace_and_name;
use copies::Copies;
pub(crate) use quorum::{MasterVoters, QuorumAfterStop};
use settled::SettledYellow;

pub(crate) use deleted_data::{Deletion, deletion};
pub(crate) use evaluation::Evaluation;
pub(crate) use failed_sets::{FailedSets, set_of};
pub(crate) use order::{order, reason_for_order};
pub(crate) use preflight::preflight;
pub(crate) use selection::{NAMED, list_names, select};
pub(crate) use stop_impact::StopImpact;
pub(crate) use version::numbers;

/// Part of a message: the number of further shards, if `lost` is more than the one that the message names.
fn more_shards(lost: usize) -> String {
    match lost {
        0 | 1 => String::new(),
        2 => " (1 more shard would have none)".to_owned(),
        _ => format!(" ({} more shards would have none)", lost - 1),
    }
}

/// The end of a message about a stop that would be an outage. `cluster` is `namespace/name`.
fn last_resort(cluster: &str) -> String {
    let (namespace, name) = namespace_and_name(cluster);
    format!(
        "as a last resort, accept an outage: cancel this restart and request one by `kubectl stayput \
         -n {namespace} restart {name} --allow-outage`; for all stops, set spec.restart.allowOutage"
    )
}

#[cfg(test)]
mod tests;
