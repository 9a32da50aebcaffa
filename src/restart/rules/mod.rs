//! Rules that must let a node pass before it is stopped: each a pure function of one look at the
//! whole cluster that answers [`Check`](super::blocker::Check) with a sentence for people.
//!
//! * No rule chooses a node: [`order()`] says whose turn it is, [`Evaluation::judge`] whether it may go.
//! * What is not known is never taken for good: a rule refuses, and says what could not be read.
//! * What looks at the whole cluster ([`Evaluation`] and what it holds) is built once for a plan and then
//!   asked about every candidate, so that a plan over many pods stays linear.

mod copies;
mod evaluation;
mod failed;
mod judge;
mod name_list;
mod node_counts;
mod order;
mod predicates;
mod preflight;
mod quorum;
mod settled;
mod tiers;
mod turns;
mod unreplicated_index;
mod version;
mod voters;

use copies::Copies;
pub(crate) use quorum::{Electorate, Votes};
use settled::Settled;

pub(crate) use evaluation::{Evaluation, Terms};
pub(crate) use failed::{Sets, set_of};
pub(crate) use order::{order, place};
pub(crate) use preflight::preflight;
pub(crate) use turns::{Walk, all_of, take_turns};

/// How many more shards there are than the one that is named.
fn others(lost: usize) -> String {
    match lost {
        0 | 1 => String::new(),
        2 => " (1 more shard would be without one, too)".to_owned(),
        _ => format!(" ({} more shards would be without one, too)", lost - 1),
    }
}

#[cfg(test)]
mod tests;
