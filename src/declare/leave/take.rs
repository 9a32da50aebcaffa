//! Removes one node, once it has no shards and no vote.

use std::collections::BTreeSet;

use super::{
    Action, CLEAR_EXCLUSIONS, LeaveFacts, Leaving, Seen, SeenNode, Set, Votes, others_exclusions,
};

/// The next action for this node, or why it waits.
pub(super) fn take(
    set: &Set,
    node: &str,
    facts: &LeaveFacts,
    seen: &Seen,
    debts: &Leaving,
) -> Result<Action, String> {
    shards(node, seen)?;
    immovable(node, seen)?;
    if let Some(index) = &seen.without_primary {
        return Err(format!(
            "index {index} has a shard without a primary: the last copy may be on this node"
        ));
    }
    if facts.paused {
        return Err("paused (spec.paused): it is empty, and stays for now".to_owned());
    }
    if let Some(why) = &facts.outside_windows {
        return Err(format!("it is empty; {why}"));
    }
    if facts.busy.contains(node) {
        return Err("a restart has it under way, or it is kept stopped: that has to end".to_owned());
    }
    if facts.under_way {
        return Err("it is empty; a restart has other nodes under way".to_owned());
    }
    let vote = match seen.nodes.get(node) {
        Some(listed) if listed.is_master => hand_over(node, listed, facts, seen, debts)?,
        Some(_) => None,
        None => {
            may_have_no_vote(seen)?;
            None
        }
    };
    let scale = || Action::Scale { set: set.name.clone(), replicas: set.replicas - 1 };
    Ok(vote.unwrap_or_else(scale))
}

/// Passes if the engine has no shard on the node.
pub(super) fn shards(node: &str, seen: &Seen) -> Result<(), String> {
    let Some(listed) = seen.nodes.get(node).filter(|listed| listed.shards > 0) else {
        return Ok(());
    };
    let count = match listed.shards {
        1 => "1 shard is still on it".to_owned(),
        many => format!("{many} shards are still on it"),
    };
    Err(listed.stuck.as_ref().map_or(count.clone(), |stuck| format!("{count}; {stuck}")))
}

/// Passes if the engine has no index that it would not move from the node. A node that is not in the
/// cluster, or has not reported its roles, may have one.
pub(super) fn immovable(node: &str, seen: &Seen) -> Result<(), String> {
    let Some(index) = seen.immovable.first() else { return Ok(()) };
    let holds_none = |node: &SeenNode| !node.roles_unknown && node.data_roles.is_empty();
    if seen.nodes.get(node).is_some_and(holds_none) {
        return Ok(());
    }
    let more = match seen.immovable.len() - 1 {
        0 => String::new(),
        many => format!(" (and {many} more)"),
    };
    Err(format!(
        "index {index}{more} is closed, and this engine does not move closed indices: open it, or delete it"
    ))
}

/// Passes if a node that is not in the cluster has no vote. Its id is not known: a vote of a node that is
/// not in the cluster either may be its own, and nobody could take that over any more.
fn may_have_no_vote(seen: &Seen) -> Result<(), String> {
    let Some(id) = seen.votes.iter().flat_map(|votes| missing_voters(votes, seen)).next() else {
        return Ok(());
    };
    Err(format!(
        "it is not in the cluster, and a vote may be its own: {id} has one and is not in the cluster \
         either. Its start ends this; if its data is lost, take that vote away: \
         POST /_cluster/voting_config_exclusions?node_ids={id}, and then {CLEAR_EXCLUSIONS}"
    ))
}

/// The ids of the voters that are not in the cluster.
fn missing_voters<'a>(votes: &'a Votes, seen: &'a Seen) -> impl Iterator<Item = &'a String> {
    let is_listed = |id: &String| seen.nodes.values().any(|other| other.id == *id);
    votes.voters.iter().filter(move |id| !is_listed(id))
}

/// The next action so that a master loses its vote, if it still has one.
fn hand_over(
    node: &str,
    listed: &SeenNode,
    facts: &LeaveFacts,
    seen: &Seen,
    debts: &Leaving,
) -> Result<Option<Action>, String> {
    let Some(votes) = &seen.votes else {
        return Err("this engine has no voting configurations: a master cannot leave".to_owned());
    };
    match debts.voter.as_deref() {
        Some(voter) if voter != node => Err(format!("masters leave one at a time; {voter} first")),
        Some(_) if !votes.excluded.contains(node) => {
            may_hand_over(node, listed, facts, seen, votes)?;
            Ok(Some(Action::ExcludeVoter(node.to_owned())))
        }
        Some(_) if votes.voters.contains(&listed.id) => {
            Err("it is empty; its vote is being taken over".to_owned())
        }
        Some(_) => Ok(None),
        None => {
            may_hand_over(node, listed, facts, seen, votes)?;
            Ok(Some(Action::Write(Leaving { voter: Some(node.to_owned()), ..debts.clone() })))
        }
    }
}

/// Passes if the others can decide without the node, and every one of them is there.
fn may_hand_over(
    node: &str,
    listed: &SeenNode,
    facts: &LeaveFacts,
    seen: &Seen,
    votes: &Votes,
) -> Result<(), String> {
    if facts.late_votes.contains(node) {
        return Err(
            "a restart took its vote a few minutes ago: a late request of it may come".into()
        );
    }
    if let Some(why) = foreign(&votes.excluded, Some(node)) {
        return Err(why);
    }
    if missing_voters(votes, seen).next().is_some() {
        return Err("a master with a vote is not in the cluster: without this one more, too few \
                    might be left to elect one"
            .to_owned());
    }
    let others = seen.nodes.values().filter(|other| other.is_master && other.id != listed.id);
    if others.count() == 0 {
        return Err("no other node can be elected master".to_owned());
    }
    Ok(())
}

/// Why nothing can be done while other clients have excluded nodes from voting.
pub(super) fn foreign(excluded: &BTreeSet<String>, ours: Option<&str>) -> Option<String> {
    let foreign: Vec<&str> =
        excluded.iter().map(String::as_str).filter(|name| Some(*name) != ours).collect();
    (!foreign.is_empty()).then(|| others_exclusions(&foreign))
}
