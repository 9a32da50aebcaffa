//! Settled yellow: replicas are missing, and nothing is happening that would assign them. The predicate of a
//! yellow cluster asks; right before a stop, `checks.rs` asks again with a text of its own.

use crate::changes::{Check, refuse};
use crate::index::OwnedNameSet;
use crate::rules::copies::ShardName;
use crate::rules::evaluation::Evaluation;
use crate::rules::more_shards;
use crate::rules::node_counts::Peer;
use crate::snapshot::namespace_and_name;
use crate::{Allocation, Blocker, Code, Engine, Health, Known, Predicate, shell_word};

/// The check that a yellow cluster is settled, computed once for all candidates.
#[derive(Debug)]
pub(crate) struct SettledYellow(Check);

impl SettledYellow {
    /// Checks the cluster. `kept_stopped`: names of nodes. `expected_data`: number of *other* data nodes that
    /// should be in the cluster; a node to be kept stopped that is still in does not replace a missing one.
    pub(crate) fn of(engine: &Engine, kept_stopped: &OwnedNameSet, expected_data: usize) -> Self {
        Self(match &engine.health {
            Err(unknown) => Err(Blocker::engine_unreachable(unknown)),
            Ok(health) => settled(engine, health, kept_stopped, expected_data),
        })
    }

    /// Passes if waiting would not make the cluster green.
    pub(crate) fn check(&self) -> Check {
        self.0.clone()
    }
}

fn settled(
    engine: &Engine,
    health: &Health,
    kept_stopped: &OwnedNameSet,
    expected_data: usize,
) -> Check {
    let mut unsettled = movements(engine, health);
    let leaving = engine
        .nodes
        .iter()
        .filter(|node| kept_stopped.contains(&node.name))
        .filter(|node| node.holds_data())
        .count();
    let data_nodes = usize::try_from(health.data_nodes).unwrap_or(usize::MAX);
    let staying = data_nodes.saturating_sub(leaving);
    if staying < expected_data {
        unsettled.push(format!("{staying} of {expected_data} data nodes are in the cluster"));
    }
    unsettled.extend(allocation(&engine.allocation)?);
    match &engine.shards {
        Err(unknown) => refuse(
            Code::EngineUnreachable,
            format!("the cluster is yellow and its shards are unknown: {}", unknown.message),
        )?,
        Ok(shards) => {
            let mut lost = shards.unassigned_primaries();
            if let Some(first) = lost.next() {
                unsettled.push(format!(
                    "{} primaries are unassigned, the first is shard {} of {}",
                    1 + lost.len(),
                    first.shard,
                    first.index
                ));
            }
        }
    }
    if unsettled.is_empty() {
        return Ok(());
    }
    if health.unassigned > 0 {
        unsettled.insert(0, counted(health.unassigned, "unassigned"));
    }
    refuse(
        Code::Predicate(Predicate::Yellow),
        format!(
            "the cluster is yellow and not settled ({}): waits until it is green or settled",
            unsettled.join(", ")
        ),
    )
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} shard cop{} {what}", if count == 1 { "y" } else { "ies" })
}

/// Text on the initializing copies, with the first of them: where to look if that never ends.
fn initializing(engine: &Engine, health: &Health) -> Option<String> {
    let count = health.initializing;
    let mut text = (count > 0).then(|| counted(count, "initializing"))?;
    if let Ok(shards) = &engine.shards
        && let Some((copy, node)) = shards.first_initializing()
    {
        let the_first = if count == 1 { "it" } else { "the first" };
        text += &format!(", {the_first} is shard {} of {} on {node}", copy.shard, copy.index);
    }
    Some(text)
}

/// Texts on the copies that the engine is initializing, moving or looking for, and on its queue of tasks, by
/// its health.
fn movements(engine: &Engine, health: &Health) -> Vec<String> {
    let counts = [
        (health.relocating, "relocating"),
        (health.delayed, "delayed"),
        (health.in_flight_fetch, "not found yet"),
    ];
    let others = counts.into_iter().filter(|(count, _)| *count > 0);
    let others = others.map(|(count, what)| counted(count, what));
    let mut found: Vec<String> = initializing(engine, health).into_iter().chain(others).collect();
    if health.timed_out {
        found.push("its queue of tasks is not empty".to_owned());
    }
    found
}

/// Text on a setting that limits allocation, if there is one: then yellow is not the final state.
fn allocation(allocation: &Known<Allocation>) -> Result<Option<String>, Blocker> {
    let setting = match allocation {
        Ok(allocation) => &allocation.setting,
        Err(unknown) => {
            return Err(Blocker {
                code: Code::EngineUnreachable,
                message: format!(
                    "the cluster is yellow and its allocation setting is unknown: {}",
                    unknown.message
                ),
            });
        }
    };
    let effective = setting.transient.as_ref().or(setting.persistent.as_ref());
    Ok(effective
        .filter(|value| !value.eq_ignore_ascii_case("all"))
        .map(|value| format!("cluster.routing.allocation.enable is {value:?}")))
}

/// Blocks a node that holds the only copy of a shard whose index has no replicas: waiting would not help. The
/// published rules allow such a stop. Here it needs the consent of the request, for this index; or an outage
/// must be allowed.
///
/// Searchable snapshots are exempt. They have no replicas by nature, their data is in a repository,
/// and a node that comes back, or another one, reads it from there again.
pub(crate) fn check_unreplicated_index(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if evaluation.allows_outage(candidate) {
        return Ok(());
    }
    let may_be_unavailable = |shard: &ShardName<'_>| {
        evaluation.is_searchable_snapshot(shard.index)
            || (candidate.is_requested && evaluation.is_consented(shard.index))
    };
    let single = evaluation.copies().single(candidate.name());
    let single = single.map_err(Blocker::engine_unreachable)?;
    let mut blocking = single.filter(|shard| !may_be_unavailable(shard));
    let Some(shard) = blocking.next() else { return Ok(()) };
    let more = more_shards(1 + blocking.count());
    let snapshots = match &evaluation.engine.searchable_snapshots {
        Ok(_) => String::new(),
        Err(unknown) => format!(
            "; a searchable snapshot would not block, but which indices are is unknown: {}",
            unknown.message
        ),
    };
    let (namespace, cluster) = namespace_and_name(evaluation.cluster);
    refuse(
        Code::UnreplicatedIndex,
        format!(
            "{} holds the only copy of {shard}, which has no replica{more}: add a replica \
             (index.number_of_replicas), or cancel this restart and request one that accepts that \
             this index is unavailable until the node is back: `kubectl stayput -n {namespace} \
             restart {cluster} --allow-unreplicated {}`{snapshots}",
            candidate.name(),
            shell_word(shard.index)
        ),
    )
}

/// End of a message: the candidate's shards that have no other copy and are unavailable until it is back;
/// empty without such shards.
pub(crate) fn unavailable_shards(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> String {
    let Ok(mut single) = evaluation.copies().single(candidate.name()) else { return String::new() };
    let Some(first) = single.next() else { return String::new() };
    let (more, are) = match single.count() {
        0 => (String::new(), "is"),
        more => (format!(" and {more} more shards"), "are"),
    };
    format!("; {first}{more} {are} unavailable until it is back: there is no other copy")
}
