//! The order of restarts: failed nodes first, the elected master last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::index::{Lookup, with_room};
use crate::snapshot::set_and_ordinal;
use crate::{Engine, Node, Pod};
use stayput_api::State;

/// Sorts the candidates of a whole cluster. The result does not depend on their order.
///
/// 1. Those whose engine does not run or is not in the cluster: their restart costs least. If a
///    manager does not answer, its pod counts: crash-looping, or not ready.
/// 2. By [`Rank`], lowest first.
/// 3. By the name of the set, and in a set the highest ordinal first, compared as numbers.
///
/// Without an engine the roles are unknown, and only 1 and 3 apply.
pub(crate) fn order<'a>(
    candidates: impl Iterator<Item = &'a Pod>,
    engine: Option<&Engine>,
) -> Vec<&'a Pod> {
    let ranks = ranks(engine);
    let mut pods: Vec<&Pod> = candidates.collect();
    // To compare numbers is faster than to compare the names of sets.
    let names: BTreeSet<&str> = pods.iter().map(|pod| set_and_ordinal(&pod.name).0).collect();
    let sets: Lookup<'_, usize> = names.into_iter().zip(0..).collect();
    pods.sort_by_cached_key(|pod| {
        let (set, ordinal) = set_and_ordinal(&pod.name);
        (
            !has_failed(pod) && (engine.is_none() || ranks.contains_key(pod.node.as_str())),
            ranks.get(pod.node.as_str()).copied().unwrap_or(Rank::Unknown),
            sets.get(set),
            Reverse(ordinal),
            &pod.name,
            &pod.uid,
        )
    });
    pods
}

/// Place of a pod in the [`order`] without an engine, when roles and the elected master are unknown: broken
/// nodes go first, then each set by its ordinals, the highest first.
pub fn place_without_engine(pod: &str, has_failed: bool) -> impl Ord {
    let (set, ordinal) = set_and_ordinal(pod);
    (!has_failed, set, Reverse(ordinal), pod)
}

/// True if the engine does not run, by its manager; if the manager is unreachable, by the pod.
fn has_failed(pod: &Pod) -> bool {
    match &pod.manager {
        Ok(manager) => manager.state != State::Running,
        Err(_) => !pod.ready || pod.crash_looping,
    }
}

/// Reason for a pod's place in the [`order`], for people.
pub(crate) fn reason_for_order(pod: &Pod, engine: Option<&Engine>) -> &'static str {
    if has_failed(pod) {
        return if pod.crash_looping {
            "it is crash-looping: it goes first"
        } else {
            "it does not serve: it goes first"
        };
    }
    let nodes = engine.iter().flat_map(|engine| engine.nodes.iter().map(|node| (*engine, node)));
    let rank = nodes
        .filter(|(_, node)| node.name == pod.node)
        .map(|(engine, node)| Rank::of(node, engine))
        .max();
    match rank.unwrap_or(Rank::Unknown) {
        Rank::Frozen => "frozen data goes before all other data",
        Rank::Cold => "cold data goes after frozen data and before warm and hot data",
        Rank::Warm => "warm data goes after frozen and cold data and before hot data",
        Rank::Hot => "hot data goes after all other data and before nodes without data",
        Rank::Coordinating => {
            "it holds no data and is not master-eligible: it goes after the data nodes"
        }
        Rank::Unknown => "its roles are unknown: it goes before the master-eligible nodes",
        Rank::MasterEligible => "it is master-eligible: it goes after the other nodes",
        Rank::Elected => "it is the elected master: it goes last",
    }
}

/// The role of a node in the order of restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Holds frozen data only.
    Frozen,
    /// Holds cold data, and perhaps frozen data.
    Cold,
    /// Holds warm data, and perhaps colder data.
    Warm,
    /// Holds hot data, content, or data of every tier (`data`).
    Hot,
    /// Holds no data and is not master-eligible; a node without any role only coordinates.
    Coordinating,
    /// Not listed by the engine. The node may be master-eligible, so among the failed nodes it does not go
    /// before nodes that are known not to be.
    Unknown,
    /// Master-eligible, also with other roles and also if `voting_only`.
    MasterEligible,
    /// The elected master. It goes last, so that there is only one election.
    Elected,
}

impl Rank {
    fn of(node: &Node, engine: &Engine) -> Self {
        if engine.elected_master.as_ref() == Some(&node.id) {
            Self::Elected
        } else if node.is_master_eligible() {
            Self::MasterEligible
        } else if node.holds_data() {
            node.roles.iter().filter_map(|role| Self::of_data(role)).max().unwrap_or(Self::Hot)
        } else {
            Self::Coordinating
        }
    }

    /// Rank of a role that holds data.
    fn of_data(role: &str) -> Option<Self> {
        match role {
            "data_frozen" => Some(Self::Frozen),
            "data_cold" => Some(Self::Cold),
            "data_warm" | "warm" => Some(Self::Warm),
            // Also tiers that do not exist yet.
            _ if role == "data" || role.starts_with("data_") => Some(Self::Hot),
            _ => None,
        }
    }
}

/// Ranks by name of the node. If two nodes have the same name, the later rank counts.
fn ranks(engine: Option<&Engine>) -> Lookup<'_, Rank> {
    let mut ranks = with_room(engine.map_or(0, |engine| engine.nodes.len()));
    for (engine, node) in engine.iter().flat_map(|engine| engine.nodes.iter().map(|n| (*engine, n)))
    {
        let rank = Rank::of(node, engine);
        let known = ranks.entry(node.name.as_str()).or_insert(rank);
        *known = rank.max(*known);
    }
    ranks
}
