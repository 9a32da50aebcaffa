//! The engine of the nodes, the stand-in or a real OpenSearch: its config and its command.

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, Result};
use stayput_standin::harness::kubelet::Payload;
use stayput_standin::harness::ports::free_port;

use super::NAMES;

/// The nodes' addresses: all of 127.0.0.0/8 is loopback.
const ADDRESSES: [Ipv4Addr; 3] =
    [Ipv4Addr::new(127, 0, 0, 11), Ipv4Addr::new(127, 0, 0, 12), Ipv4Addr::new(127, 0, 0, 13)];

/// Which engine is supervised.
pub(crate) enum Engine {
    StandIn,
    /// Its home directory, and the home of its Java.
    OpenSearch {
        home: PathBuf,
        java: OsString,
    },
}

/// The settings that differ between the restarts.
pub(super) struct Settings {
    pub(super) network: Network,
    /// Value of `node.attr.round`.
    pub(super) round: String,
}

/// Ports that are free on all three addresses.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) http: u16,
    pub(super) manager: u16,
    transport: u16,
}

impl Network {
    pub(super) fn free() -> Self {
        let [http, manager, transport] = std::array::from_fn(|_| free_port(&ADDRESSES));
        Self { http, manager, transport }
    }

    /// Address and HTTP port of each node.
    pub(super) fn addresses(&self) -> Vec<(String, u16)> {
        ADDRESSES.iter().map(|address| (address.to_string(), self.http)).collect()
    }

    pub(super) fn transport_port(&self) -> u16 {
        self.transport
    }

    /// Chooses another transport port.
    pub(super) fn move_transport(&mut self) {
        self.transport = free_port(&ADDRESSES);
    }

    pub(super) fn address(name: &str) -> Ipv4Addr {
        let at = NAMES.iter().position(|other| *other == name).unwrap_or_default();
        ADDRESSES[at]
    }
}

impl Engine {
    /// Checks the options before anything is started.
    pub(crate) fn new(home: Option<PathBuf>) -> Result<Self> {
        let Some(home) = home else { return Ok(Self::StandIn) };
        if !home.join("bin/opensearch").exists() {
            return Err(format!("{} is no home of an OpenSearch", home.display()).into());
        }
        if nix::unistd::geteuid().is_root() {
            return Err("OpenSearch refuses to run as root: start the demo as another user".into());
        }
        let java = std::env::var_os("JAVA_HOME").ok_or("JAVA_HOME is not set")?;
        Ok(Self::OpenSearch { home, java })
    }

    /// How long a restart of the whole cluster may take.
    pub(super) fn restart_timeout(&self) -> Duration {
        match self {
            Self::StandIn => Duration::from_secs(120),
            Self::OpenSearch { .. } => Duration::from_secs(900),
        }
    }

    /// The data of a pod's Secret.
    pub(super) fn files(
        &self,
        directory: &Path,
        name: &str,
        settings: &Settings,
    ) -> Result<Payload> {
        let Settings { network: Network { http, transport, .. }, round } = settings;
        let seeds: Vec<String> =
            ADDRESSES.iter().map(|address| format!("{address}:{transport}")).collect();
        let own = directory.join(name).display().to_string();
        let host = Network::address(name);
        let mut yml = format!(
            "cluster.name: demo\nnode.name: {name}\nnetwork.host: {host}\nhttp.port: {http}\n\
             transport.port: {transport}\ndiscovery.seed_hosts: {seeds:?}\n\
             cluster.initial_cluster_manager_nodes: {NAMES:?}\npath.data: {own}/data\n\
             node.attr.round: {round}\n"
        );
        let Self::OpenSearch { home, .. } = self else {
            // The delay replaces the seconds in which a JVM starts.
            yml += "standin.start_delay_ms: 300\n";
            return Ok(Payload::from([("elasticsearch.yml".into(), yml)]));
        };
        yml += &format!(
            "path.logs: {own}/logs\ncluster.routing.allocation.disk.threshold_enabled: false\n"
        );
        let read = |file: &str| {
            let path = home.join("config").join(file);
            fs::read_to_string(&path).context(format!("{}", path.display()))
        };
        // Its home may be read-only.
        let options = read("jvm.options")?
            .lines()
            .filter(|line| !line.contains("logs/gc.log"))
            .map(|line| line.replace("=logs/", &format!("={own}/logs/")))
            .map(|line| line.replace("Path=data", &format!("Path={own}/data")) + "\n")
            .collect();
        Ok(Payload::from([
            ("opensearch.yml".into(), yml),
            ("jvm.options".into(), options),
            ("log4j2.properties".into(), read("log4j2.properties")?),
        ]))
    }

    /// The command that starts it on the config in `config`.
    pub(super) fn command(&self, config: &Path) -> std::io::Result<Vec<OsString>> {
        Ok(match self {
            Self::StandIn => vec![
                std::env::current_exe()?.into(),
                crate::ENGINE.into(),
                "--config".into(),
                config.into(),
            ],
            Self::OpenSearch { home, .. } => vec![home.join("bin/opensearch").into()],
        })
    }

    /// Its environment.
    pub(super) fn variables(&self, config: &Path) -> Vec<(&'static str, OsString)> {
        match self {
            Self::StandIn => Vec::new(),
            Self::OpenSearch { java, .. } => vec![
                ("OPENSEARCH_JAVA_HOME", java.clone()),
                ("OPENSEARCH_PATH_CONF", config.into()),
                ("OPENSEARCH_JAVA_OPTS", "-Xms128m -Xmx128m -XX:TieredStopAtLevel=1".into()),
            ],
        }
    }
}
