//! Nodes that leave a declared cluster: stand-in engines with documents, and what a StatefulSet
//! controller does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use nix::sys::signal::Signal::SIGTERM;
use serde_json::{Value, json};
use stayput_kube_access::cluster::{SearchCluster, crd};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::fixture::Reconciler;
use super::objects::{KEY, NAMESPACE, eventually, pod, pod_status, secret};
use super::program::Program;
use crate::support::pki::Pki;
use crate::support::ports::loopback_addresses;
use crate::support::standin::{Engine, StandIn};
use crate::support::standin_cluster::ask_at;
use stayput_standin::apiserver::{ApiServer, Fault, How};

const EXCLUDED: &str = "cluster.routing.allocation.exclude._name";
/// How many nodes there can be.
const HOSTS: usize = 4;

/// The engines of the pods, by name.
type Engines = Arc<Mutex<BTreeMap<String, Running>>>;

struct Running {
    host: String,
    engine: Engine,
    _files: StandIn,
}

/// Nodes of one set, with an index in which every shard has two copies.
struct Declared {
    server: ApiServer,
    client: Client,
    hosts: Vec<String>,
    engines: Engines,
    controller: JoinHandle<()>,
}

impl Declared {
    async fn made(nodes: usize) -> Self {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        let client = server.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        crds.create(&PostParams::default(), &crd()).await.expect("the definition is taken");
        let ca = std::fs::read_to_string(Pki::named(&["stayput"]).file("ca")).expect("a file");
        for one in [
            secret("manager-ca", None, [("ca.crt", ca.as_str())]),
            secret("manager-key", Some("logs"), [("key", KEY)]),
        ] {
            let one: Secret = serde_json::from_value(one).expect("a Secret");
            api(&client).create(&PostParams::default(), &one).await.expect("it is created");
        }
        let hosts: Vec<String> = loopback_addresses().into_iter().take(HOSTS).collect();
        let engines = Engines::default();
        for ordinal in 0..nodes {
            start(&client, &engines, &hosts, &format!("logs-all-{ordinal}")).await;
        }
        let control = control(client.clone(), Arc::clone(&engines), hosts.clone());
        let controller = tokio::spawn(control);
        let declared = Self { server, client, hosts, engines, controller };
        let formed = format!("/_cluster/health?wait_for_nodes={nodes}&timeout=1s");
        declared.until(&formed, |_| true).await;
        declared.put("/docs", json!({"settings": {"number_of_shards": 4}}));
        for id in 0..20 {
            declared.put(&format!("/docs/_doc/{id}"), json!({"id": id}));
        }
        declared.until("/_cluster/health?wait_for_status=green&timeout=1s", |_| true).await;
        declared
    }

    fn ask(&self, method: &str, target: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        self.hosts.iter().find_map(|host| ask_at(host, method, target, body))
    }

    fn put(&self, target: &str, body: Value) {
        let (status, answer) = self.ask("PUT", target, Some(&body)).expect("an answer");
        assert!(status < 300, "{target}: {answer}");
    }

    /// Waits until the engine's answer is 200 and as wanted.
    async fn until(&self, target: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(target, async || {
            let (status, body) = self.ask("GET", target, None)?;
            (status == 200 && wanted(&body)).then_some(body)
        })
        .await
    }

    /// The exclusion at one level.
    fn excluded(&self, level: &str) -> Value {
        let (_, body) =
            self.ask("GET", "/_cluster/settings?flat_settings=true", None).expect("an answer");
        body[level][EXCLUDED].clone()
    }

    async fn declare(&self, count: u32) {
        self.declare_set("all", count).await;
    }

    async fn declare_set(&self, name: &str, count: u32) {
        let clusters: Api<SearchCluster> = api(&self.client);
        let spec = json!({
            "engine": {"scheme": "http", "distribution": "opensearch", "version": "2.19.3"},
            "manager": {"caSecret": "manager-ca", "auth": {"jwtKeySecret": "manager-key"}},
            "nodeSets": [{
                "name": name,
                "count": count,
                "podTemplate": {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}},
            }],
        });
        let cluster = json!({
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "metadata": {"name": "logs", "namespace": NAMESPACE},
            "spec": spec,
        });
        if clusters.get_opt("logs").await.expect("an answer").is_some() {
            let patch = Patch::Merge(json!({"spec": spec}));
            clusters.patch("logs", &PatchParams::default(), &patch).await.expect("it is taken");
        } else {
            let cluster = serde_json::from_value(cluster).expect("a SearchCluster");
            clusters.create(&PostParams::default(), &cluster).await.expect("it is created");
        }
    }

    /// Gives it these maintenance windows; null takes them away.
    async fn windows(&self, windows: Value) {
        let clusters: Api<SearchCluster> = api(&self.client);
        let patch = Patch::Merge(json!({"spec": {"restart": {"windows": windows}}}));
        clusters.patch("logs", &PatchParams::default(), &patch).await.expect("it is taken");
    }

    async fn cluster(&self) -> SearchCluster {
        api::<SearchCluster>(&self.client).get("logs").await.expect("it is there")
    }

    /// Waits until the set is made, and the reconciler knows of the formed cluster.
    async fn until_at_rest(&self, count: i32) {
        eventually("the cluster is made", async || {
            let status = self.cluster().await.status?;
            let is_made = status.report.message.is_none() && status.report.blocked.is_none();
            (is_made && self.replicas().await == Some(count)).then_some(())
        })
        .await;
    }

    async fn replicas(&self) -> Option<i32> {
        let set: Option<StatefulSet> =
            api(&self.client).get_opt("logs-all").await.expect("an answer");
        set?.spec?.replicas
    }

    /// Waits until three nodes are left, with everything.
    async fn until_three(&self) {
        self.until_left(3).await;
        assert_eq!(self.replicas().await, Some(3));
    }

    async fn until_left(&self, nodes: usize) {
        eventually("fewer nodes, and nothing is owed", async || {
            let status = self.cluster().await.status?;
            let pods: Api<Pod> = api(&self.client);
            let pods = pods.list(&ListParams::default()).await.expect("an answer").items.len();
            (pods == nodes && status.ledger.debts.is_empty()).then_some(())
        })
        .await;
        let health =
            self.until("/_cluster/health?wait_for_status=green&timeout=1s", |_| true).await;
        assert_eq!(health["number_of_nodes"], nodes);
        let (_, count) = self.ask("POST", "/docs/_refresh", None).expect("an answer");
        assert_eq!(count["_shards"]["failed"], 0, "{count}");
        let (_, count) = self.ask("GET", "/docs/_count", None).expect("an answer");
        assert_eq!(count["count"], 20);
        let (_, state) = self.ask("GET", "/_cluster/state/metadata", None).expect("an answer");
        let votes = &state["metadata"]["cluster_coordination"];
        assert_eq!(votes["voting_config_exclusions"], json!([]));
    }
}

impl Drop for Declared {
    fn drop(&mut self) {
        self.controller.abort();
    }
}

fn api<K>(client: &Client) -> Api<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    K::DynamicType: Default,
{
    Api::namespaced(client.clone(), NAMESPACE)
}

/// Starts the pod of this name on a free host.
async fn start(client: &Client, engines: &Engines, hosts: &[String], name: &str) {
    let free = {
        let engines = engines.lock().expect("a lock");
        hosts.iter().find(|host| engines.values().all(|one| one.host != **host)).cloned()
    };
    let host = free.expect("a free host");
    let seeds: Vec<String> = hosts.iter().map(|host| format!("{host}:9300")).collect();
    let files = StandIn::new(&format!(
        "cluster.name: logs\nnode.name: {name}\nnetwork.host: {host}\nhttp.port: 9200\n\
         discovery.seed_hosts: {seeds:?}\ncluster.initial_master_nodes: logs-all-0,logs-all-1"
    ));
    let mut engine = files.start();
    engine.expect_line("started");
    let mut made = pod(name);
    made["metadata"]["labels"] = json!({"stayput.dev/cluster": "logs"});
    let made: Pod = serde_json::from_value(made).expect("a pod");
    let pods: Api<Pod> = api(client);
    pods.create(&PostParams::default(), &made).await.expect("it is created");
    let status = Patch::Merge(pod_status(&host, true));
    pods.patch_status(name, &PatchParams::default(), &status).await.expect("taken");
    let running = Running { host, engine, _files: files };
    engines.lock().expect("a lock").insert(name.to_owned(), running);
}

/// The StatefulSet controller and the kubelet.
async fn control(client: Client, engines: Engines, hosts: Vec<String>) {
    let sets: Api<StatefulSet> = api(&client);
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Ok(list) = sets.list(&ListParams::default()).await else { continue };
        for set in list.items {
            let name = set.metadata.name.expect("a name");
            let replicas = set.spec.and_then(|spec| spec.replicas).unwrap_or(1);
            let mut is_there = BTreeSet::new();
            for pod in engines.lock().expect("a lock").keys() {
                let ordinal = pod.strip_prefix(&name).and_then(|rest| rest.strip_prefix('-'));
                is_there.extend(ordinal.and_then(|ordinal| ordinal.parse::<i32>().ok()));
            }
            for ordinal in (0..replicas).filter(|ordinal| !is_there.contains(ordinal)) {
                start(&client, &engines, &hosts, &format!("{name}-{ordinal}")).await;
            }
            for ordinal in is_there.range(replicas..) {
                let pod = format!("{name}-{ordinal}");
                let stopped = engines.lock().expect("a lock").remove(&pod);
                if let Some(mut running) = stopped {
                    running.engine.signal(SIGTERM);
                    running.engine.wait();
                }
                let _ = api::<Pod>(&client).delete(&pod, &DeleteParams::default()).await;
            }
            let ready = set.status.and_then(|status| status.ready_replicas);
            if ready != Some(replicas) {
                let status = json!({"status": {"replicas": replicas, "readyReplicas": replicas}});
                let patch = Patch::Merge(status);
                let _ = sets.patch_status(&name, &PatchParams::default(), &patch).await;
            }
        }
    }
}

#[tokio::test] // proves DECLARE-32
async fn a_node_is_emptied_and_taken_away_and_the_setting_is_as_a_person_wrote_it() {
    let declared = Declared::made(4).await;
    declared.put("/_cluster/settings", json!({"persistent": {EXCLUDED: "old, older"}}));
    declared.declare(4).await;
    let directory = TempDir::new().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, declared.server.kubeconfig()).expect("a file");
    let reconciler = Program::start(&kubeconfig, "only");
    declared.until_at_rest(4).await;

    declared.declare(3).await;
    declared.until_three().await;
    reconciler.until_metric("stayput_updated_nodes_total{step=\"move\"} 1").await;
    assert_eq!(declared.excluded("persistent"), "old, older");
    assert_eq!(declared.excluded("transient"), Value::Null);
    let events: Api<Event> = api(&declared.client);
    for reason in ["NodeLeaving", "NodeRemoved"] {
        eventually(reason, async || {
            let events = events.list(&ListParams::default()).await.expect("an answer");
            let found = events.items.iter().find(|event| {
                event.reason.as_deref() == Some(reason)
                    && event.message.as_deref().is_some_and(|text| text.starts_with("logs-all-3 "))
            });
            found.map(drop)
        })
        .await;
    }
    assert_eq!(reconciler.end().await, Some(0));
}

#[tokio::test] // proves DECLARE-34
async fn a_node_leaves_when_a_maintenance_window_is_open() {
    let declared = Declared::made(4).await;
    declared.declare(4).await;
    // It opens in half a day, whenever this runs.
    let opens = humantime::format_rfc3339(SystemTime::now() + Duration::from_secs(12 * 60 * 60));
    let opens = opens.to_string();
    let window = json!({"start": &opens[11..16], "duration": "1h"});
    declared.windows(json!([window])).await;
    let reconciler = Reconciler::start(declared.server.client());
    declared.until_at_rest(4).await;

    declared.declare(3).await;
    let says = eventually("it waits", async || {
        let message = declared.cluster().await.status?.report.message?;
        message.contains("maintenance windows").then_some(message)
    })
    .await;
    assert!(says.contains("logs-all-3 leaves"), "{says}");
    assert!(says.contains(&format!("opens at {}", &opens[..16])), "{says}");
    assert_eq!(declared.excluded("persistent"), Value::Null);
    assert_eq!(declared.replicas().await, Some(4));

    declared.windows(Value::Null).await;
    declared.until_three().await;
    assert_eq!(declared.excluded("persistent"), Value::Null);
    reconciler.end().await;
}

/// The answer to each write is lost in its turn, and the reconciler killed.
#[tokio::test] // proves DECLARE-36
async fn a_reconciler_that_is_killed_at_any_write_is_finished_by_the_next() {
    for how in [How::LoseAnswer, How::LoseRequest] {
        let declared = Declared::made(4).await;
        declared.declare(4).await;
        let reconciler = Reconciler::start(declared.server.client());
        declared.until_at_rest(4).await;
        reconciler.end().await;
        declared.declare(3).await;

        let mut kills = 0;
        // The finalizer comes first, and a ledger that is written last.
        let writes = [
            ("searchclusters", 1),
            ("searchclusters/status", 2),
            ("statefulsets", 2),
            ("searchclusters/status", 6),
        ];
        for (resource, most) in writes {
            for _ in 0..most {
                let verb = if resource == "searchclusters/status" { None } else { Some("patch") };
                let fault = Fault::new(how).resource(resource);
                declared.server.inject(verb.map_or(fault.clone(), |verb| fault.verb(verb)));
                let reconciler = Reconciler::start(declared.server.client());
                let is_over = eventually("a fault, or the end", async || {
                    let status = declared.cluster().await.status;
                    let owes = status.is_none_or(|status| !status.ledger.debts.is_empty());
                    let is_over = declared.replicas().await == Some(3) && !owes;
                    (declared.server.is_faultless() || is_over).then_some(is_over)
                })
                .await;
                reconciler.kill().await;
                declared.server.clear_faults();
                if is_over {
                    break;
                }
                kills += 1;
            }
        }
        assert!(kills >= 6, "{how:?}: it was killed {kills} times");
        let reconciler = Reconciler::start(declared.server.client());
        declared.until_three().await;
        assert_eq!(declared.excluded("persistent"), Value::Null);
        reconciler.end().await;
    }
}

#[tokio::test] // proves DECLARE-38
async fn shards_that_cannot_move_are_named_and_the_node_stays_if_the_count_comes_back() {
    let declared = Declared::made(4).await;
    declared.put("/wide", json!({"settings": {"number_of_shards": 1, "number_of_replicas": 3}}));
    declared.until("/_cluster/health?wait_for_status=green&timeout=1s", |_| true).await;
    declared.declare(4).await;
    let reconciler = Reconciler::start(declared.server.client());
    declared.until_at_rest(4).await;

    declared.declare(3).await;
    let says = |wanted: &'static str| {
        let declared = &declared;
        async move {
            eventually(wanted, async || {
                let status = declared.cluster().await.status?;
                let node = status.report.nodes.iter().find(|node| node.name == "logs-all-3")?;
                let message = node.message.clone()?;
                message.contains(wanted).then_some((message, status.report.message))
            })
            .await
        }
    };
    let (node, whole) = says("[wide][0] cannot move").await;
    assert!(node.contains("1 shard is still on it"), "{node}");
    assert!(node.contains("lower index.number_of_replicas"), "{node}");
    assert!(whole.is_some_and(|message| message.contains("logs-all-3 leaves: 1 shard")));
    assert_eq!(declared.excluded("persistent"), "logs-all-3");

    // A person writes the setting meanwhile.
    declared.put("/_cluster/settings", json!({"persistent": {EXCLUDED: "mine"}}));
    eventually("ours is added", async || {
        (declared.excluded("persistent") == "mine,logs-all-3").then_some(())
    })
    .await;

    declared.declare(4).await;
    eventually("ours is taken out", async || {
        (declared.excluded("persistent") == "mine").then_some(())
    })
    .await;
    eventually("nothing is owed", async || {
        let status = declared.cluster().await.status?;
        status.ledger.debts.is_empty().then_some(())
    })
    .await;
    assert_eq!(declared.replicas().await, Some(4));
    assert_eq!(declared.engines.lock().expect("a lock").len(), 4);
    reconciler.end().await;
}

/// The engine says nothing of where a closed index is, and would leave it on the node.
#[tokio::test] // proves RULE-8
async fn no_node_leaves_while_an_index_is_closed_that_the_engine_does_not_move() {
    let declared = Declared::made(4).await;
    declared.put("/old", json!({"settings": {"number_of_shards": 8, "number_of_replicas": 0}}));
    declared.put("/old/_doc/1", json!({"id": 1}));
    let post = |target: &str| {
        let (status, answer) = declared.ask("POST", target, None).expect("an answer");
        assert_eq!(status, 200, "{target}: {answer}");
    };
    post("/old/_close");
    declared.declare(4).await;
    let reconciler = Reconciler::start(declared.server.client());
    declared.until_at_rest(4).await;

    declared.declare(3).await;
    eventually("it is refused", async || {
        let message = declared.cluster().await.status?.report.message?;
        message.contains("index old is closed, and this engine does not move").then_some(())
    })
    .await;
    assert_eq!(declared.excluded("persistent"), Value::Null);
    assert_eq!(declared.replicas().await, Some(4));

    post("/old/_open");
    declared.until_three().await;
    declared.until("/old/_count", |found| found["count"] == 1).await;
    reconciler.end().await;
}

#[tokio::test] // proves DECLARE-38
async fn a_cluster_that_is_deleted_meanwhile_leaves_nothing_on_the_engine() {
    let declared = Declared::made(4).await;
    declared.put("/wide", json!({"settings": {"number_of_shards": 1, "number_of_replicas": 3}}));
    declared.until("/_cluster/health?wait_for_status=green&timeout=1s", |_| true).await;
    declared.put("/_cluster/settings", json!({"transient": {EXCLUDED: "mine"}}));
    declared.declare(4).await;
    let reconciler = Reconciler::start(declared.server.client());
    declared.until_at_rest(4).await;
    declared.declare(3).await;
    eventually("it is excluded", async || {
        (declared.excluded("transient") == "mine,logs-all-3").then_some(())
    })
    .await;
    let clusters: Api<SearchCluster> = api(&declared.client);
    clusters.delete("logs", &DeleteParams::default()).await.expect("it is deleted");
    eventually("it is gone", async || {
        clusters.get_opt("logs").await.expect("an answer").is_none().then_some(())
    })
    .await;
    assert_eq!(declared.excluded("transient"), "mine");
    assert_eq!(declared.excluded("persistent"), Value::Null);
    reconciler.end().await;
}

/// Two nodes of a set, then two of another one: each new one joins before an old one leaves.
#[tokio::test] // proves DECLARE-7
async fn a_renamed_set_is_another_one_to_which_the_data_moves() {
    let declared = Declared::made(2).await;
    declared.declare(2).await;
    let reconciler = Reconciler::start(declared.server.client());
    declared.until_at_rest(2).await;

    declared.declare_set("new", 2).await;
    eventually("the old set is removed", async || {
        let pods = declared.engines.lock().expect("a lock").keys().cloned().collect::<Vec<_>>();
        let is_new = pods == ["logs-new-0", "logs-new-1"];
        (is_new && declared.replicas().await.is_none()).then_some(())
    })
    .await;
    declared.until_left(2).await;
    assert_eq!(declared.excluded("persistent"), Value::Null);
    reconciler.end().await;
}
