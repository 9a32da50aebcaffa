//! The distribution and version of an engine.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::answer::Answer;
use crate::transport::Call;
use crate::{EngineClient, EngineError, Topology, limited, shutdown};

/// An engine, as the node that answered describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Engine {
    /// The distribution of an engine.
    pub distribution: Distribution,
    /// Version of the node that answered. During an upgrade of the engine the elected master may have another
    /// one, which decides what the cluster can do: see [`Topology`](super::Topology). Never the compatibility
    /// version that the node may report to old clients.
    pub version: Version,
    /// The cluster's name.
    pub cluster_name: String,
    /// Id of the cluster; `None` before it was formed for the first time.
    pub cluster_uuid: Option<String>,
    /// The name of the node that answered.
    pub node_name: String,
    /// True if the engine supports node-shutdown records: probed, not derived from the version.
    pub has_node_shutdown: bool,
}

/// The distribution of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distribution {
    /// Elastic's.
    Elasticsearch,
    /// The OpenSearch project's, and what is made from it.
    OpenSearch,
}

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Elasticsearch => "Elasticsearch",
            Self::OpenSearch => "OpenSearch",
        })
    }
}

/// First version whose records are used, as in ECK: earlier ones had bugs.
const FIRST_WITH_RECORDS: Version = Version::new(7, 15, 2);

impl Engine {
    /// True if an earlier node gave this answer: the elected master has another version than in `before`, or
    /// no node has this one any more.
    pub fn is_outdated(&self, before: Option<&Topology>, now: &Topology) -> bool {
        let master = now.master_version();
        let has_changed = before.is_some_and(|before| before.master_version() != master);
        let mut versions = now.nodes.iter().filter_map(|node| node.version);
        has_changed || (master.is_some() && !versions.any(|version| version == self.version))
    }

    /// True if the elected master can list records. One older than the node that answered does not know the
    /// request that this node passes on to it.
    pub fn lists_records(&self, topology: &Topology) -> bool {
        self.has_node_shutdown
            && topology.master_version().is_none_or(|version| version >= FIRST_WITH_RECORDS)
    }

    pub(super) fn may_have_node_shutdown(&self) -> bool {
        self.distribution == Distribution::Elasticsearch && self.version >= FIRST_WITH_RECORDS
    }

    /// True if the engine has synced flushes. From 7.6 on every flush does the same.
    pub(super) fn has_synced_flush(&self) -> bool {
        self.distribution == Distribution::Elasticsearch && self.version < Version::new(7, 6, 0)
    }

    /// True if the engine elects by `minimum_master_nodes`; later ones have voting configurations.
    pub(super) fn has_minimum_master_nodes(&self) -> bool {
        self.distribution == Distribution::Elasticsearch && self.version.major < 7
    }

    pub(super) fn supported(self) -> Result<Self, EngineError> {
        let Self { distribution, version, node_name, .. } = &self;
        if *distribution == Distribution::Elasticsearch && *version < Version::new(6, 8, 0) {
            return Err(EngineError::Unsupported(
                format!(
                    "node {node_name} is {distribution} {version}: only 6.8 and later can be \
                 restarted safely; upgrade it to 6.8 first"
                )
                .into(),
            ));
        }
        Ok(self)
    }
}

impl EngineClient {
    /// Asks the engine for distribution, version and cluster.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] for Elasticsearch before 6.8; otherwise see [`EngineError`].
    pub async fn identify(&self) -> Result<Engine, EngineError> {
        let local = parse_local(&self.transport.send(&local_call()).await?)?;
        let root = self.transport.send(&Call::get("/")).await?;
        let mut engine = if root.is_unknown_route() {
            let state = Call::get("/_cluster/state/version?local=true");
            local.without_root(parse_state(&self.transport.send(&state).await?)?)
        } else {
            local.with_root(parse_root(&root)?)
        }
        .supported()?;
        if engine.may_have_node_shutdown() {
            let answer = self.transport.send(&shutdown::probe()).await?;
            engine.has_node_shutdown = shutdown::is_known(&answer)?;
        }
        Ok(engine)
    }
}

/// The id of a cluster, once it was formed: before that, engines return `_na_`.
pub(super) fn known(cluster_uuid: String) -> Option<String> {
    Some(cluster_uuid).filter(|uuid| uuid != "_na_")
}

pub(super) fn local_call() -> Call {
    Call::get(
        "/_nodes/_local/http?filter_path=\
         cluster_name,nodes.*.name,nodes.*.version,nodes.*.build_flavor",
    )
}

/// The node that answered.
#[derive(Debug)]
pub(super) struct Local {
    cluster_name: String,
    node: LocalNode,
}

#[derive(Debug, Deserialize)]
struct LocalNode {
    name: String,
    version: Version,
    /// Field that only Elasticsearch has, in every version from 6.3 on.
    build_flavor: Option<String>,
}

pub(super) fn parse_local(answer: &Answer) -> Result<Local, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        cluster_name: String,
        #[serde(deserialize_with = "limited::by_node")]
        nodes: BTreeMap<String, LocalNode>,
    }
    let Body { cluster_name, nodes } = answer.read()?;
    match nodes.into_values().next() {
        Some(node) => Ok(Local { cluster_name, node }),
        None => Err(answer.unexpected("it names no local node")),
    }
}

/// The part of the answer to `GET /` that is used.
#[derive(Debug, Deserialize)]
pub(super) struct Root {
    cluster_uuid: String,
    version: RootVersion,
}

/// The `version` of `GET /`. Its number may be 7.10, for clients that require Elasticsearch 7.10.
#[derive(Debug, Deserialize)]
struct RootVersion {
    distribution: Option<String>,
}

/// Reads the answer to `GET /`. Elasticsearch 6 without a master answers 503, with the same body.
pub(super) fn parse_root(answer: &Answer) -> Result<Root, EngineError> {
    match answer.body() {
        Ok(root) if answer.status == 503 => Ok(root),
        _ => answer.read(),
    }
}

/// The source of the cluster's id where `GET /` has no handler.
#[derive(Debug, Deserialize)]
pub(super) struct State {
    cluster_uuid: String,
}

pub(super) fn parse_state(answer: &Answer) -> Result<State, EngineError> {
    answer.read()
}

impl Local {
    pub(super) fn with_root(self, root: Root) -> Engine {
        let distribution = match root.version.distribution.as_deref() {
            Some("opensearch") => Distribution::OpenSearch,
            Some(_) | None => Distribution::Elasticsearch,
        };
        self.into_engine(distribution, root.cluster_uuid)
    }

    pub(super) fn without_root(self, state: State) -> Engine {
        let distribution = match self.node.build_flavor {
            Some(_) => Distribution::Elasticsearch,
            None => Distribution::OpenSearch,
        };
        self.into_engine(distribution, state.cluster_uuid)
    }

    fn into_engine(self, distribution: Distribution, cluster_uuid: String) -> Engine {
        Engine {
            distribution,
            version: self.node.version,
            cluster_name: self.cluster_name,
            cluster_uuid: known(cluster_uuid),
            node_name: self.node.name,
            has_node_shutdown: false,
        }
    }
}

/// Version of an engine, such as `8.19.0`, without a suffix after a dash, such as `-SNAPSHOT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    pub(super) const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }
}

/// A text that is not a version number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version such as 8.19.0")]
pub struct VersionError(String);

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.to_owned());
        let numbers = text.split('-').next().unwrap_or_default();
        let parts: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
        match parts.as_deref() {
            Ok(&[major, minor, patch]) => Ok(Self { major, minor, patch }),
            Ok(_) | Err(_) => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Version {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        text.parse()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests;
