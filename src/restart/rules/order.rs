//! Whose turn it is: what is broken first, what would hurt most last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::lookup::Lookup;
use crate::{Engine, Node, Pod};
use stayput_api::State;

/// Sorts the candidates of a whole cluster; the same for any order they come in.
///
/// 1. Crash-looping pods, those that are not ready, and those whose engine does not run or is not in
///    the cluster: they have the least to lose.
/// 2. By [`Rank`], lowest first.
/// 3. By the name of the set, and in it the highest ordinal first, as numbers.
///
/// Without an engine nobody's roles are known, and 1 and 3 remain.
pub(crate) fn order<'a>(
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
            !is_broken(pod) && (engine.is_none() || ranks.contains_key(pod.node.as_str())),
            ranks.get(pod.node.as_str()).copied().unwrap_or(Rank::Unknown),
            sets.get(set),
            Reverse(ordinal),
            &pod.name,
            &pod.uid,
        )
    });
    pods
}

/// Whether it does not serve, as far as the pod and its manager tell.
fn is_broken(pod: &Pod) -> bool {
    let ended = pod.manager.as_ref().is_ok_and(|manager| manager.state != State::Running);
    !pod.ready || pod.crash_looping || ended
}

/// Why a pod has its place in the [`order`], in a sentence.
pub(crate) fn place(pod: &Pod, engine: Option<&Engine>) -> &'static str {
    if pod.crash_looping {
        return "it ends again and again: it has the least to lose, and goes first";
    }
    if is_broken(pod) {
        return "it does not serve: it has the least to lose, and goes first";
    }
    let nodes = engine.iter().flat_map(|engine| engine.nodes.iter().map(|node| (*engine, node)));
    let rank = nodes
        .filter(|(_, node)| node.name == pod.node)
        .map(|(engine, node)| Rank::of(node, engine))
        .max();
    match rank.unwrap_or(Rank::Unknown) {
        Rank::Frozen => "frozen data goes before all other",
        Rank::Cold => "cold data goes after frozen, and before warm and hot",
        Rank::Warm => "warm data goes after frozen and cold, and before hot",
        Rank::Hot => "data goes before nodes without data; hot data after all other",
        Rank::Coordinating => {
            "it holds no data and cannot be elected: it goes after the data nodes"
        }
        Rank::Unknown => "its roles are not known: it goes before those that surely can be elected",
        Rank::MasterEligible => "it can be elected: it goes after those that cannot",
        Rank::Elected => "it is the elected master: it goes last",
    }
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
    /// It neither holds data nor can be elected; without any role it only coordinates.
    Coordinating,
    /// The engine does not list it. It could be a master, so of what is broken it does not go before
    /// nodes that surely are none.
    Unknown,
    /// It votes for the master, whatever else it does; also where it is `voting_only`.
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
        } else {
            Self::Coordinating
        }
    }

    /// The tier of a role that holds data.
    fn of_data(role: &str) -> Option<Self> {
        match role {
            "data_frozen" => Some(Self::Frozen),
            "data_cold" => Some(Self::Cold),
            "data_warm" | "warm" => Some(Self::Warm),
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
pub(super) fn set_and_ordinal(name: &str) -> (&str, Option<u64>) {
    match name.rsplit_once('-') {
        Some((set, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_or((name, None), |ordinal| (set, Some(ordinal)))
        }
        Some(_) | None => (name, None),
    }
}
