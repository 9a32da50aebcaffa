//! The declared cluster, and what there is of it.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::{Map, Value};
use stayput_pod_spec::{ELASTICSEARCH, EngineImage, OPENSEARCH};
use stayput_pod_update::Settings;

use crate::{Bootstrap, SeenClaim};

/// A declared cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Name of the SearchCluster; also `cluster.name`.
    pub name: String,
    /// Namespace of the SearchCluster.
    pub namespace: String,
    /// uid of the SearchCluster, which owns every object.
    pub uid: String,
    /// The engine on the nodes.
    pub engine: Engine,
    /// The manager in front of each engine.
    pub manager: Manager,
    /// The nodes.
    pub node_sets: Vec<NodeSet>,
}

/// How the managers are installed in the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Image with the program, for an init container; without it any image that has the program.
    pub image: Option<String>,
    /// Image of this version, for sets that are not there yet.
    pub image_of_new_sets: String,
    /// Port of the manager's API.
    pub port: u16,
    /// The service account that may stop and start engines: `namespace:name`.
    pub account: String,
}

/// Nodes that have the same config and the same pod template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSet {
    /// Name of the node set, unique in the cluster.
    pub name: String,
    /// Number of nodes.
    pub count: u32,
    /// Settings of the engine.
    pub config: Map<String, Value>,
    /// Pod template, merged over the one that the reconciler makes.
    pub pod_template: Value,
    /// `volumeClaimTemplates` as in a StatefulSet. The one named `data` is mounted as the engine's data.
    pub volume_claim_templates: Vec<Value>,
    /// `persistentVolumeClaimRetentionPolicy` as in a StatefulSet.
    pub claim_retention: Option<Value>,
}

impl Cluster {
    /// The node sets by name: their order in the declaration means nothing.
    pub(crate) fn sorted(&self) -> Vec<&NodeSet> {
        let mut sets: Vec<&NodeSet> = self.node_sets.iter().collect();
        sets.sort_by(|a, b| a.name.cmp(&b.name));
        sets
    }
}

/// The engine's distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Elasticsearch.
    Elasticsearch,
    /// OpenSearch.
    OpenSearch,
}

impl Distribution {
    /// `elasticsearch` or `opensearch`: also the container's name.
    pub fn name(self) -> &'static str {
        self.image().name
    }

    /// The official image: its entrypoint and directories.
    pub(crate) fn image(self) -> EngineImage {
        match self {
            Self::Elasticsearch => ELASTICSEARCH,
            Self::OpenSearch => OPENSEARCH,
        }
    }

    /// The entrypoint of the official image, with its arguments.
    pub(crate) fn entrypoint(self) -> [String; 2] {
        [self.image().entrypoint, self.image().arguments].map(str::to_owned)
    }

    fn image_name(self, version: Version) -> String {
        match self {
            Self::Elasticsearch => {
                format!("docker.elastic.co/elasticsearch/elasticsearch:{version}")
            }
            Self::OpenSearch => format!("opensearchproject/opensearch:{version}"),
        }
    }
}

/// Major, minor and patch version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |part: &str| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| digits)
        };
        let parts: Option<Vec<u32>> = text.split('.').map(number).collect();
        match parts.as_deref() {
            Some([major, minor, patch]) => Ok(Self(*major, *minor, *patch)),
            Some(_) | None => Err(()),
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The engine on all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Distribution of the engine.
    pub distribution: Distribution,
    /// Version of the engine.
    pub version: Version,
    /// The image; without it the official one of the version.
    pub image: Option<String>,
    /// Port of its REST API.
    pub port: u16,
    /// True if the REST API has TLS.
    pub tls: bool,
    /// Secret with `ca.crt`, the CA of the REST API's certificates.
    pub ca_secret: Option<String>,
    /// Secret with the login for the REST API.
    pub credentials_secret: Option<String>,
    /// True if each pod creates an archive of the engine's classes before the first start.
    pub warm: bool,
}

impl Engine {
    /// The image on all nodes.
    pub fn image(&self) -> String {
        self.image.clone().unwrap_or_else(|| self.distribution.image_name(self.version))
    }

    /// True for Elasticsearch before 7: a number in every node's config instead of
    /// voting configurations.
    pub(crate) fn has_minimum_master_nodes(&self) -> bool {
        self.distribution == Distribution::Elasticsearch && self.version < Version(7, 0, 0)
    }

    /// True if a stop waits for requests that are not answered, up to a setting.
    pub(crate) fn waits_for_clients(&self) -> bool {
        self.distribution == Distribution::Elasticsearch && self.version >= Version(8, 9, 0)
    }

    /// The setting with the names of the first masters.
    pub(crate) fn initial_masters(&self) -> &'static str {
        if self.distribution == Distribution::OpenSearch && self.version >= Version(2, 0, 0) {
            "cluster.initial_cluster_manager_nodes"
        } else {
            "cluster.initial_master_nodes"
        }
    }

    /// The setting with the addresses at which a node looks for others.
    pub(crate) fn seed_hosts(&self) -> &'static str {
        if self.has_minimum_master_nodes() {
            "discovery.zen.ping.unicast.hosts"
        } else {
            "discovery.seed_hosts"
        }
    }
}

/// Roles on which the order of work and the refusals depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Roles {
    /// True if nodes are master-eligible.
    pub(crate) master: bool,
    /// True if nodes hold shards.
    pub(crate) data: bool,
}

/// The settings of a set by their full names, however they are nested.
pub(crate) fn settings(set: &NodeSet) -> Settings {
    stayput_pod_update::settings(&serde_json::Value::Object(set.config.clone()))
}

/// The roles that a set's config gives. Without a setting a node has all roles. `node.master` and
/// `node.data` are the old way.
pub(crate) fn roles(set: &NodeSet) -> Roles {
    let settings = settings(set);
    if let Some(written) = settings.get("node.roles") {
        let has = |wanted: fn(&str) -> bool| written.split(',').any(|role| wanted(role.trim()));
        return Roles {
            master: has(|role| role == "master" || role == "cluster_manager"),
            data: has(|role| role.starts_with("data")),
        };
    }
    let unless_off = |name: &str| settings.get(name).is_none_or(|value| value != "false");
    Roles { master: unless_off("node.master"), data: unless_off("node.data") }
}

/// State of a declared cluster; only objects that it owns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// StatefulSets, by the name of their node set.
    pub sets: BTreeMap<String, ObservedSet>,
    /// How the cluster forms, as it was first written.
    pub bootstrap: Option<Bootstrap>,
    /// The volume claims of the namespace; read only while nodes with claims are created.
    pub claims: Vec<SeenClaim>,
    /// True if the engine has said that it has formed a cluster.
    pub formed: bool,
}

/// A StatefulSet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedSet {
    /// Wanted number of pods.
    pub replicas: u32,
    /// Number of ready pods.
    pub ready: u32,
    /// Image of the manager in the pod template.
    pub manager_image: Option<String>,
    /// The declaration at the last apply.
    pub declared: Value,
}

impl ObservedSet {
    /// Name of the distribution at the last apply.
    pub(crate) fn distribution(&self) -> Option<&str> {
        self.declared["distribution"].as_str()
    }

    /// Version at the last apply.
    pub(crate) fn version(&self) -> Option<Version> {
        self.declared["version"].as_str()?.parse().ok()
    }

    /// Volume claims at the last apply.
    pub(crate) fn claims(&self) -> Option<&Vec<Value>> {
        self.declared["volumeClaimTemplates"].as_array()
    }
}
