//! Whose turn it is: what is broken first, what would hurt most last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::restart::lookup::Lookup;
use crate::restart::{Engine, Node, Pod};

/// Sorts the candidates of a whole cluster; the same for any order they come in.
///
/// 1. Crash-looping pods and those that are not ready: they have the least to lose.
/// 2. By [`Rank`], lowest first.
/// 3. By the name of the set, and in it the highest ordinal first, as numbers.
///
/// Without an engine every node's roles are unknown, and 1 and 3 remain.
pub(in crate::restart) fn order<'a>(
    candidates: impl Iterator<Item = &'a Pod>,
    engine: Option<&Engine>,
) -> Vec<&'a Pod> {
    let ranks = ranks(engine);
    let mut pods: Vec<&Pod> = candidates.collect();
    // There are few sets; by number they compare without a look at their names.
    let names: BTreeSet<&str> = pods.iter().map(|pod| set_and_ordinal(&pod.name).0).collect();
    let sets: Lookup<'_, usize> = names.into_iter().zip(0..).collect();
    pods.sort_by_cached_key(|pod| {
        let (set, ordinal) = set_and_ordinal(&pod.name);
        (
            pod.ready && !pod.crash_looping,
            ranks.get(pod.node.as_str()).copied().unwrap_or(Rank::Unknown),
            sets.get(set),
            Reverse(ordinal),
            &pod.name,
            &pod.uid,
        )
    });
    pods
}

/// What a node is to its cluster, in the order of restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its data is frozen at most.
    Frozen,
    /// Its data is cold at most.
    Cold,
    /// Its data is warm at most.
    Warm,
    /// It holds hot data, content, or data of every tier (`data`).
    Hot,
    /// It has roles, but neither holds data nor can be elected.
    Coordinating,
    /// The engine does not list it, or not its roles; a node without any role looks the same. It
    /// could be a master, so it does not go before nodes that surely are none.
    Unknown,
    /// It can be elected, whatever else it does.
    MasterEligible,
    /// It is the elected master: every election interrupts the cluster, so there is only one.
    Elected,
}

impl Rank {
    fn of(node: &Node, engine: &Engine) -> Self {
        if engine.master.as_ref() == Some(&node.id) {
            Self::Elected
        } else if node.is_master_eligible() {
            Self::MasterEligible
        } else if node.holds_data() {
            node.roles.iter().filter_map(|role| Self::of_data(role)).max().unwrap_or(Self::Hot)
        } else if node.roles.is_empty() {
            Self::Unknown
        } else {
            Self::Coordinating
        }
    }

    /// The tier of a role that holds data.
    fn of_data(role: &str) -> Option<Self> {
        match role {
            "data_frozen" => Some(Self::Frozen),
            "data_cold" => Some(Self::Cold),
            "data_warm" => Some(Self::Warm),
            // Also the tiers yet to be invented.
            _ if role == "data" || role.starts_with("data_") => Some(Self::Hot),
            _ => None,
        }
    }
}

/// By the node's name. Where two nodes bear it, the more careful rank counts.
fn ranks(engine: Option<&Engine>) -> Lookup<'_, Rank> {
    let mut ranks = Lookup::default();
    for (engine, node) in engine.iter().flat_map(|engine| engine.nodes.iter().map(|n| (*engine, n)))
    {
        let rank = Rank::of(node, engine);
        let known = ranks.entry(node.name.as_str()).or_insert(rank);
        *known = rank.max(*known);
    }
    ranks
}

/// `logs-data-10` is number 10 of `logs-data`. A name without a number is a set of its own.
fn set_and_ordinal(name: &str) -> (&str, Option<u64>) {
    match name.rsplit_once('-') {
        Some((set, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_or((name, None), |ordinal| (set, Some(ordinal)))
        }
        Some(_) | None => (name, None),
    }
}
