//! One node of the cluster: its config as a volume, its manager, its pod's identity.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::{Flavor, PodIdentity, Rest, Seat, Shared};
use crate::support::archive;
use crate::support::engine::{Kind, own_files, paths, variables, work_directory};
use crate::support::kubelet::{AtomicWriter, Payload, payload};
use crate::support::manager::{Launch, Manager};

/// A node and its manager.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) pod: PodIdentity,
    pub(crate) address: Ipv4Addr,
    /// Its attribute `zone`.
    pub(crate) zone: String,
    roles: Option<&'static [&'static str]>,
    pub(crate) rest: Rest,
    // Before its directory, which it uses until its end.
    manager: Option<Manager>,
    volume: AtomicWriter,
    directory: TempDir,
    shared: Arc<Shared>,
}

impl Member {
    pub(super) fn new(shared: Arc<Shared>, address: Ipv4Addr, seat: Seat) -> Self {
        let directory = work_directory(&["mount", "config/jvm.options.d", "data", "logs", "tmp"]);
        let volume = AtomicWriter::new(&directory.path().join("mount"));
        let Seat { pod, zone, roles } = seat;
        let rest = Rest { address, port: shared.ports.http };
        let manager = None;
        let mut member =
            Self { pod, address, zone, roles, rest, manager, volume, directory, shared };
        member.swap(&member.files("node.attr.stayput: first"));
        member
    }

    pub(crate) fn work(&self) -> &Path {
        self.directory.path()
    }

    /// The mount path of the volume: the checksum is computed from it.
    pub(crate) fn mount(&self) -> PathBuf {
        self.work().join("mount")
    }

    /// The directory of the manager's journal and last good config.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.work().join("state")
    }

    /// Its config with these settings added: the data of the mounted Secret.
    pub(crate) fn files(&self, settings: &str) -> Payload {
        let Shared { flavor, home, archive, addresses, masters, ports, directory, .. } =
            &*self.shared;
        let seeds: Vec<String> =
            addresses.iter().map(|address| format!("{address}:{}", ports.transport)).collect();
        let [mut options, log4j] = own_files(home, self.work());
        if let Some(archive) = archive {
            options += &archive::option(archive);
        }
        let work = self.work().display();
        let mut yml = format!(
            "cluster.name: test-{}\nnode.name: {}\nnode.attr.zone: {}\npath.data: {work}/data\n\
             path.logs: {work}/logs\npath.repo: [{}/repository]\nnetwork.host: {}\n\
             http.port: {}\ntransport.port: {}\n\
             discovery.seed_hosts: {seeds:?}\ndiscovery.find_peers_interval: 200ms\n\
             cluster.routing.allocation.disk.threshold_enabled: false\n",
            ports.http,
            self.pod.name,
            self.zone,
            directory.path().display(),
            self.address,
            ports.http,
            ports.transport,
        );
        if let Some(roles) = self.roles {
            yml += &format!("node.roles: {roles:?}\n");
            if roles.contains(&"search") {
                yml += "node.search.cache.size: 16mb\n";
            }
        }
        yml += &match flavor.kind() {
            Kind::OpenSearch => format!("cluster.initial_cluster_manager_nodes: {masters:?}\n"),
            Kind::Elasticsearch => format!(
                "cluster.initial_master_nodes: {masters:?}\nxpack.security.enabled: false\n"
            ),
        };
        let mut files = payload([
            (format!("{}.yml", flavor.kind().name()).as_str(), (yml + settings + "\n").as_str()),
            ("jvm.options", &options),
            ("log4j2.properties", &log4j),
        ]);
        if *flavor == Flavor::ElasticsearchWithCertificates {
            let main = files.get_mut("elasticsearch.yml").expect("the main file");
            // Without it a node waits for its clients' requests for ever, and a write for the nodes
            // that have ended before it.
            main.push_str("http.shutdown_grace_period: 5s\n");
            for name in ["tls.crt", "tls.key", "ca.crt"] {
                let pem = std::fs::read_to_string(directory.path().join(name));
                files.insert(name.to_owned(), pem.expect("a file"));
            }
        }
        files
    }

    /// Makes these files the volume's content, as the kubelet does.
    pub(crate) fn swap(&mut self, files: &Payload) {
        self.volume.write(files);
    }

    /// Its manager, which must run.
    #[track_caller]
    pub(crate) fn manager(&self) -> &Manager {
        self.manager.as_ref().expect("the manager was started")
    }

    /// The manager's pid here, while it runs: to freeze it, or to see that it never ended.
    pub(crate) fn manager_pid(&self) -> Option<i32> {
        self.manager.as_ref()?.init()
    }

    /// Starts the manager, unless it runs, and waits until it answers.
    pub(crate) fn start_manager(&mut self) {
        if self.manager.is_none() {
            self.manager = Some(self.launch().start());
        }
    }

    /// KILL to the manager and all its descendants: the end of a container. The state directory
    /// stays.
    #[track_caller]
    pub(crate) fn kill_manager(&mut self) {
        self.manager.take().expect("a manager").kill();
    }

    /// KILL to the engine's JVM.
    #[track_caller]
    pub(crate) fn kill_engine(&self) {
        self.manager().find(self.shared.flavor.kind().server_class()).signal(Signal::SIGKILL);
    }

    /// The stacks of the engine's threads that recover a shard copy, for a person to read.
    pub(crate) fn recovery_threads(&self) -> String {
        let all = "/_nodes/_local/hot_threads?threads=9999&ignore_idle_threads=false&snapshots=1&interval=1ms";
        let Ok(answer) = self.rest.send("GET", all, None) else { return String::new() };
        let answer = answer.body.as_str().unwrap_or_default();
        let threads = answer.split("\n\n").filter(|thread| thread.contains("ecovery"));
        threads.map(|thread| format!("\n{}: {thread}", self.pod.name)).collect()
    }

    /// The launch of the manager.
    pub(crate) fn launch(&self) -> Launch {
        let Shared { flavor, home, java, namespace, ports, issuer, directory, .. } = &*self.shared;
        let common = |name: &str| directory.path().join(name).display().to_string();
        let own = |name: &str| self.work().join(name).display().to_string();
        let ready = if *flavor == Flavor::ElasticsearchWithCertificates {
            // Whether it has TLS or not.
            format!("tcp://{}:{}", self.address, ports.http)
        } else {
            // A node is ready if it is in a cluster with a master.
            format!(
                "http://{}:{}/_cluster/health?master_timeout=500ms&timeout=500ms",
                self.address, ports.http
            )
        };
        let mut launch = Launch::new(self.work(), [home.join("bin").join(flavor.kind().name())])
            .options(["--listen".into(), format!("{}:{}", self.address, ports.manager)])
            .options(["--tls-cert".into(), common("tls.crt")])
            .options(["--tls-key".into(), common("tls.key")])
            .options(["--jwt-key".into(), common("shared.key")])
            .options(["--config".into(), own("mount")])
            .options(["--stage".into(), format!("{}={}", own("mount"), own("config"))])
            .options(["--tmp-dir".into(), own("tmp")])
            .options(["--ready".into(), ready])
            .options(["--keep-last-good", "--on-exit", "hold"]);
        if let Some(issuer) = issuer {
            let allowed = format!("{}=control", issuer.subject);
            launch = launch
                .options(["--jwks".into(), common("jwks.json")])
                .options(["--jwt-issuer", &issuer.issuer])
                .options(["--allow-subject", &allowed]);
        }
        launch.variables = if *flavor == Flavor::ShippedOpenSearch {
            paths(flavor.kind(), java, self.work()).into()
        } else {
            variables(flavor.kind(), java, self.work())
        };
        let identity = [("NAMESPACE", namespace), ("NAME", &self.pod.name), ("UID", &self.pod.uid)];
        let identity = identity.map(|(name, value)| (format!("STAYPUT_POD_{name}"), value.into()));
        launch.variables.extend(identity);
        launch
    }
}
