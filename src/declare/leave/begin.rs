//! Checks before nodes begin to leave: new nodes and changes come first, and data needs a place.

use std::collections::BTreeSet;

use super::{LeaveFacts, Seen, Set, take};
use crate::Refusal;

/// Why nodes may not begin to leave.
pub(super) enum NotYet {
    /// The reason passes by itself, or a person knows about it.
    Waits(String),
    /// A person has to change the declaration, or move the data.
    Refused(Refusal),
}

impl NotYet {
    pub(super) fn why(&self) -> String {
        match self {
            Self::Waits(why) => why.clone(),
            Self::Refused(refusal) => refusal.to_string(),
        }
    }

    pub(super) fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Waits(_) => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

pub(super) fn begin(
    sets: &[Set],
    facts: &LeaveFacts,
    seen: &Seen,
    leaving: &BTreeSet<String>,
) -> Result<(), NotYet> {
    if facts.paused {
        return Err(NotYet::Waits("paused (spec.paused): no node leaves".to_owned()));
    }
    if let Some(why) = &facts.changes {
        return Err(NotYet::Waits(why.clone()));
    }
    let absent = sets.iter().filter(|set| set.is_declared).find_map(|set| {
        let mut stay = (0..set.wanted).map(|ordinal| set.node(ordinal));
        stay.find(|node| !seen.nodes.contains_key(node))
    });
    if let Some(absent) = absent {
        let why = format!("{absent} stays and is not in the cluster: it has to join first");
        return Err(NotYet::Waits(why));
    }
    // What a person has to change is said before its time comes.
    has_a_place(sets, seen, leaving).map_err(NotYet::Refused)?;
    all_can_move(sets, seen).map_err(NotYet::Refused)?;
    match &facts.outside_windows {
        Some(why) => Err(NotYet::Waits(why.clone())),
        None => Ok(()),
    }
}

/// No node that may hold such an index leaves while the engine has indices that it does not move.
fn all_can_move(sets: &[Set], seen: &Seen) -> Result<(), Refusal> {
    for set in sets {
        for name in set.leaving() {
            if let Err(why) = take::immovable(&name, seen) {
                let field = if set.is_declared { "count" } else { "" };
                return Err(Refusal::of_set(&set.name, field, format!("{name}: {why}")));
            }
        }
    }
    Ok(())
}

/// One node of every role with shards stays. A node with the role `data` has all tiers, and its shards
/// may fit any tier.
fn has_a_place(sets: &[Set], seen: &Seen, leaving: &BTreeSet<String>) -> Result<(), Refusal> {
    let stays = |role: &str| {
        let mut others = seen.nodes.iter().filter(|(name, _)| !leaving.contains(*name));
        others.any(|(_, node)| {
            let roles = &node.data_roles;
            roles.contains(role) || roles.contains("data") || (role == "data" && !roles.is_empty())
        })
    };
    for set in sets {
        for name in set.leaving() {
            let Some(node) = seen.nodes.get(&name).filter(|node| node.shards > 0) else { continue };
            let Some(role) = node.data_roles.iter().find(|role| !stays(role)) else { continue };
            let field = if set.is_declared { "count" } else { "" };
            return Err(Refusal::of_set(
                &set.name,
                field,
                format!(
                    "{name} has {} shards, and no node with the role {role} would stay: declare one \
                     in another node set first, or move or delete these shards",
                    node.shards
                ),
            ));
        }
    }
    Ok(())
}
