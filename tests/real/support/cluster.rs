//! Up to five real nodes of one real cluster, each under a real manager. Their pods' addresses are
//! 127.0.0.11, .12 and so on, with the same ports, and each config is a volume.
//!
//! [`Cluster::prepare`] makes directories, ports, certificates and keys and starts nothing, so that
//! a test can create pods and Secrets from it. [`Cluster::start`] starts the managers and waits for
//! the cluster. Everything ends when it is dropped.

mod member;
mod rest;

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use member::Member;
pub(crate) use rest::Rest;

use super::archive;
use super::engine::{Kind, work_directory};
use super::namespace::cannot_isolate;
use super::pki::{Issued, issue};
use super::ports::free_port;
use super::wait::eventually_or;

/// The nodes' addresses, in their order.
const ADDRESSES: [Ipv4Addr; 5] = [
    Ipv4Addr::new(127, 0, 0, 11),
    Ipv4Addr::new(127, 0, 0, 12),
    Ipv4Addr::new(127, 0, 0, 13),
    Ipv4Addr::new(127, 0, 0, 14),
    Ipv4Addr::new(127, 0, 0, 15),
];

/// Which engine, and with what beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// With an archive of class data, so that its nodes start sooner.
    OpenSearch,
    /// As it is shipped: with its own JVM options, which are all compilers and a heap of 1 GB.
    ShippedOpenSearch,
    /// OpenSearch 3, on Java 25.
    OpenSearch3,
    Elasticsearch,
    /// Elasticsearch 9, on Java 25.
    Elasticsearch9,
    /// With `tests/parts/es-node-shutdown`.
    ElasticsearchWithRecords,
    /// With certificates beside its config, and without TLS as long as no setting turns it on.
    ElasticsearchWithCertificates,
}

impl Flavor {
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::OpenSearch | Self::ShippedOpenSearch | Self::OpenSearch3 => Kind::OpenSearch,
            Self::Elasticsearch
            | Self::Elasticsearch9
            | Self::ElasticsearchWithRecords
            | Self::ElasticsearchWithCertificates => Kind::Elasticsearch,
        }
    }

    /// The variables that name the engine's home and its Java.
    const fn variables(self) -> [&'static str; 2] {
        match self {
            Self::OpenSearch | Self::ShippedOpenSearch => ["STAYPUT_OPENSEARCH_HOME", "JAVA_HOME"],
            Self::OpenSearch3 => ["STAYPUT_OPENSEARCH3_HOME", "STAYPUT_JAVA25_HOME"],
            Self::Elasticsearch | Self::ElasticsearchWithCertificates => {
                ["STAYPUT_ELASTICSEARCH_HOME", "JAVA_HOME"]
            }
            Self::Elasticsearch9 => ["STAYPUT_ELASTICSEARCH9_HOME", "STAYPUT_JAVA25_HOME"],
            Self::ElasticsearchWithRecords => ["STAYPUT_ELASTICSEARCH_SHUTDOWN_HOME", "JAVA_HOME"],
        }
    }
}

/// The pod of a node.
#[derive(Debug, Clone)]
pub(crate) struct PodIdentity {
    /// Also the node's name.
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl PodIdentity {
    /// `logs-0`, `logs-1` and `logs-2`, for tests without an apiserver.
    pub(crate) fn three() -> [Self; 3] {
        [0, 1, 2].map(|at| Self {
            name: format!("logs-{at}"),
            uid: format!("0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7{at}"),
        })
    }
}

/// A node to create.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    pub(crate) pod: PodIdentity,
    /// Its attribute `zone`.
    pub(crate) zone: String,
    /// Its `node.roles`, as OpenSearch calls them; none for the engine's default.
    pub(crate) roles: Option<&'static [&'static str]>,
}

impl Seat {
    /// Nodes with every role, in the zones `z0`, `z1` and so on.
    pub(crate) fn all_rounders(pods: impl IntoIterator<Item = PodIdentity>) -> Vec<Self> {
        let seat = |(at, pod)| Self { pod, zone: format!("z{at}"), roles: None };
        pods.into_iter().enumerate().map(seat).collect()
    }

    /// Whether it can be elected.
    fn is_master(&self) -> bool {
        self.roles.is_none_or(|roles| roles.contains(&"cluster_manager"))
    }
}

/// Which tokens managers accept, besides those of the shared key.
#[derive(Debug, Clone)]
pub(crate) struct Issuer {
    /// What the apiserver answers at `/openid/v1/jwks`.
    pub(crate) jwks: String,
    pub(crate) issuer: String,
    /// A subject such as `system:serviceaccount:search:stayput`; it may control.
    pub(crate) subject: String,
}

/// The ports, the same on every address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) transport: u16,
    pub(crate) manager: u16,
}

/// Shared by all members.
#[derive(Debug)]
struct Shared {
    flavor: Flavor,
    home: PathBuf,
    java: OsString,
    /// Of class data, if the engine is to start with one.
    archive: Option<&'static Path>,
    namespace: String,
    addresses: Vec<Ipv4Addr>,
    /// Names of the first masters.
    masters: Vec<String>,
    ports: Ports,
    issuer: Option<Issuer>,
    directory: TempDir,
}

/// The nodes, their managers and their shared data.
#[derive(Debug)]
pub(crate) struct Cluster {
    flavor: Flavor,
    pub(crate) members: Vec<Member>,
    pub(crate) ports: Ports,
    /// Where a snapshot repository can be; each node may use it.
    pub(crate) repository: PathBuf,
    /// Of every manager's certificate, which is for the name `stayput`.
    pub(crate) ca_pem: String,
}

/// Managers accept tokens of this key, too.
const JWT_KEY: &[u8] = b"a shared key of thirty-two bytes, or more";
/// The name that every manager's certificate is for.
pub(crate) const SERVER_NAME: &str = "stayput";

impl Cluster {
    /// Nodes in these pods of `namespace`, whose configs are mounted. `Err` names what is missing
    /// here.
    pub(crate) fn prepare(
        flavor: Flavor,
        namespace: &str,
        seats: Vec<Seat>,
        issuer: Option<Issuer>,
    ) -> Result<Self, String> {
        let [home, java] = flavor.variables().map(|variable| {
            std::env::var_os(variable).ok_or(format!("{flavor:?} is not installed: no {variable}"))
        });
        let (home, java) = (PathBuf::from(home?), java?);
        if let Some(why) = cannot_isolate() {
            return Err(why);
        }
        let archive = match flavor {
            Flavor::OpenSearch => Some(archive::of_opensearch()?),
            _ => None,
        };
        let directory = work_directory(&["repository"]);
        let port = || free_port(&ADDRESSES);
        let ports = Ports { http: port(), transport: port(), manager: port() };
        let ca_pem = certify(&directory);
        fs::write(directory.path().join("shared.key"), JWT_KEY).expect("a key");
        if let Some(Issuer { jwks, .. }) = &issuer {
            fs::write(directory.path().join("jwks.json"), jwks).expect("a key set");
        }
        let addresses = ADDRESSES[..seats.len()].to_vec();
        let masters = seats.iter().filter(|seat| seat.is_master());
        let repository = directory.path().join("repository");
        let shared = Arc::new(Shared {
            flavor,
            home,
            java,
            archive,
            namespace: namespace.to_owned(),
            addresses: addresses.clone(),
            masters: masters.map(|seat| seat.pod.name.clone()).collect(),
            ports,
            issuer,
            directory,
        });
        let members = addresses.into_iter().zip(seats);
        let members = members.map(|(at, seat)| Member::new(shared.clone(), at, seat)).collect();
        Ok(Self { flavor, members, ports, repository, ca_pem })
    }

    /// Which engine it is.
    pub(crate) const fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Starts every manager that does not run and waits until all nodes are in one cluster, green.
    pub(crate) fn start(&mut self) {
        for member in &mut self.members {
            member.start_manager();
        }
        for member in &self.members {
            member.manager().api.until_ready();
        }
        self.until_formed();
    }

    /// Waits until all nodes are in one cluster and every shard copy is started.
    #[track_caller]
    pub(crate) fn until_formed(&self) -> Value {
        let nodes = self.members.len();
        let target =
            format!("/_cluster/health?wait_for_nodes={nodes}&wait_for_status=green&timeout=5s");
        let is_formed = || {
            let health = self.members[0].rest.send("GET", &target, None).ok()?;
            (health.status == 200 && health.body["timed_out"] == false).then_some(health.body)
        };
        eventually_or(&format!("{nodes} nodes, green"), is_formed, || self.why_not_green())
    }

    /// What each node says about its cluster, and the engine about a shard copy that is not started.
    fn why_not_green(&self) -> String {
        let details = [
            "/_cat/shards?format=json&h=index,shard,prirep,state,node,unassigned.*",
            "/_cluster/allocation/explain",
            "/_cluster/settings?flat_settings=true",
            "/_cat/pending_tasks?format=json",
            "/_cat/recovery?active_only=true&format=json",
            "/_tasks?detailed=true",
        ];
        let ask = |member: &Member, target: &str| {
            let said = match member.rest.send("GET", target, None) {
                Ok(answer) => format!("{} {}", answer.status, answer.body),
                Err(error) => error.to_string(),
            };
            format!("\n{}: {target}: {said}", member.pod.name)
        };
        let of_all = self.members.iter().map(|member| ask(member, "/_cluster/health"));
        let of_first = details.iter().map(|target| ask(&self.members[0], target));
        let recoveries = self.members.iter().map(Member::recovery_threads);
        of_all.chain(of_first).chain(recoveries).collect()
    }

    /// The member of this name.
    #[track_caller]
    pub(crate) fn member(&self, name: &str) -> &Member {
        self.members.iter().find(|member| member.pod.name == name).expect(name)
    }

    /// The same, mutable: to swap its config or to start it.
    #[track_caller]
    pub(crate) fn member_mut(&mut self, name: &str) -> &mut Member {
        self.members.iter_mut().find(|member| member.pod.name == name).expect(name)
    }
}

/// Writes the managers' certificate and its key; returns the PEM of the CA that signed it.
fn certify(directory: &TempDir) -> String {
    let addresses = ADDRESSES.map(|address| address.to_string());
    let names: Vec<&str> = addresses.iter().map(String::as_str).chain([SERVER_NAME]).collect();
    let Issued { ca, certificate, key } = issue(&names).expect("a certificate");
    fs::write(directory.path().join("tls.crt"), certificate.pem()).expect("a certificate");
    fs::write(directory.path().join("tls.key"), key.serialize_pem()).expect("a key");
    fs::write(directory.path().join("ca.crt"), ca.pem()).expect("a certificate");
    ca.pem()
}
