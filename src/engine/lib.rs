//! A typed client of Elasticsearch 6.8 to 9 and OpenSearch 1 to 3, with the requests that a safe
//! restart needs. Every difference between versions and distributions is in this module.
//!
//! * A client has several endpoints of one cluster. A request that could not be sent goes to the
//!   next endpoint; so does a read that one endpoint cannot answer, or a cluster state without an
//!   elected master.
//! * Reads use connections that are kept, a few for each endpoint. They end with the client, which is
//!   made for one CA and one identity. A write has a connection of its own.
//! * [`Topology`] has nodes and votes of one cluster state, and the shard copies of the same or of a
//!   later one. `GET /_cat/shards` is a second read of another instant, asks every node for statistics
//!   that are not needed here, and may be refused for its size.
//! * An answer is bounded in time and size, and parsed by a pure function over its bytes into types that hold
//!   no more than a few times its size: whoever runs a pod chooses what it answers.

pub mod convert;

mod answer;
mod endpoint;
mod health;
mod identify;
mod limited;
mod shards;
mod shutdown;
mod topology;
mod transport;

mod changes;
mod nodes;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use answer::{Cause, EngineError};
pub use changes::Allocation;
pub use changes::Flush;
pub use changes::restored;
pub use endpoint::{Access, AllowPlain, Credentials, Endpoint, tls};
pub use identify::{Distribution, Engine};
pub use identify::{Version, VersionError};
pub use nodes::{Member, Members};
pub use shards::{Shard, ShardState, unreplicated};
pub use shutdown::record_path;
pub use shutdown::{Part, Record, RecordKind, RecordStatus, ShardMigration};
pub use stayput_restart::{Color, Health, Voting};
pub use topology::{Node, Topology};

use transport::Transport;

/// The client of one cluster.
#[derive(Debug)]
pub struct EngineClient {
    transport: Transport,
}

impl EngineClient {
    /// A client of the cluster that has these endpoints, in order of preference. Sends nothing yet. `timeout`
    /// is the time limit of one endpoint for one answer; the engine gets a shorter timeout, so that it can
    /// report why it gave up.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] if there is no endpoint, or if an address, a name or a credential cannot be
    /// used.
    pub fn new(
        endpoints: &[Endpoint],
        access: &Access,
        timeout: Duration,
    ) -> Result<Self, EngineError> {
        Ok(Self { transport: Transport::new(endpoints, access, timeout)? })
    }

    /// Sets the number of the cluster's pods: with more of them its answers may be larger.
    pub fn expect_pods(&self, pods: usize) {
        self.transport.expect_pods(pods);
    }

    /// Asks the endpoints in this order from now on, on the connections that are open.
    pub fn prefer(&self, best_first: &[Endpoint]) {
        self.transport.prefer(best_first);
    }

    /// The endpoints that did not answer their last request.
    pub fn silent(&self) -> impl Iterator<Item = &Endpoint> {
        self.transport.silent()
    }
}
