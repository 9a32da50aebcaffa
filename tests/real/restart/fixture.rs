//! Shared by all tests here: apiserver, `deploy/` applied, pods, their nodes, a SearchCluster for
//! them, a kubelet, and the reconciler with the rights of `deploy/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::{Value, json};
use stayput_api::checksum::Checksum;
use stayput_kube_access::cluster::{SearchCluster, SearchClusterStatus};
use stayput_restart::{HistoryEntry, LastRestart, annotation};

use super::kubelet::Kubelet;
use super::reconciler::Reconciler;
use crate::support::cluster::{Cluster, Flavor, Issuer, Member, PodIdentity, Rest, Seat};
use crate::support::kubelet::Payload;
use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::kubernetes::client::{Kube, NAMESPACE};

/// Namespace and name of the reconciler's service account in `deploy/`.
pub(crate) const ACCOUNT: (&str, &str) = ("stayput", "stayput-reconciler");
/// Names of the pods, and of the nodes, unless a test sets others.
pub(crate) const NAMES: [&str; 3] = ["logs-0", "logs-1", "logs-2"];

/// Nodes with every role, each in a zone of its own.
const THREE: [NodeSpec; 3] = [
    NodeSpec { name: NAMES[0], zone: "z0", roles: None },
    NodeSpec { name: NAMES[1], zone: "z1", roles: None },
    NodeSpec { name: NAMES[2], zone: "z2", roles: None },
];
/// Longer than any restart here takes on a slow and busy machine.
const RESTART_TIMEOUT: Duration = Duration::from_secs(1200);

/// Of the SearchCluster, unless a test sets another.
pub(super) const PHASE_TIMEOUT: &str = "10m";

/// A node to create.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeSpec {
    pub(crate) name: &'static str,
    pub(crate) zone: &'static str,
    /// As in [`Seat`].
    pub(crate) roles: Option<&'static [&'static str]>,
}

/// All parts, ended in this order when dropped.
pub(crate) struct Fixture {
    pub(crate) reconciler: Reconciler,
    pub(crate) kubelet: Kubelet,
    pub(crate) kube: Kube,
    kubeconfig: PathBuf,
    cluster: Arc<Mutex<Cluster>>,
    /// Name of the config's main file.
    main_file: String,
    pub(crate) server: ApiServer,
}

/// One node and its manager, at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) manager_pid: Option<i32>,
    pub(crate) boot: Value,
    pub(crate) run: Value,
    /// When the run started.
    pub(crate) started_at: String,
    pub(crate) checksum: Option<String>,
    /// The ephemeral id of the engine's process; none while the cluster does not list it.
    pub(crate) ephemeral: Option<String>,
    /// The persistent id of the node.
    pub(crate) id: Option<String>,
}

impl Fixture {
    /// Three nodes in one green cluster, and a reconciler that has seen them. `Err` names what is
    /// missing here.
    pub(crate) fn start(flavor: Flavor) -> Result<Self, String> {
        Self::of(flavor, &THREE)
    }

    /// The same with these nodes.
    pub(crate) fn of(flavor: Flavor, places: &[NodeSpec]) -> Result<Self, String> {
        let server = ApiServer::start()?;
        let admin = server.admin();
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
        admin.run(&["apply", "-k", deploy.to_str().expect("UTF-8")]);
        let crd = "customresourcedefinition/searchclusters.stayput.dev";
        admin.run(&["wait", "--for=condition=Established", "--timeout=60s", crd]);
        admin.run(&["create", "namespace", NAMESPACE]);
        // As `init` gives them.
        let rights =
            ["--clusterrole=stayput-reconciler", "--serviceaccount=stayput:stayput-reconciler"];
        let binding = ["create", "rolebinding", "stayput-clusters", "--namespace", NAMESPACE];
        admin.run(&[&binding[..], &rights].concat());
        let kube = Kube::new(admin.kubeconfig());
        let seats = places.iter().map(|NodeSpec { name, zone, roles }| {
            let made: Pod = kube.create(pod(name));
            let uid = made.metadata.uid.expect("a uid");
            let pod = PodIdentity { name: (*name).into(), uid };
            Seat { pod, zone: (*zone).into(), roles: *roles }
        });
        let seats = seats.collect();
        let subject = format!("system:serviceaccount:{}:{}", ACCOUNT.0, ACCOUNT.1);
        let issuer = Issuer {
            jwks: server.raw("/openid/v1/jwks").to_string(),
            issuer: server.url().to_owned(),
            subject: subject.clone(),
        };
        let mut cluster = Cluster::prepare(flavor, NAMESPACE, seats, Some(issuer))?;
        let ca = &cluster.ca_pem;
        kube.create::<Secret>(secret("logs-manager-ca", &json!({ "ca.crt": ca })));
        for member in &cluster.members {
            let files = json!(member.files("node.attr.stayput: first"));
            kube.create::<Secret>(secret(&format!("{}-config", member.pod.name), &files));
        }
        cluster.start();
        let ports = cluster.ports;
        let addresses = cluster.members.iter();
        let addresses: BTreeMap<String, String> =
            addresses.map(|one| (one.pod.name.clone(), one.address.to_string())).collect();
        let cluster = Arc::new(Mutex::new(cluster));
        let kubeconfig: PathBuf = admin.kubeconfig().to_owned();
        let kubelet = Kubelet::start(kubeconfig.clone(), cluster.clone(), addresses);
        let is_ready = |pod: &Pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.status == "True"))
        };
        until("all pods are ready", || {
            kube.list::<Pod>().ok().filter(|pods| pods.iter().all(is_ready))
        });
        kube.create::<SearchCluster>(search_cluster(ports.http, ports.manager));
        let account = server.user(&subject, "system:serviceaccounts");
        let reconciler = Reconciler::start(account.kubeconfig(), server.directory());
        let main_file = format!("{}.yml", flavor.kind().name());
        let fixture = Self { reconciler, kubelet, kube, kubeconfig, cluster, main_file, server };
        fixture.until_status("the first status", |status| {
            status.report.counts.ready as usize == places.len()
        });
        Ok(fixture)
    }

    /// The nodes; the kubelet waits while they are locked.
    pub(crate) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().expect("a lock")
    }

    pub(crate) fn with<T>(&self, name: &str, read: impl FnOnce(&Member) -> T) -> T {
        read(self.cluster().member(name))
    }

    /// Every node's REST interface, in their order.
    pub(crate) fn nodes(&self) -> Vec<Rest> {
        self.cluster().members.iter().map(|member| member.rest).collect()
    }

    /// Waits until all nodes are in one cluster, green.
    #[track_caller]
    pub(crate) fn until_formed(&self) {
        self.cluster().until_formed();
    }

    /// Sends a request to the nodes until one answers with 200.
    #[track_caller]
    pub(crate) fn engine(&self, target: &str) -> Value {
        let nodes = self.nodes();
        until(target, || {
            let mut answers = nodes.iter().filter_map(|node| node.send("GET", target, None).ok());
            answers.find(|answer| answer.status == 200).map(|answer| answer.body)
        })
    }

    /// The persistent settings of the engine's cluster.
    #[track_caller]
    pub(crate) fn settings(&self) -> Value {
        self.engine("/_cluster/settings?flat_settings=true")["persistent"].clone()
    }

    /// Sets persistent settings.
    #[track_caller]
    pub(crate) fn set(&self, settings: &Value) {
        let body = json!({ "persistent": settings });
        let answer = self.nodes()[0].send("PUT", "/_cluster/settings", Some(&body));
        answer.expect("an answer").expect(200);
    }

    /// Writes the config source of a node: its usual settings, `change`d, and `settings`. Returns
    /// the checksum with which the node must run after its restart.
    pub(crate) fn configure(
        &self,
        name: &str,
        settings: &str,
        change: impl Fn(&str) -> String,
    ) -> String {
        let mut files: Payload = self.with(name, |member| member.files(settings));
        let main = files.get_mut(&self.main_file).expect("the main file");
        *main = change(main);
        self.kube.merge::<Secret>(&format!("{name}-config"), &json!({ "stringData": files }));
        Checksum::of_contents(files).as_str().to_owned()
    }

    /// The same for all nodes; the checksums by name.
    pub(crate) fn configure_all(
        &self,
        settings: &str,
        change: impl Fn(&str) -> String + Copy,
    ) -> BTreeMap<String, String> {
        let one = |name: &str| (name.to_owned(), self.configure(name, settings, change));
        let names: Vec<String> =
            self.cluster().members.iter().map(|m| m.pod.name.clone()).collect();
        names.iter().map(|name| one(name)).collect()
    }

    /// Changes the spec's `restart`.
    pub(crate) fn policy(&self, restart: &Value) {
        self.kube.merge::<SearchCluster>("logs", &json!({ "spec": { "restart": restart } }));
    }

    /// Requests a restart of these nodes; of all, if there are none.
    pub(crate) fn ask(&self, id: &str, strategy: &str, nodes: &[&str]) {
        let request = json!({ "id": id, "strategy": strategy, "target": { "nodes": nodes } });
        let annotations = json!({ annotation::REQUEST: request.to_string() });
        let change = json!({ "metadata": { "annotations": annotations } });
        self.kube.merge::<SearchCluster>("logs", &change);
    }

    /// The output of `kubectl stayput`, and whether it succeeded.
    pub(crate) fn stayput(&self, args: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-stayput"))
            .args(["--namespace", NAMESPACE])
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .expect("kubectl-stayput can be executed");
        let printed = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(printed).expect("UTF-8"))
    }

    pub(crate) fn status(&self) -> SearchClusterStatus {
        let cluster = self.kube.get::<SearchCluster>("logs").expect("it is there");
        cluster.status.unwrap_or_default()
    }

    /// Waits until the status meets the condition.
    #[track_caller]
    pub(crate) fn until_status(
        &self,
        what: &str,
        wanted: impl Fn(&SearchClusterStatus) -> bool,
    ) -> SearchClusterStatus {
        let deadline = Instant::now() + RESTART_TIMEOUT;
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            if Instant::now() > deadline {
                let log = self.reconciler.log();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(40)..].join("\n");
                panic!("never happened: {what}\n{status:#?}\nthe log of the reconciler:\n{tail}");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until a restart has ended.
    #[track_caller]
    pub(crate) fn until_over(&self, id: &str) -> HistoryEntry {
        let of = |status: &SearchClusterStatus| {
            status.ledger.history.iter().find(|entry| entry.id == id).cloned()
        };
        let status = self.until_status(&format!("{id} is over"), |status| of(status).is_some());
        of(&status).expect("it is over")
    }

    /// The current facts of each node, by name.
    pub(crate) fn facts(&self) -> BTreeMap<String, NodeFacts> {
        let listed = self.engine("/_cluster/state/nodes");
        let nodes = listed["nodes"].as_object().cloned().unwrap_or_default();
        let cluster = self.cluster();
        let of = |member: &Member| {
            let status = member.manager().api.status();
            let node = nodes.iter().find(|(_, node)| node["name"] == member.pod.name);
            let text = |value: &Value| value.as_str().map(str::to_owned);
            NodeFacts {
                manager_pid: member.manager_pid(),
                boot: status["manager"]["boot_id"].clone(),
                run: status["run"]["id"].clone(),
                started_at: text(&status["run"]["started_at"]).unwrap_or_default(),
                checksum: text(&status["run"]["checksum"]),
                ephemeral: node.and_then(|(_, node)| text(&node["ephemeral_id"])),
                id: node.map(|(id, _)| id.clone()),
            }
        };
        cluster.members.iter().map(|member| (member.pod.name.clone(), of(member))).collect()
    }

    /// Waits until the pod shows no phase; returns how its last restart ended.
    #[track_caller]
    pub(crate) fn last_restart(&self, name: &str) -> LastRestart {
        let annotations = until(&format!("no phase is left on {name}"), || {
            let pod = self.kube.get::<Pod>(name).ok()?;
            let annotations = pod.metadata.annotations.unwrap_or_default();
            let left = [annotation::PHASE, annotation::SHOWN];
            left.iter().all(|key| !annotations.contains_key(*key)).then_some(annotations)
        });
        serde_json::from_str(&annotations[annotation::LAST_RESTART]).expect("its last restart")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.reconciler.log();
            let lines: Vec<&str> = log.lines().collect();
            println!(
                "the log of the reconciler:\n{}",
                lines[lines.len().saturating_sub(80)..].join("\n")
            );
        }
    }
}

/// Polls until there is a result.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + RESTART_TIMEOUT;
    loop {
        if let Some(seen) = poll() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Its container never runs: the manager runs outside of it.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "logs" } },
        "spec": { "containers": [{ "name": "search", "image": "search" }] },
    })
}

fn secret(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "annotations": { "stayput.dev/allow": "logs" } },
        "stringData": data,
    })
}

fn search_cluster(http: u16, manager: u16) -> Value {
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "logs" },
        "spec": {
            "pods": { "selector": { "matchLabels": { "app": "logs" } } },
            "engine": { "scheme": "http", "port": http },
            "manager": {
                "port": manager,
                "caSecret": "logs-manager-ca",
                "auth": { "serviceAccountToken": {} },
            },
            "config": { "sources": [{ "secret": "{pod}-config" }] },
            "restart": { "drain": "1s", "phaseTimeout": PHASE_TIMEOUT },
        },
    })
}
