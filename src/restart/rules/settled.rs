//! Settled yellow: replicas are missing, and nothing is going to happen that would change it.

use std::collections::BTreeSet;

use crate::blocker::{Blocker, Check, refuse};
use crate::{Allocation, Code, Engine, Health, Known, Predicate};

/// Whether a yellow cluster is settled, looked at once for all candidates.
#[derive(Debug)]
pub(crate) struct Settled(Check);

impl Settled {
    /// Judges the health.
    ///
    /// `fenced` are the nodes kept stopped on request, and `expected_data` is how many *others*
    /// should be in the cluster and hold data: a fenced node that is still in does not make up for
    /// one that is missing.
    pub(crate) fn of(engine: &Engine, fenced: &BTreeSet<String>, expected_data: usize) -> Self {
        Self(match &engine.health {
            Err(unknown) => Err(Blocker::engine_unreachable(unknown)),
            Ok(health) => settled(engine, health, fenced, expected_data),
        })
    }

    /// Passes if waiting would not make the cluster greener.
    pub(crate) fn gate(&self) -> Check {
        self.0.clone()
    }
}

/// Yellow, but nothing is going to happen.
fn settled(
    engine: &Engine,
    health: &Health,
    fenced: &BTreeSet<String>,
    expected_data: usize,
) -> Check {
    let mut restless = movements(health);
    let leaving = engine
        .nodes
        .iter()
        .filter(|node| fenced.contains(&node.name))
        .filter(|node| node.holds_data())
        .count();
    let data_nodes = usize::try_from(health.data_nodes).unwrap_or(usize::MAX);
    let staying = data_nodes.saturating_sub(leaving);
    if staying < expected_data {
        restless.push(format!("{staying} of {expected_data} data nodes are in"));
    }
    restless.extend(allocation(&engine.allocation)?);
    match &engine.shards {
        Err(unknown) => refuse(
            Code::EngineUnreachable,
            format!("the cluster is yellow and its shards are not known: {}", unknown.message),
        )?,
        Ok(shards) => {
            let lost = shards.iter().filter(|copy| copy.primary && copy.node.is_none());
            if let Some(first) = lost.clone().next() {
                restless.push(format!(
                    "{} primaries are unassigned, first of them shard {} of {}",
                    lost.count(),
                    first.shard,
                    first.index
                ));
            }
        }
    }
    if restless.is_empty() {
        return Ok(());
    }
    if health.unassigned > 0 {
        restless.insert(0, counted(health.unassigned, "unassigned"));
    }
    refuse(
        Code::Predicate(Predicate::Yellow),
        format!(
            "the cluster is yellow and not settled ({}): waits until it is green or at rest",
            restless.join(", ")
        ),
    )
}

/// So many copies of shards.
fn counted(count: u32, what: &str) -> String {
    format!("{count} shard cop{} {what}", if count == 1 { "y" } else { "ies" })
}

/// What the engine is doing, as far as its health tells.
fn movements(health: &Health) -> Vec<String> {
    let counts = [
        (health.initializing, "initializing"),
        (health.relocating, "relocating"),
        (health.delayed, "delayed"),
        (health.in_flight_fetch, "being looked for"),
    ];
    let mut found: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| counted(count, what))
        .collect();
    if health.timed_out {
        found.push("its queue of tasks did not calm down".to_owned());
    }
    found
}

/// Whether copies may be allocated at all; while they may not, yellow is not the engine's last word.
fn allocation(allocation: &Known<Allocation>) -> Result<Option<String>, Blocker> {
    let setting = match allocation {
        Ok(allocation) => &allocation.setting,
        Err(unknown) => {
            return Err(Blocker {
                code: Code::EngineUnreachable,
                message: format!(
                    "the cluster is yellow and its allocation setting is not known: {}",
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
