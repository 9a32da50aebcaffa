//! The engine, and what differs between distributions and versions.

use std::str::FromStr;

use stayput_pod_spec::{ELASTICSEARCH, EngineImage, OPENSEARCH};

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
