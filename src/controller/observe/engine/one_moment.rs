//! Reads shard copies and health so that they agree.

#[cfg(test)]
pub(super) mod tests;

use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::time::Instant;

use stayput_engine::{Color, Engine, EngineClient, EngineError, Health, Topology};

/// Topology and health, read at the same time.
pub(super) struct Moment {
    pub(super) topology: Result<Topology, EngineError>,
    /// Health, if it was waited for; without it the topology has nodes and votes alone.
    pub(super) health: Option<Result<Health, EngineError>>,
    /// Time that nodes, votes and shard copies took. Does not count the details of each node: one that boots
    /// or hangs takes long for them, and the others are not busy.
    pub(super) reading: Duration,
}

/// Cached state of the nodes.
pub(super) struct Nodes<'a, F> {
    /// The last topology.
    pub(super) before: Option<&'a Topology>,
    /// Nodes and votes from the answer to the wait for a joining node. Nothing is read together with them.
    pub(super) joined: Option<Topology>,
    /// True for a topology that is the first to show the nodes under way as joined.
    pub(super) have_joined: F,
}

/// Reads topology and health at the same time. The engine answers for the health once its tasks are done, so
/// that the health may be newer. If it is green and a copy has not started, the topology is read once more.
/// Otherwise a node would wait for a copy that has started, and nodes whose turn is later would go before it;
/// and as the health is green already, it would not tell when to look again.
///
/// `health` reads the health, or has it already. Once the list of nodes shows that nodes have joined, and
/// while allocation `is_limited`, nothing else is waited for: a process that has joined just now is slow to
/// report its details, and the health may take a second.
pub(super) async fn read(
    client: &EngineClient,
    identity: &Engine,
    Nodes { before, joined, have_joined }: Nodes<'_, impl Fn(&Topology) -> bool>,
    health: impl Future<Output = Result<Health, EngineError>>,
    is_limited: oneshot::Receiver<bool>,
) -> Moment {
    let began = Instant::now();
    let (tell, nodes_are_enough) = oneshot::channel();
    let is_limited = is_limited.map(|limited| limited == Ok(true)).shared();
    let topology = async {
        let joined = joined.map(|joined| joined.with_details_of(before)).filter(&have_joined);
        let listed = match joined {
            Some(joined) if is_limited.clone().await => joined,
            Some(_) | None => match client.listed(identity, before).await {
                Ok(listed) => listed,
                Err(error) => return (Err(error), began.elapsed(), false),
            },
        };
        if have_joined(&listed) && is_limited.await {
            // Nobody listens any more if the health was quicker.
            let _ = tell.send(());
            return (Ok(listed.without_copies()), began.elapsed(), true);
        }
        match client.completed(listed, before).await {
            Ok((topology, read_at)) => (Ok(topology), read_at - began, false),
            Err(error) => (Err(error), began.elapsed(), false),
        }
    };
    let health = async {
        tokio::select! {
            biased;
            health = health => Some(health),
            Ok(()) = nodes_are_enough => None,
        }
    };
    let ((topology, reading, is_enough), health) = tokio::join!(topology, health);
    if is_enough {
        return Moment { topology, health: None, reading };
    }
    let topology = match topology {
        Ok(first) if is_older(&first, health.as_ref()) => {
            client.topology(identity, Some(&first)).await
        }
        read => read,
    };
    Moment { topology, health, reading }
}

/// True if the copies must be older than the health.
fn is_older(topology: &Topology, health: Option<&Result<Health, EngineError>>) -> bool {
    let health = health.and_then(|health| health.as_ref().ok());
    let is_green = health.is_some_and(|health| health.status == Color::Green);
    is_green && topology.shards.iter().any(|shard| !shard.state.serves())
}
