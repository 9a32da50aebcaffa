//! Observes the engine: its report about its cluster.

mod joined;
mod leaving;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::snapshot::unknown;
use crate::credentials::{CredentialsError, Reach};
use crate::metrics::{Metrics, Side};
pub(super) use crate::observe::engine::leaving::Ours;
use crate::observe::snapshot::Ages;
use crate::pods::PodFacts;
pub(super) use joined::DataPaths;
pub(crate) use joined::not_back;
use joined::{have_just_joined, nothing_waits_for_rest};
use stayput_engine::convert;
use stayput_engine::{
    self, Allocation, Color, Endpoint, EngineClient, EngineError, Health, Record, Topology,
};
use stayput_restart::{self as restart, Engine, Known, Ledger, ShardCopies};

/// Time limit of one answer of one endpoint.
const ENGINE_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Age at which the last answer is too old for a stop, and the engine is read again.
const MAX_AGE_BEFORE_STOP: Duration = Duration::from_secs(2);
/// Number of nodes to try before the engine counts as unreachable.
const MAX_ENDPOINTS: usize = 8;

/// One engine, and its state that is kept from one observation to the next.
#[derive(Debug, Default)]
pub(crate) struct EngineView {
    client: Option<(String, Vec<Endpoint>, Arc<EngineClient>)>,
    /// Number of pods of the cluster.
    pods: usize,
    /// True while nodes leave the cluster.
    pub(super) nodes_leave: bool,
    identity: Option<stayput_engine::Engine>,
    /// Endpoints at which another cluster answered at the last look at rest: asked last.
    elsewhere: Vec<Endpoint>,
    /// Begin of the last read.
    read_at: Option<Instant>,
    /// Time that the last read of nodes, votes and shard copies took.
    reading: Duration,
    /// The last topology: unchanged parts are not read again.
    topology: Option<Topology>,
    /// Shard copies of the last topology, as decisions need them.
    copies: ShardCopies,
    /// Searchable snapshots among the indices of these shard copies, once known.
    searchable_snapshots: Option<BTreeSet<String>>,
}

/// Reason why the engine's view is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ViewError {
    /// There are no credentials: nothing was sent.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the engine was not reached yet")]
    NotReached,
    #[error("the engine has not answered yet; a node is started first")]
    StartFirst,
    #[error("the engine has not formed a cluster yet")]
    NoCluster,
    #[error("another cluster answers at the addresses of its pods")]
    OtherCluster,
    #[error(
        "the engine has not read its indices and settings from disk yet: it waits for more nodes \
         (gateway.expected_data_nodes, gateway.recover_after_data_nodes)"
    )]
    NotRecovered,
}

impl ViewError {
    /// True if the cause may be that one side speaks TLS and the other does not.
    pub(super) fn may_be_of_scheme(&self) -> bool {
        matches!(
            self,
            // Without its CA, TLS cannot be tried.
            Self::Credentials(_)
                | Self::Engine(
                    EngineError::NotReachable(_)
                        | EngineError::Untrusted(_)
                        | EngineError::Unanswered(_)
                        | EngineError::Protocol(_)
                )
        )
    }

    /// True if engines answer, and have no elected master.
    pub(super) fn is_without_master(&self) -> bool {
        matches!(self, Self::NoCluster)
            || matches!(self, Self::Engine(error) if error.is_without_master())
    }

    /// True if the engine did not accept our credentials, or its certificate is not trusted.
    pub(super) fn is_about_credentials(&self) -> bool {
        matches!(
            self,
            Self::Engine(
                EngineError::Unauthorized(_) | EngineError::Untrusted(_) | EngineError::Unusable(_)
            )
        )
    }
}

/// The endpoints to ask, best first: ready nodes before others, those under way last, and of these one of
/// each StatefulSet in turn. All nodes of one may be cut off from the others.
pub(super) fn endpoints(pods: &[Arc<PodFacts>], ages: &Ages<'_>, port: u16) -> Vec<Endpoint> {
    let mut of_each = BTreeMap::<_, usize>::new();
    let place = |pod: &Arc<PodFacts>| {
        let host = pod.address.clone()?;
        let state = (ages.is_under_way(&pod.uid), !pod.ready, pod.terminating);
        let set = pod.owner.as_ref().map(|owner| owner.uid.clone());
        let before = of_each.entry((state, set)).or_default();
        let place = (state, *before);
        *before += 1;
        Some((place, Endpoint { host, port }))
    };
    let mut placed: Vec<_> = pods.iter().filter_map(place).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().take(MAX_ENDPOINTS).map(|(_, endpoint)| endpoint).collect()
}

impl EngineView {
    /// The client that was used last, and the engine it reached.
    pub(crate) fn client(&self) -> Option<(Arc<EngineClient>, &stayput_engine::Engine)> {
        let (_, _, client) = self.client.as_ref()?;
        Some((Arc::clone(client), self.identity.as_ref()?))
    }

    /// Connects to these endpoints, and reads the engine.
    pub(super) async fn observe(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        zone: &str,
        ledger: Option<&Ledger>,
        metrics: &Metrics,
    ) -> Result<Engine, ViewError> {
        let connected =
            reach.map_err(ViewError::from).and_then(|reach| Ok(self.connect(&reach, endpoints)?));
        if let Err(error) = connected {
            self.read_at = Some(Instant::now());
            return Err(error);
        }
        self.read(zone, ledger, metrics).await
    }

    /// Sets the number of pods that the cluster has.
    pub(super) fn expect_pods(&mut self, pods: usize) {
        self.pods = pods;
    }

    /// The nodes that the engine listed last.
    pub(super) fn nodes(&self) -> &[stayput_engine::Node] {
        self.topology.as_ref().map(|topology| topology.nodes.as_slice()).unwrap_or_default()
    }

    /// Time that the last read of nodes, votes and shard copies took.
    pub(crate) fn reading(&self) -> Duration {
        self.reading
    }

    /// True if the last answer of the engine is too old for a stop.
    pub(super) fn is_old(&self) -> bool {
        self.read_at.is_none_or(|read| read.elapsed() > MAX_AGE_BEFORE_STOP)
    }

    /// Reads the engine with the client of the last observation. With a ledger, does not wait for shard copies
    /// and health where allocation is restored next.
    pub(super) async fn read(
        &mut self,
        zone: &str,
        ledger: Option<&Ledger>,
        metrics: &Metrics,
    ) -> Result<Engine, ViewError> {
        self.read_at = Some(Instant::now());
        let (_, _, client) = self.client.as_ref().ok_or(ViewError::NotReached)?;
        let client = Arc::clone(client);
        let identity = self.identified(&client, metrics).await?;
        let known = self.topology.as_ref();
        let answers = Answers::read(&client, &identity, known, ledger, metrics).await;
        metrics.count_request(Side::Engine, "topology", answers.is_ok());
        if answers.is_err() {
            // Another engine may run there now.
            self.identity = None;
        }
        let Answers { mut topology, health, mut settings, reading } = answers?;
        self.reading = reading;
        let cluster_uuid = formed(&topology)?;
        if identity.cluster_uuid.as_ref() != Some(&cluster_uuid)
            || identity.is_outdated(known, &topology)
        {
            self.identity = None;
        }
        if known.and_then(Topology::master_process) != topology.master_process() {
            // Both answers may have come from before this master had read its disks, when there was nothing.
            settings = Settings::read(&client, &identity, metrics).await;
        }
        if self.nodes_leave && health.is_some() {
            // The shard copies are not older than the exclusion: an excluded node without any gets none.
            let again = client.topology(&identity, Some(&topology)).await;
            metrics.count_request(Side::Engine, "topology", again.is_ok());
            topology = again?;
            if formed(&topology)? != cluster_uuid {
                return Err(ViewError::OtherCluster);
            }
        }
        let Settings { allocation, records } = settings;
        // An older master answers the request for records with an error.
        let records = if identity.lists_records(&topology) { records } else { Ok(None) };
        let (shards, searchable_snapshots, health) = match health {
            None => {
                let not_read = unknown("not read: allocation is restored first");
                (Err(not_read.clone()), Err(not_read.clone()), Err(not_read))
            }
            Some(health) => {
                let (shards, searchable_snapshots) =
                    self.copies_of(&topology, &client, &identity, metrics).await;
                let health = convert::known(health);
                (Ok(shards), searchable_snapshots, health)
            }
        };
        let topology = self.topology.insert(topology);
        Ok(Engine {
            version: format!("{} {}", identity.distribution, identity.version).to_lowercase(),
            cluster_uuid,
            nodes: topology.nodes.iter().map(|node| convert::node(node, zone)).collect(),
            elected_master: topology.elected_master.clone(),
            health,
            voting: Ok(topology.voting.clone()),
            shards,
            searchable_snapshots,
            immovable: topology.immovable.clone(),
            allocation: convert::known(allocation).map(convert::allocation),
            records: convert::known(records).map(|records| {
                records.map(|records| records.into_iter().map(convert::record).collect())
            }),
        })
    }

    /// The shard copies as decisions need them, and the searchable snapshots among their indices.
    async fn copies_of(
        &mut self,
        topology: &Topology,
        client: &EngineClient,
        identity: &stayput_engine::Engine,
        metrics: &Metrics,
    ) -> (ShardCopies, Known<BTreeSet<String>>) {
        let before = self.topology.as_ref().map(|before| &before.shards);
        let copies = if before.is_some_and(|before| Arc::ptr_eq(before, &topology.shards)) {
            self.copies.clone()
        } else {
            self.searchable_snapshots = None;
            convert::shards(&topology.shards)
        };
        let searchable_snapshots = match &self.searchable_snapshots {
            Some(found) => Ok(found.clone()),
            None => {
                // Asked only where it matters: few clusters have an index without replicas.
                let found = if stayput_engine::unreplicated(&topology.shards).is_empty() {
                    Ok(BTreeSet::new())
                } else {
                    let found = client.searchable_snapshots(identity).await;
                    metrics.count_request(Side::Engine, "searchable_snapshots", found.is_ok());
                    found
                };
                self.searchable_snapshots = found.as_ref().ok().cloned();
                convert::known(found)
            }
        };
        self.copies = copies.clone();
        (copies, searchable_snapshots)
    }

    /// Reads the allocation setting with our marker, and the shutdown records.
    pub(super) async fn changes(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        metrics: &Metrics,
    ) -> Result<(restart::Allocation, Vec<restart::Record>), ViewError> {
        let (client, identity) = self.connect_and_identify(reach, endpoints, metrics).await?;
        let Settings { allocation, records } = Settings::read(&client, &identity, metrics).await;
        let records = records?.into_iter().flatten().map(convert::record);
        Ok((convert::allocation(allocation?), records.collect()))
    }

    /// True if the node that answers is in a cluster that has formed.
    pub(super) async fn has_formed(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        metrics: &Metrics,
    ) -> Result<bool, ViewError> {
        let (_, identity) = self.connect_and_identify(reach, endpoints, metrics).await?;
        if identity.cluster_uuid.is_none() {
            // The cluster may have formed by the next time.
            self.identity = None;
        }
        Ok(identity.cluster_uuid.is_some())
    }

    async fn connect_and_identify(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        metrics: &Metrics,
    ) -> Result<(Arc<EngineClient>, stayput_engine::Engine), ViewError> {
        let client = self.connect(&reach?, endpoints)?;
        let identity = self.identified(&client, metrics).await?;
        Ok((client, identity))
    }

    /// Identity of the engine: the cached one, or else that of the node that answers.
    async fn identified(
        &mut self,
        client: &EngineClient,
        metrics: &Metrics,
    ) -> Result<stayput_engine::Engine, EngineError> {
        if let Some(identity) = &self.identity {
            return Ok(identity.clone());
        }
        let identity = client.identify().await;
        metrics.count_request(Side::Engine, "identify", identity.is_ok());
        Ok(self.identity.insert(identity?).clone())
    }

    fn connect(
        &mut self,
        reach: &Reach,
        endpoints: Vec<Endpoint>,
    ) -> Result<Arc<EngineClient>, EngineError> {
        let client = self.client_of(reach, endpoints)?;
        client.expect_pods(self.pods);
        Ok(client)
    }

    fn client_of(
        &mut self,
        Reach { access, version }: &Reach,
        endpoints: Vec<Endpoint>,
    ) -> Result<Arc<EngineClient>, EngineError> {
        if let Some((known, to, client)) = &self.client
            && *known == *version
            && *to == endpoints
        {
            return Ok(Arc::clone(client));
        }
        let best_first = self.best_first(&endpoints);
        if let Some((known, to, client)) = &mut self.client
            && *known == *version
            && have_the_same(to, &endpoints)
        {
            client.prefer(&best_first);
            *to = endpoints;
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(EngineClient::new(&best_first, access, ENGINE_ANSWER_TIMEOUT)?);
        if self.client.as_ref().is_some_and(|(known, ..)| known != version) {
            self.identity = None;
        }
        self.client = Some((version.clone(), endpoints, Arc::clone(&client)));
        Ok(client)
    }

    fn best_first(&self, endpoints: &[Endpoint]) -> Vec<Endpoint> {
        let mut best_first = endpoints.to_vec();
        best_first.sort_by_key(|endpoint| self.elsewhere.contains(endpoint));
        if let Some((_, _, before)) = &self.client {
            // A silent endpoint would delay every look again.
            best_first.sort_by_key(|endpoint| before.silent().any(|silent| silent == endpoint));
        }
        best_first
    }
}

/// Id of the cluster that the engine has formed.
fn formed(topology: &Topology) -> Result<String, ViewError> {
    if !topology.recovered {
        // An empty list of indices, settings or records would be taken for one without any.
        return Err(ViewError::NotRecovered);
    }
    topology.cluster_uuid.clone().ok_or(ViewError::NoCluster)
}

/// The engine's answers of one look.
struct Answers {
    /// Nodes and votes; shard copies and details of the nodes only together with the health.
    topology: Topology,
    /// `None` where allocation is restored next.
    health: Option<Result<Health, EngineError>>,
    settings: Settings,
    /// Time that nodes, votes and shard copies took. Does not count settings and the details of each node: one
    /// that boots or hangs takes long for them, and the others are not busy.
    reading: Duration,
}

impl Answers {
    /// Reads nodes, votes and settings, then shard copies and health. Leaves out the latter where allocation
    /// is restored next: a process that has joined just now is slow to report its details, and the health may
    /// take a second.
    async fn read(
        client: &EngineClient,
        identity: &stayput_engine::Engine,
        before: Option<&Topology>,
        ledger: Option<&Ledger>,
        metrics: &Metrics,
    ) -> Result<Self, EngineError> {
        let began = Instant::now();
        let listed = async {
            let listed = client.listed(identity, before).await?;
            Ok((listed, began.elapsed()))
        };
        let settings = async { Ok(Settings::read(client, identity, metrics).await) };
        // Without a master, the settings are not waited for: for its records a node waits 30 s for one.
        let ((listed, listing), settings) = tokio::try_join!(listed, settings)?;
        let nodes_before = before.map(|before| before.nodes.as_slice());
        let is_limited = settings.allocation.as_ref().is_ok_and(|one| one.marker.is_some());
        if ledger.is_some_and(|ledger| have_just_joined(ledger, nodes_before, &listed.nodes))
            && is_limited
        {
            let topology = listed.without_copies();
            return Ok(Self { topology, health: None, settings, reading: listing });
        }
        let is_last = ledger
            .zip(nodes_before)
            .is_some_and(|(ledger, nodes)| nothing_waits_for_rest(ledger, nodes));
        let health = async {
            let health =
                if is_last { client.health_at_once().await } else { client.health().await };
            metrics.count_request(Side::Engine, "health", health.is_ok());
            Ok(health)
        };
        let began = Instant::now();
        let ((mut topology, read_at), health) =
            tokio::try_join!(client.completed(listed, before), health)?;
        // A copy that has not started is older than a green health. Otherwise a node would wait for a copy
        // that has started, nodes whose turn is later would go before it, and the health, which is green
        // already, would not tell when to look again.
        if health.as_ref().is_ok_and(|health| health.color == Color::Green)
            && topology.shards.iter().any(|shard| !shard.state.serves())
        {
            topology = client.topology(identity, Some(&topology)).await?;
        }
        let reading = listing + (read_at - began);
        Ok(Self { topology, health: Some(health), settings, reading })
    }
}

/// The parts of an engine that we may have changed.
struct Settings {
    allocation: Result<Allocation, EngineError>,
    /// `None` for an engine without shutdown records.
    records: Result<Option<Vec<Record>>, EngineError>,
}

impl Settings {
    async fn read(
        client: &EngineClient,
        identity: &stayput_engine::Engine,
        metrics: &Metrics,
    ) -> Self {
        let records = async {
            if !identity.has_node_shutdown {
                return Ok(None);
            }
            let records = client.shutdown_records().await;
            metrics.count_request(Side::Engine, "records", records.is_ok());
            records.map(Some)
        };
        let (allocation, records) = tokio::join!(client.allocation(identity), records);
        metrics.count_request(Side::Engine, "allocation", allocation.is_ok());
        Self { allocation, records }
    }
}

/// True if both have the same endpoints, in any order.
fn have_the_same(one: &[Endpoint], other: &[Endpoint]) -> bool {
    one.len() == other.len() && one.iter().all(|endpoint| other.contains(endpoint))
}

#[cfg(test)]
pub(crate) mod tests;
