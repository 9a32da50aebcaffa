//! Shard copies and health that belong together.

#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::time::Instant;

use crate::engine_client::{Color, Engine, EngineClient, EngineError, Health, Topology};

/// What was read of the engine at the same time.
pub(super) struct Moment {
    pub(super) topology: Result<Topology, EngineError>,
    pub(super) health: Result<Health, EngineError>,
    /// How long the topology took.
    pub(super) reading: Duration,
}

/// Reads topology and health at the same time. The engine answers for the health once its tasks are
/// done, so that the health may be newer. If it is green and a copy has not started, the topology is
/// read once more. Otherwise a node would wait for a copy that has started, and nodes whose turn is
/// later would go before it; and as the health is green already, it would not tell when to look again.
///
/// `before` is the last topology.
pub(super) async fn read(
    client: &EngineClient,
    identity: &Engine,
    before: Option<&Topology>,
) -> Moment {
    let topology = async {
        let began = Instant::now();
        (client.topology(identity, before).await, began.elapsed())
    };
    let ((topology, reading), health) = tokio::join!(topology, client.health());
    let topology = match topology {
        Ok(first) if is_older(&first, &health) => client.topology(identity, Some(&first)).await,
        read => read,
    };
    Moment { topology, health, reading }
}

/// Whether the copies must be older than the health.
fn is_older(topology: &Topology, health: &Result<Health, EngineError>) -> bool {
    let is_green = health.as_ref().is_ok_and(|health| health.status == Color::Green);
    is_green && topology.shards.iter().any(|shard| !shard.state.serves())
}
