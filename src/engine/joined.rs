//! The list of nodes as soon as a node knows that another one has joined.

use futures_util::future::select_ok;

use super::transport::EndpointIndex;
use super::{Engine, EngineClient, EngineError, Topology, health, topology};

/// Number of nodes to ask: one of them is not the elected master, which applies a new list last, once all
/// others have.
const ASKED: usize = 2;

impl EngineClient {
    /// Nodes and votes, as from [`Self::listed`], once the first of two nodes lists at least this many nodes;
    /// `None` if neither does within a second. That node has applied this state, and the elected master has
    /// committed it but may not have applied it itself: a later read from another node may be older. Without
    /// details of processes.
    ///
    /// # Errors
    /// The error of the last node, if both fail; a node that has lost its master does. See [`EngineError`].
    pub async fn listed_first(
        &self,
        engine: &Engine,
        at_least: usize,
    ) -> Result<Option<Topology>, EngineError> {
        let places = self.transport.first(ASKED).into_iter();
        let asked = places.map(|place| Box::pin(self.listed_at(place, engine, at_least)));
        select_ok(asked).await.map(|(first, _)| first)
    }

    async fn listed_at(
        &self,
        place: EndpointIndex,
        engine: &Engine,
        at_least: usize,
    ) -> Result<Option<Topology>, EngineError> {
        let joined = health::nodes_call(at_least).of_own_state();
        let joined = health::parse(&self.transport.send_to(place, &joined).await?)?;
        if joined.timed_out {
            return Ok(None);
        }
        let state = topology::state_call().of_own_state();
        let state = async {
            let answer = self.transport.send_to(place, &state).await?;
            match answer.without_master() {
                Some(error) => Err(error),
                None => Ok((answer, place)),
            }
        };
        self.listed_in(engine, state).await.map(Some)
    }
}
