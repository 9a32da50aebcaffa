//! An `OpenSearchCluster` with three nodes, the operator that makes their StatefulSet, and stayput beside it, attached
//! as documented.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Map, Value, json};
use stayput_standin::opensearch_operator::{CLUSTER_LABEL, definition, first_objects};
use tempfile::TempDir;

use super::running::{CONFIG_PATH, Running, group};
use crate::pods::bare::{install_reconciler, keys, pod};
use crate::pods::clients::service;
use crate::pods::fixture::{Fixture, MANAGER};
use crate::pods::history::{history, until_another_ended};
use crate::pods::nodes::{NODES, is_ready, until_ready};
use crate::pods::opensearch::{Jvm, Parts};
use crate::pods::opensearch_set::{give, write};
use crate::pods::stateful_set::{claim, volumes};
use crate::pods::victim::processes_of;
use crate::support::engine::Kind;
use crate::support::kubernetes::client::Kube;
use crate::support::namespace_processes::NamespaceProcess;

/// The object that a person edits, as kubectl is told: the operator serves two API groups.
const CLUSTER: &str = "opensearchclusters.opensearch.org";
const POOL: &str = "nodes";
/// Secret with the engine's files that are not the operator's.
const OPTIONS: &str = "logs-options";
/// ConfigMap with the value of a variable.
pub(super) const TIERS: &str = "tiers";
/// Between two counts of ready pods.
const PAUSE: Duration = Duration::from_millis(100);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Everything; the engines end with the fixture.
pub(super) struct Stage {
    pub(super) operator: Running,
    pub(super) fixture: Fixture,
    _parts: Parts,
    _storage: TempDir,
}

impl Stage {
    /// Three nodes with documents, the operator, and the reconciler, which carries out templates. None if something is
    /// missing here; then the test is skipped.
    pub(super) fn set_up(test: &str) -> Option<Self> {
        let (parts, fixture) = Parts::lay(test, Kind::OpenSearch, "privileged")?;
        let began = Instant::now();
        keys(&fixture);
        let _storage = volumes(&fixture, &NODES);
        let base = base(&parts, &fixture);
        declare(&parts, &fixture);
        let made = fixture.admin().json(&["get", CLUSTER, "logs", "--namespace", "search"]);
        let [config, mut set] = first_objects(&made, &base, CONFIG_PATH);
        set["spec"]["volumeClaimTemplates"] = json!([claim()]);
        // The operator helps new nodes with a pod that bootstraps the cluster. Here all start at once, as when it
        // recovers a cluster.
        set["spec"]["podManagementPolicy"] = json!("Parallel");
        for object in [&config, &set, &service()] {
            fixture.admin().apply(object);
        }
        until_ready(&fixture, &NODES);
        write(&fixture);
        let operator = Running::start(fixture.admin().kubeconfig(), base);
        let mut stage = Self { operator, fixture, _parts: parts, _storage };
        stage.until_operator_is_content();
        stage.attach();
        println!("all is set up: {} ms", began.elapsed().as_millis());
        Some(stage)
    }

    /// The reconciler, and a SearchCluster for the operator's pods.
    fn attach(&mut self) {
        install_reconciler(&self.fixture);
        self.fixture.admin().apply(&json!({
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "metadata": { "name": "logs", "namespace": "search" },
            "spec": {
                "pods": { "selector": { "matchLabels": { CLUSTER_LABEL: "logs" } } },
                "engine": { "scheme": "http" },
                "manager": { "caSecret": "logs-manager-ca", "auth": { "serviceAccountToken": {} } },
                "update": { "mode": "inPlace" },
            },
        }));
        self.fixture.until_idle();
    }

    /// A person edits the `OpenSearchCluster`.
    pub(super) fn edit(&self, spec: &Value) {
        let patch = json!({ "spec": spec }).to_string();
        self.fixture.run(&["patch", CLUSTER, "logs", "--type=merge", "--patch", &patch]);
    }

    /// Waits until the operator has nothing to do, and its StatefulSet counts all pods as updated.
    pub(super) fn until_operator_is_content(&self) {
        self.operator.until("the operator is content", |look| look.is_at_rest());
        let status = &self.fixture.read("statefulsets/logs")["status"];
        assert_eq!(status["updatedReplicas"], NODES.len(), "{status:#}");
    }

    /// Waits until one more restart than `known` is over, and nothing is left to do; it must have been done.
    pub(super) fn until_carried_out(&self, known: usize) {
        let entry = until_another_ended(&self.fixture, known);
        assert_eq!(entry["outcome"], "done", "{entry:#}");
        self.fixture.until_idle();
        until_ready(&self.fixture, &NODES);
        let counts = &self.fixture.logs()["status"]["counts"];
        assert!(counts["pendingUpdate"].as_u64().unwrap_or(0) == 0, "{counts:#}");
        for pod in self.fixture.pods() {
            let annotations = &pod["metadata"]["annotations"];
            assert_eq!(annotations["stayput.dev/actual-revision"], Value::Null, "{annotations:#}");
        }
    }

    /// How many restarts are over.
    pub(super) fn restarts(&self) -> usize {
        history(&self.fixture).len()
    }

    /// Stops both replicas of the reconciler from running, until this is dropped.
    pub(super) fn hold_reconciler(&self) -> Held {
        let path = "jsonpath={.items[*].status.containerStatuses[0].containerID}";
        let ids = self.fixture.admin().run(&["get", "pods", "-n", "stayput", "--output", path]);
        let processes =
            ids.split(' ').flat_map(|id| processes_of(id.rsplit('/').next().expect("an id")));
        let held = Held(processes.collect());
        assert!(!held.0.is_empty(), "{ids}");
        held.signal(Signal::SIGSTOP);
        held
    }

    /// How often the containers of each pod were made anew, by the pod's name.
    pub(super) fn container_restarts(&self) -> BTreeMap<String, u64> {
        let pods = self.fixture.pods();
        let restarts = |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
            let count = pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
            (name, count.expect("a number"))
        };
        pods.iter().map(restarts).collect()
    }
}

/// Processes that do not run until this is dropped.
pub(super) struct Held(Vec<NamespaceProcess>);

impl Held {
    fn signal(&self, signal: Signal) {
        self.0.iter().for_each(|process| process.signal(signal));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
    }
}

/// Counts ready pods all the time. A pod that is not ready counts as ready until its engine does not
/// listen: a probe may be slow.
pub(super) struct ReadyPods {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl ReadyPods {
    pub(super) fn count(fixture: &Fixture) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let theirs = Arc::clone(&is_over);
        let kubeconfig = fixture.admin().kubeconfig().to_owned();
        let task = spawn(move || {
            let (reader, mut out, mut fewest) =
                (Kube::new(&kubeconfig), BTreeSet::new(), NODES.len());
            while !theirs.load(Ordering::Relaxed) {
                let pods = "/api/v1/namespaces/search/pods?labelSelector=app%3Dlogs";
                if let Ok(pods) = reader.read(pods) {
                    let pods = pods["items"].as_array().expect("a list");
                    for name in NODES {
                        let pod = pods.iter().find(|pod| pod["metadata"]["name"] == name);
                        if pod.is_some_and(is_ready) {
                            out.remove(name);
                        } else if !pod.is_some_and(listens) {
                            out.insert(name);
                        }
                    }
                    fewest = fewest.min(NODES.len() - out.len());
                }
                sleep(PAUSE);
            }
            fewest
        });
        Self { is_over, task }
    }

    /// The fewest pods that were ready at any time.
    pub(super) fn fewest(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.join().expect("no panic")
    }
}

fn listens(pod: &Value) -> bool {
    pod["status"]["podIP"].as_str().is_some_and(|address| {
        let address = SocketAddr::new(address.parse().expect("an address"), 9200);
        TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()
    })
}

/// The template of the pods as `inject` leaves it: no config is watched.
fn base(parts: &Parts, fixture: &Fixture) -> Value {
    let mut spec = parts.real(pod(fixture, "logs"))["spec"].take();
    give(&mut spec, "600Mi");
    let list = |value: &mut Value| value.as_array_mut().expect("a list").clone();
    let container = &mut spec["containers"][0];
    let of_config = ["STAYPUT_CONFIG", "STAYPUT_STAGE", "STAYPUT_KEEP_LAST_GOOD"];
    let mut env = list(&mut container["env"]);
    env.retain(|variable| of_config.iter().all(|name| variable["name"] != *name));
    container["env"] = env.into();
    let mut command = list(&mut container["command"]);
    command.push(json!("-Enode.attr.tier=$(TIER)"));
    container["command"] = command.into();
    // As `inject` has it.
    let ready = [MANAGER, "wait", "--for=ready", "--timeout=0s"];
    container["readinessProbe"] = json!({
        "exec": { "command": ready },
        "periodSeconds": 2,
        "timeoutSeconds": 5,
        "failureThreshold": 1,
    });
    let mut mounts = list(&mut container["volumeMounts"]);
    mounts.retain(|mount| mount["name"] != "mounted");
    // The operator has a volume of this name.
    mounts.iter_mut().filter(|mount| mount["name"] == "config").for_each(|mount| {
        mount["name"] = json!("home");
    });
    for file in ["jvm.options", "log4j2.properties"] {
        let at = format!("/config/{file}");
        mounts.push(json!({ "name": "options", "mountPath": at, "subPath": file }));
    }
    container["volumeMounts"] = mounts.into();
    let mut volumes = list(&mut spec["volumes"]);
    let gone = ["mounted", "config", "data"];
    volumes.retain(|volume| gone.iter().all(|name| volume["name"] != *name));
    volumes.push(json!({ "name": "home", "emptyDir": {} }));
    volumes.push(json!({ "name": "options", "secret": { "secretName": OPTIONS } }));
    spec["volumes"] = volumes.into();
    json!({ "metadata": { "labels": { "app": "logs" } }, "spec": spec })
}

/// The operator's rights and definition, and the `OpenSearchCluster` with what its pods read.
fn declare(parts: &Parts, fixture: &Fixture) {
    let admin = fixture.admin();
    admin.apply(&definition());
    let name = format!("customresourcedefinition/{CLUSTER}");
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", &name]);
    let group = format!("--group={}", group());
    let role = ["create", "clusterrolebinding", "operator", "--clusterrole=cluster-admin"];
    admin.run(&[&role[..], &[&group]].concat());
    let [config, options, log] =
        parts.files("${NODE_NAME}", &fixture.seeds(), "first", Jvm::Warm).map(|(_, text)| text);
    let is_no_heap = |line: &&str| !line.starts_with("-Xm");
    let options: String =
        options.lines().filter(is_no_heap).map(|line| format!("{line}\n")).collect();
    fixture.secret(OPTIONS, &[("jvm.options", &options), ("log4j2.properties", &log)]);
    admin.apply(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": TIERS, "namespace": "search" },
        "data": { "tier": "hot" },
    }));
    let settings: Map<String, Value> = config
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    let tier = json!({ "configMapKeyRef": { "name": TIERS, "key": "tier" } });
    admin.apply(&json!({
        "apiVersion": "opensearch.org/v1",
        "kind": "OpenSearchCluster",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "general": { "version": "2.19.3", "serviceName": "logs", "additionalConfig": settings },
            "nodePools": [{
                "component": POOL,
                "replicas": NODES.len(),
                "roles": ["cluster_manager", "data"],
                "env": [{ "name": "TIER", "valueFrom": tier }],
            }],
        },
    }));
}
