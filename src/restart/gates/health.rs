//! The cluster's health: a healthy node is stopped only in a cluster that can spare it.

use std::collections::BTreeSet;

use crate::restart::gate::{Gate, Refusal, refuse};
use crate::restart::{Allocation, Code, Color, Engine, Health, Known};

/// What the health allows, looked at once for all candidates.
#[derive(Debug)]
pub(in crate::restart) struct Settled {
    /// The health is known, if not what else there is to know.
    is_known: bool,
    /// What it means for a healthy node.
    verdict: Gate,
}

impl Settled {
    /// Judges the health.
    ///
    /// `fenced` are the nodes kept stopped on request, and `expected_data` is how many *others*
    /// should be in the cluster and hold data: a fenced node that is still in does not make up for
    /// one that is missing.
    pub(in crate::restart) fn of(
        engine: &Engine,
        fenced: &BTreeSet<String>,
        expected_data: usize,
    ) -> Self {
        let verdict = match &engine.health {
            Err(unknown) => refuse(
                Code::EngineUnreachable,
                format!("the cluster's health is not known: {}", unknown.sentence),
            ),
            Ok(health) => match health.color {
                Color::Green => Ok(()),
                Color::Yellow => settled(engine, health, fenced, expected_data),
                Color::Red => refuse(
                    Code::Health,
                    format!(
                        "the cluster is red, {} shard copies are unassigned, a primary among them: \
                         only nodes that are not healthy are restarted until it is at least yellow",
                        health.unassigned
                    ),
                ),
                Color::Unknown => refuse(
                    Code::Health,
                    "the engine names a color of its health that is neither green nor yellow nor \
                     red: only nodes that are not healthy are restarted",
                ),
            },
        };
        Self { is_known: engine.health.is_ok(), verdict }
    }

    /// Passes if the cluster is green, or yellow and settled, so that waiting would not make it
    /// greener. A node that is not healthy passes in any color: it serves nothing that a stop could
    /// take away, and may be what keeps the cluster from being green. It does not pass if the health
    /// cannot be read.
    pub(in crate::restart) fn gate(&self, candidate: &str, candidate_is_healthy: bool) -> Gate {
        match &self.verdict {
            Err(_) if self.is_known && !candidate_is_healthy => Ok(()),
            Err(Refusal { code, sentence }) => {
                refuse(*code, format!("{candidate} is not stopped: {sentence}"))
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Yellow, but nothing is going to happen.
fn settled(
    engine: &Engine,
    health: &Health,
    fenced: &BTreeSet<String>,
    expected_data: usize,
) -> Gate {
    let mut restless = movements(health);
    // A node that did not tell its roles may hold data: it is taken for one that does.
    let leaving = engine
        .nodes
        .iter()
        .filter(|node| fenced.contains(&node.name))
        .filter(|node| node.holds_data() || node.roles.is_empty())
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
            format!("the cluster is yellow and its shards are not known: {}", unknown.sentence),
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
    refuse(
        Code::Health,
        format!(
            "the cluster is yellow with {} unassigned shard copies and not settled ({}): waits \
             until it is green or at rest",
            health.unassigned,
            restless.join(", ")
        ),
    )
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
        .map(|(count, what)| format!("{count} shards {what}"))
        .collect();
    if health.timed_out {
        found.push("its queue of tasks did not calm down".to_owned());
    }
    found
}

/// Whether copies may be allocated at all; while they may not, yellow is not the engine's last word.
fn allocation(allocation: &Known<Allocation>) -> Result<Option<String>, Refusal> {
    let setting = match allocation {
        Ok(allocation) => &allocation.setting,
        Err(unknown) => {
            return Err(Refusal {
                code: Code::EngineUnreachable,
                sentence: format!(
                    "the cluster is yellow and its allocation setting is not known: {}",
                    unknown.sentence
                ),
            });
        }
    };
    let effective = setting.transient.as_ref().or(setting.persistent.as_ref());
    Ok(effective
        .filter(|value| !value.eq_ignore_ascii_case("all"))
        .map(|value| format!("cluster.routing.allocation.enable is {value:?}")))
}
