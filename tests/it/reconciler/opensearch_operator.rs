//! Beside the OpenSearch operator: its decisions are played by a stand-in, which looks when the test says so, and in
//! one test all the time.

mod created;
mod paused;
mod set;

use std::sync::{Arc, Mutex};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stayput_restart::Outcome;
use stayput_standin::apiserver::{Fault, How};
use stayput_standin::opensearch_operator::{
    Action, Look, Operator, definition, first_objects, labels,
};
use tokio::task::JoinHandle;

use super::containers::Containers;
use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{NAMESPACE, eventually};
use set::{Found, SetController};

const OPENSEARCH: &str = "standin.distribution: opensearch";
const CONFIG_PATH: &str = "/usr/share/opensearch/config/opensearch.yml";
/// The edit of most tests: it changes ConfigMap and template.
const ROUND: &str = "node.attr.round";

/// Three nodes in pods of the operator, which has nothing to do, and a SearchCluster that carries out templates.
struct Beside {
    fixture: Fixture,
    operator: Operator,
    controller: SetController,
    containers: Containers,
}

impl Beside {
    async fn new() -> Self {
        let beside = Self::with(|_| ()).await;
        beside.until_content().await;
        beside
    }

    /// The operator has not looked yet since its StatefulSet, `change`d so, is there.
    async fn with(change: impl FnOnce(&mut Value)) -> Self {
        let fixture = Fixture::new(OPENSEARCH).await;
        let containers = Containers::run(&fixture).await;
        let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
        let crd = serde_json::from_value(definition()).expect("a definition");
        crds.create(&PostParams::default(), &crd).await.expect("it is taken");
        let cluster = json!({
            "apiVersion": "opensearch.org/v1",
            "kind": "OpenSearchCluster",
            "metadata": {"name": "logs"},
            "spec": {
                "general": {"additionalConfig": {ROUND: "first"}},
                "nodePools": [{
                    "component": "nodes", "replicas": 3, "roles": ["cluster_manager", "data"],
                }],
            },
        });
        let object = serde_json::from_value(cluster).expect("an object");
        let made = clusters(&fixture).create(&PostParams::default(), &object).await;
        let made = json!(made.expect("it is created"));
        let base = json!({
            "metadata": {"labels": {"app": "logs"}},
            "spec": {"containers": [{"name": "search", "image": "search"}]},
        });
        let [map, mut set] = first_objects(&made, &base, CONFIG_PATH);
        change(&mut set);
        fixture.create::<ConfigMap>(map).await;
        fixture.create::<StatefulSet>(set).await;
        for name in NODES {
            let metadata =
                json!({"name": format!("data-{name}"), "labels": labels("logs", "nodes")});
            fixture.create::<PersistentVolumeClaim>(json!({"metadata": metadata})).await;
        }
        let controller = SetController::adopt(&fixture).await;
        let operator =
            Operator::new(fixture.client.clone(), [NAMESPACE, "logs"], base, CONFIG_PATH);
        fixture.respec(json!({"update": {"mode": "inPlace"}})).await;
        Self { fixture, operator, controller, containers }
    }

    /// A person edits the `OpenSearchCluster`.
    async fn edit(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        let params = PatchParams::default();
        clusters(&self.fixture).patch("logs", &params, &patch).await.expect("it is taken");
    }

    /// The operator looks: it writes the config that the person has edited, and nothing else.
    async fn edit_config(&self, round: &str) {
        self.edit(json!({"general": {"additionalConfig": {ROUND: round}}})).await;
        let look = self.operator.look().await;
        assert_eq!(look.done, [Action::Write { set: "logs".into() }], "{look:?}");
    }

    /// Waits until a look of the operator has nothing to do.
    async fn until_content(&self) {
        eventually("the operator is content", async || {
            self.operator.look().await.is_at_rest().then_some(())
        })
        .await;
    }

    /// Waits until all pods have the label of this revision.
    async fn until_all_have(&self, what: &str, revision: &str) {
        eventually(what, async || {
            let pods = self.controller.pods().await;
            pods.values().all(|pod| pod.revision == revision).then_some(())
        })
        .await;
    }

    /// True if a restart is over.
    async fn is_over(&self) -> bool {
        let status = self.fixture.cluster().await.status.expect("a status");
        !status.ledger.history.is_empty()
    }

    /// Waits until the only restart is over; it must have been done.
    async fn until_done(&self) {
        self.fixture
            .until("the restart is over", |cluster| {
                let status = cluster.status.as_ref();
                status
                    .is_some_and(|it| it.ledger.restart.is_none() && !it.ledger.history.is_empty())
            })
            .await;
        let history = self.fixture.cluster().await.status.expect("a status").ledger.history;
        let outcomes: Vec<Outcome> = history.iter().map(|entry| entry.outcome).collect();
        assert_eq!(outcomes, [Outcome::Done], "{history:#?}");
    }

    /// Checks that all pods are as wanted, and that nothing of ours is left.
    async fn check_end(&self) {
        let pods = self.controller.pods().await;
        for name in NODES {
            assert_eq!(pods[name].revision, self.controller.wanted(), "{name}");
            assert!(!pods[name].is_ahead, "{name}: nothing of ours is left");
        }
        // As the operator leaves it, or never set.
        let settings = self.fixture.engine_until("/_cluster/settings?flat_settings=true").await;
        let allocation = &settings["transient"]["cluster.routing.allocation.enable"];
        assert!(allocation.is_null() || allocation == "all", "{settings}");
        assert_eq!(settings["persistent"], json!({}), "{settings}");
        assert_eq!(self.controller.fewest_ready(), 2, "never two nodes down");
    }

    async fn end(self, reconciler: Reconciler) {
        reconciler.end().await;
        self.containers.end();
    }
}

fn clusters(fixture: &Fixture) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "opensearch.org".into(),
        version: "v1".into(),
        api_version: "opensearch.org/v1".into(),
        kind: "OpenSearchCluster".into(),
        plural: "opensearchclusters".into(),
    };
    Api::namespaced_with(fixture.client.clone(), NAMESPACE, &resource)
}

fn deleted(done: &[Action]) -> Vec<&str> {
    let deleted = done.iter().filter_map(|action| match action {
        Action::Delete { pod } => Some(pod.as_str()),
        _ => None,
    });
    deleted.collect()
}

/// True if the pods are the same ones, each with another container.
fn are_same_pods_with_other_containers(before: &Found, after: &Found) -> bool {
    NODES.iter().all(|name| {
        let (was, is) = (&before[name], &after[name]);
        was.uid == is.uid && was.container != is.container
    })
}

#[tokio::test] // proves UPDATE-97, UPDATE-99
async fn a_config_arrives_in_the_same_pods_and_the_operator_finds_nothing_to_do() {
    let beside = Beside::new().await;
    let reconciler = Reconciler::start(beside.fixture.client.clone());
    beside.fixture.until_seen().await;
    let before = beside.controller.pods().await;
    beside.edit_config("second").await;
    // Right at the edit: the set's controller has not seen it.
    assert_eq!(beside.operator.look().await.done, []);
    let revision = beside.controller.see().await;
    beside.until_all_have("all pods have the label", &revision).await;
    let look = beside.operator.look().await;
    assert_eq!(deleted(&look.done), [""; 0], "{look:?}");
    eventually("the restart is over", async || {
        let look = beside.operator.look().await;
        assert_eq!(deleted(&look.done), [""; 0], "{look:?}");
        beside.is_over().await.then_some(())
    })
    .await;
    beside.until_done().await;
    beside.until_content().await;
    beside.check_end().await;
    let after = beside.controller.pods().await;
    assert!(are_same_pods_with_other_containers(&before, &after), "{before:#?} {after:#?}");
    beside.end(reconciler).await;
}

#[tokio::test] // proves UPDATE-97
async fn a_deletion_before_the_labels_that_is_refused_costs_no_pod() {
    let beside = Beside::new().await;
    let before = beside.controller.pods().await;
    beside.edit_config("second").await;
    beside.controller.see().await;
    // As `deploy/keep-pods` does.
    let refusal =
        How::Deny(403, "the label stayput.dev/keep-pod keeps this pod from being deleted");
    beside.fixture.server.inject(Fault::new(refusal).verb("delete").resource("pods").times(1000));
    let look = beside.operator.look().await;
    assert!(look.refused.as_ref().is_some_and(|why| why.contains("keep-pod")), "{look:?}");
    assert_eq!(look.done, [Action::SetRestarting(true), Action::Allocate("primaries")]);
    // Its next look is after the labels, when it gives allocation back, or in the middle.
    let reconciler = Reconciler::start(beside.fixture.client.clone());
    let looking = looks(&beside);
    beside.until_done().await;
    let done = looking.end().await;
    beside.check_end().await;
    assert_eq!(deleted(&done), [""; 0], "{done:?}");
    let after = beside.controller.pods().await;
    assert!(are_same_pods_with_other_containers(&before, &after), "{before:#?} {after:#?}");
    beside.end(reconciler).await;
}

#[tokio::test] // proves UPDATE-98
async fn a_pod_that_is_deleted_before_the_labels_counts_as_done() {
    let beside = Beside::new().await;
    let before = beside.controller.pods().await;
    beside.edit_config("second").await;
    let revision = beside.controller.see().await;
    let look = beside.operator.look().await;
    assert_eq!(deleted(&look.done), ["logs-0"], "{look:?}");
    let reconciler = Reconciler::start(beside.fixture.client.clone());
    // The new pod takes much longer to be ready on a real Kubernetes: only then the operator would go on.
    beside.until_all_have("the others have the label", &revision).await;
    let looking = looks(&beside);
    beside.until_done().await;
    let done = looking.end().await;
    beside.check_end().await;
    assert_eq!(deleted(&done), [""; 0], "{done:?}");
    let after = beside.controller.pods().await;
    for name in NODES {
        assert_eq!(before[name].uid == after[name].uid, name != "logs-0", "{name}");
        assert_ne!(before[name].container, after[name].container, "{name}");
        assert_eq!(beside.fixture.starts(name).await, 1, "{name} was not stopped twice");
    }
    beside.end(reconciler).await;
}

/// Whoever comes first: the operator looks at each change, as the real one does.
#[tokio::test] // proves UPDATE-99
async fn whenever_it_looks_no_two_nodes_are_down_and_it_recovers_nothing() {
    let beside = Beside::new().await;
    let before = beside.controller.pods().await;
    let reconciler = Reconciler::start(beside.fixture.client.clone());
    beside.fixture.until_seen().await;
    beside.controller.see_at_once();
    let looking = looks(&beside);
    beside.edit(json!({"general": {"additionalConfig": {ROUND: "second"}}})).await;
    beside.until_done().await;
    let done = looking.end().await;
    beside.check_end().await;
    assert!(deleted(&done).len() <= 1, "{done:?}");
    assert!(!done.iter().any(|action| matches!(action, Action::Remake { .. })), "{done:?}");
    let after = beside.controller.pods().await;
    let replaced = NODES.iter().filter(|name| before[*name].uid != after[*name].uid);
    assert_eq!(replaced.count(), deleted(&done).len());
    beside.end(reconciler).await;
}

/// A variable with another value needs another pod, which is not allowed here.
#[tokio::test] // proves UPDATE-100
async fn what_needs_another_pod_is_left_to_the_operator() {
    let beside = Beside::new().await;
    let before = beside.controller.pods().await;
    let reconciler = Reconciler::start(beside.fixture.client.clone());
    beside.fixture.until_seen().await;
    let pool = json!({
        "component": "nodes", "replicas": 3, "roles": ["cluster_manager", "data"],
        "env": [{"name": "TIER", "value": "warm"}],
    });
    beside.edit(json!({"nodePools": [pool]})).await;
    let look = beside.operator.look().await;
    assert_eq!(look.done, [Action::Write { set: "logs".into() }], "{look:?}");
    let revision = beside.controller.see().await;
    beside
        .fixture
        .until("the variable is named", |cluster| {
            json!(cluster.status).to_string().contains("spec.containers[search].env")
        })
        .await;
    let pods = beside.controller.pods().await;
    assert!(pods.values().all(|pod| pod.revision != revision && !pod.is_ahead), "{pods:#?}");
    let looking = looks(&beside);
    beside.until_all_have("the operator has replaced all pods", &revision).await;
    assert_eq!(deleted(&looking.end().await), NODES);
    assert_eq!(beside.controller.fewest_ready(), 2);
    let after = beside.controller.pods().await;
    assert!(NODES.iter().all(|name| before[name].uid != after[name].uid), "{after:#?}");
    let ledger = beside.fixture.cluster().await.status.expect("a status").ledger;
    assert!(ledger.history.is_empty() && ledger.restart.is_none(), "{ledger:#?}");
    beside.end(reconciler).await;
}

/// The operator that looks by itself, at each change.
struct Looking {
    looks: Arc<Mutex<Vec<Look>>>,
    task: JoinHandle<()>,
}

fn looks(beside: &Beside) -> Looking {
    let looks = Arc::<Mutex<Vec<Look>>>::default();
    let theirs = Arc::clone(&looks);
    let record = move |look: &Look| theirs.lock().expect("a lock").push(look.clone());
    let task = tokio::spawn(beside.operator.clone().run(record));
    Looking { looks, task }
}

impl Looking {
    /// Ends it once it has nothing to do; everything that it has done.
    async fn end(self) -> Vec<Action> {
        eventually("the operator is content", async || {
            let looks = self.looks.lock().expect("a lock");
            looks.last().is_some_and(Look::is_at_rest).then_some(())
        })
        .await;
        self.task.abort();
        let looks = self.looks.lock().expect("a lock");
        looks.iter().flat_map(|look| look.done.clone()).collect()
    }
}
