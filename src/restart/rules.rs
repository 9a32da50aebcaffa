//! The rules that a node must pass before it is stopped. Each is a pure function of the state of the
//! whole cluster and returns a [`Check`](crate::changes::Check) with a message for people.
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
mod node_counts;
mod order;
mod predicates;
mod preflight;
mod quorum;
mod selection;
mod settled;
#[cfg(test)]
mod tests;

use crate::snapshot::namespace_and_name;

pub(crate) use deleted_data::{Deletion, deletion};
pub(crate) use evaluation::{Evaluation, numbers};
pub(crate) use failed_sets::{FailedSets, set_of};
pub use order::place_without_engine;
pub(crate) use order::{order, reason_for_order};
pub(crate) use preflight::preflight;
pub(crate) use quorum::{MasterVoters, QuorumAfterStop};
pub(crate) use selection::{NAMED, StopImpact, list_names, select};

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

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct NameList<'a> {
    pub(crate) count: usize,
    /// The first [`KEPT_NAMES`] names, sorted.
    names: Vec<&'a str>,
}

/// Number of names that a list keeps.
const KEPT_NAMES: usize = 3;

impl<'a> NameList<'a> {
    pub(crate) fn add(&mut self, name: &'a str) {
        self.count += 1;
        self.name(name);
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.count += other.count;
        other.names.iter().for_each(|name| self.name(name));
    }

    fn name(&mut self, name: &'a str) {
        let at = self.names.partition_point(|known| *known < name);
        if at < KEPT_NAMES {
            self.names.insert(at, name);
            self.names.truncate(KEPT_NAMES);
        }
    }

    /// `one` if the list has one name, else `many`.
    pub(crate) const fn or<'w>(&self, one: &'w str, many: &'w str) -> &'w str {
        if self.count == 1 { one } else { many }
    }
}

/// Writes the names as in `a`, `a and b`, `a, b, c and 4 more`.
impl std::fmt::Display for NameList<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.names.as_slice(), self.count.saturating_sub(self.names.len())) {
            ([], 0) => formatter.write_str("no node"),
            ([], 1) => formatter.write_str("1 node"),
            ([], many) => write!(formatter, "{many} nodes"),
            ([one], 0) => formatter.write_str(one),
            ([first @ .., last], 0) => write!(formatter, "{} and {last}", first.join(", ")),
            (named, more) => write!(formatter, "{} and {more} more", named.join(", ")),
        }
    }
}
