//! Edited templates of an OnDelete StatefulSet, carried out in the pods that exist.

mod forbidden;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stayput_restart::annotation::ENVIRONMENT;
use stayput_restart::{Ledger, Outcome};
use stayput_standin::apiserver::{Asked, Fault, How};

use super::containers::Containers;
use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::eventually;
use super::program::Program;

const REVISION: &str = "controller-revision-hash";

/// The pods' StatefulSet; the test does what its controller does.
struct Set<'a> {
    fixture: &'a Fixture,
    edits: u32,
}

impl<'a> Set<'a> {
    /// A set that owns the pods and was never edited.
    async fn new(fixture: &'a Fixture, strategy: &str) -> Self {
        Self::of(fixture, strategy, template("search", "hot")).await
    }

    /// The same with this template.
    async fn of(fixture: &'a Fixture, strategy: &str, template: Value) -> Self {
        let mut set = Self { fixture, edits: 0 };
        let object = json!({
            "metadata": {"name": "logs"},
            "spec": {
                "replicas": 3, "serviceName": "logs",
                "selector": {"matchLabels": {"app": "logs"}},
                "updateStrategy": {"type": strategy},
                "template": template,
            },
        });
        let made: StatefulSet = fixture.create(object).await;
        set.edit(template).await;
        let owner = json!([{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs",
            "uid": made.metadata.uid, "controller": true,
        }]);
        for name in NODES {
            let labels = json!({REVISION: "logs-1", "tier": "hot"});
            let metadata = json!({"metadata": {"labels": labels, "ownerReferences": owner}});
            merge(&fixture.api::<Pod>(), name, metadata).await;
        }
        set
    }

    /// Another template, as its controller has seen it.
    async fn edit(&mut self, template: Value) -> String {
        self.edits += 1;
        let revision = format!("logs-{}", self.edits);
        let mut kept = template.clone();
        kept["$patch"] = json!("replace");
        let object = json!({
            "metadata": {"name": revision},
            "revision": self.edits,
            "data": {"spec": {"template": kept}},
        });
        self.fixture.create::<ControllerRevision>(object).await;
        let sets = self.fixture.api::<StatefulSet>();
        merge(&sets, "logs", json!({"spec": {"template": template}})).await;
        let generation = sets.get("logs").await.expect("it is there").metadata.generation;
        let status = json!({"status": {
            "replicas": 3, "observedGeneration": generation, "updateRevision": revision,
        }});
        let status = Patch::Merge(status);
        sets.patch_status("logs", &PatchParams::default(), &status).await.expect("it is taken");
        revision
    }

    /// Waits until each pod names the revision.
    async fn until_all_have(&self, revision: &str) {
        eventually(&format!("all pods are of {revision}"), async || {
            for name in NODES {
                let labels = self.fixture.pod(name).await.metadata.labels.unwrap_or_default();
                if labels.get(REVISION).is_none_or(|label| label != revision) {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }
}

/// The engine's container reads a label of its pod in a variable.
fn template(image: &str, tier: &str) -> Value {
    let tier_variable = json!({"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}});
    json!({
        "metadata": {"labels": {"app": "logs", "tier": tier}},
        "spec": {"containers": [{"name": "search", "image": image, "env": [tier_variable]}]},
    })
}

async fn merge<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = Patch::Merge(patch);
    api.patch(name, &PatchParams::default(), &patch).await.expect("it is taken");
}

/// Uid and container of each pod.
async fn pods(fixture: &Fixture) -> BTreeMap<&'static str, (Option<String>, Option<String>)> {
    let mut found = BTreeMap::new();
    for name in NODES {
        let pod = fixture.pod(name).await;
        let statuses = pod.status.and_then(|status| status.container_statuses);
        let container = statuses.and_then(|all| all.first()?.container_id.clone());
        found.insert(name, (pod.metadata.uid, container));
    }
    found
}

/// The messages of all events with this reason.
async fn events(fixture: &Fixture, reason: &str) -> Vec<String> {
    let list = fixture.api::<Event>().list(&ListParams::default()).await.expect("an answer");
    let events = list.items.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    events.filter_map(|event| event.message).collect()
}

#[tokio::test] // proves RESTART-62, UPDATE-33
async fn labels_and_an_image_come_to_the_pods_that_exist() {
    let fixture = Fixture::new("").await;
    let containers = Containers::run(&fixture).await;
    let mut set = Set::new(&fixture, "OnDelete").await;
    fixture.respec(json!({"update": {"mode": "inPlace"}})).await;
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let program = Program::start(&kubeconfig, "only");
    fixture.until_seen().await;
    let first = pods(&fixture).await;

    // A label: nothing is restarted.
    let processes = fixture.processes();
    let mut labelled = template("search", "hot");
    labelled["metadata"]["labels"]["team"] = json!("a");
    let revision = set.edit(labelled).await;
    set.until_all_have(&revision).await;
    assert_eq!(fixture.pod("logs-1").await.metadata.labels.expect("labels")["team"], "a");
    assert_eq!(fixture.processes(), processes, "every process goes on");
    assert_eq!(pods(&fixture).await, first);
    program.until_metric("stayput_updated_nodes_total{step=\"relabel\"} 3").await;

    // An image: new containers in the same pods.
    let mut image = template("search:2", "hot");
    image["metadata"]["labels"]["team"] = json!("a");
    let revision = set.edit(image.clone()).await;
    set.until_all_have(&revision).await;
    let second = pods(&fixture).await;
    for name in NODES {
        assert_eq!(first[name].0, second[name].0, "the pod {name} stays");
        assert_ne!(first[name].1, second[name].1, "the container of {name} is another");
        let spec = fixture.pod(name).await.spec.expect("a spec");
        assert_eq!(spec.containers[0].image.as_deref(), Some("search:2"));
    }

    let over = fixture
        .until("the restart is over", |cluster| {
            cluster.status.as_ref().is_some_and(|status| {
                status.ledger.restart.is_none() && status.ledger.history.len() == 1
            })
        })
        .await;
    for entry in &over.status.expect("a status").ledger.history {
        assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
        assert_eq!(json!(entry.steps), json!({"container": 3}));
    }
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!(json!(entry.steps), json!({"restart": 3}), "{entry:?}");
    // A label that a variable shows needs another pod, which is not allowed.
    let mut variable = image;
    variable["metadata"]["labels"]["tier"] = json!("warm");
    set.edit(variable).await;
    fixture
        .until("the variable is named", |cluster| {
            json!(cluster.status).to_string().contains("spec.containers[search].env[TIER]")
        })
        .await;
    assert_eq!(pods(&fixture).await, second, "every container stays");
    // The nodes of restarts were given labels, too: they count as what was done with them.
    for (step, nodes) in [("relabel", 3), ("container", 3), ("restart", 3)] {
        let line = format!("stayput_updated_nodes_total{{step=\"{step}\"}} {nodes}");
        program.until_metric(&line).await;
    }
    let mut relabelled = events(&fixture, "PodRelabelled").await;
    relabelled.sort();
    let said = |name: &str| {
        let fields = "metadata.labels.team: a is new";
        format!("{name} gets the changes of its template while its engine runs: {fields}")
    };
    assert_eq!(relabelled, NODES.map(said), "one for a change, and none for a look");
    let deleted = |asked: &Asked| asked.verb == "delete" && asked.resource == "pods";
    assert_eq!(fixture.server.counts().matching(deleted), 0);
    assert_eq!(program.end().await, Some(0));
    containers.end();
}

#[tokio::test] // proves UPDATE-112
async fn the_value_of_a_variable_comes_to_the_containers_that_exist() {
    let fixture = Fixture::new("").await;
    let containers = Containers::run(&fixture).await;
    let with = |value: Option<&str>| {
        let mut template = template("search", "hot");
        let variables = template["spec"]["containers"][0]["env"].as_array_mut().expect("a list");
        variables.push(json!({"name": "STAYPUT_ENVIRONMENT", "value": "/stayput/environment"}));
        variables.extend(value.map(|value| json!({"name": "TEAM", "value": value})));
        template
    };
    let mut set = Set::of(&fixture, "OnDelete", with(None)).await;
    fixture.respec(json!({"update": {"mode": "inPlace"}})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let (first, managers) = (pods(&fixture).await, fixture.processes());
    for value in [Some("search"), Some("two words"), None] {
        let revision = set.edit(with(value)).await;
        set.until_all_have(&revision).await;
        for name in NODES {
            let engine = fixture.with(name, |manager| manager.engine()).expect("it runs");
            let variables = std::fs::read_to_string(format!("/proc/{engine}/environ"));
            let variables = variables.expect("it may be read");
            let mut variables = variables.split('\0');
            assert_eq!(variables.find_map(|one| one.strip_prefix("TEAM=")), value, "{name}");
            let annotations = fixture.pod(name).await.metadata.annotations.unwrap_or_default();
            let given = value.map(|value| json!({"TEAM": value}).to_string());
            assert_eq!(annotations.get(ENVIRONMENT), given.as_ref(), "{name}");
        }
    }
    assert_eq!(pods(&fixture).await, first, "every pod and its container stay");
    for (name, (manager, _)) in fixture.processes() {
        assert_eq!(manager, managers[&name].0, "the manager of {name} goes on");
    }
    reconciler.end().await;
    containers.end();
}

/// The words are in the status before anything is edited: then it would be too late.
#[tokio::test] // proves UPDATE-2
async fn a_set_that_replaces_its_pods_by_itself_is_refused_with_the_command() {
    let fixture = Fixture::new("").await;
    let mut set = Set::new(&fixture, "RollingUpdate").await;
    fixture.respec(json!({"update": {"mode": "inPlace"}})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    // Any change ends the wait until the next look.
    fixture.respec(json!({"restart": {"rollback": false}})).await;
    let command = "kubectl patch statefulset logs --namespace default";
    fixture
        .until("the command is shown", |cluster| {
            let status = json!(cluster.status).to_string();
            status.contains(command)
        })
        .await;

    let (before, processes) = (written(&fixture).await.1, fixture.processes());
    let is_read = |one: &Asked| one.verb == "get" && one.resource == "controllerrevisions";
    let reads = || fixture.server.counts().matching(is_read);
    let read = reads();
    set.edit(template("search:2", "warm")).await;
    fixture.respec(json!({"restart": {"rollback": true}})).await;
    // Two revisions are compared once a pod is of another one than its set.
    eventually("the edit is seen", async || (reads() >= read + 2).then_some(())).await;
    fixture.respec(json!({"restart": {"rollback": false}})).await;
    let cluster = fixture.until("that look is over", |cluster| {
        let seen = cluster.status.as_ref().and_then(|status| status.observed_generation);
        seen == cluster.metadata.generation
    });
    let ledger = cluster.await.status.expect("a status").ledger;
    assert!(ledger.restart.is_none() && ledger.history.is_empty(), "{ledger:#?}");
    assert_eq!(written(&fixture).await.1, before, "no pod is changed");
    assert_eq!(fixture.processes(), processes, "no node is stopped");
    reconciler.end().await;
}

/// What the reconciler writes: the ledger, and of each pod metadata and image.
async fn written(fixture: &Fixture) -> (Ledger, Vec<Value>) {
    let status = fixture.cluster().await.status;
    let mut pods = Vec::new();
    for name in NODES {
        let pod = fixture.pod(name).await;
        let image = pod.spec.and_then(|spec| spec.containers.first()?.image.clone());
        pods.push(json!([pod.metadata.labels, pod.metadata.annotations, image]));
    }
    (status.map(|status| status.ledger).unwrap_or_default(), pods)
}

#[tokio::test] // proves RESTART-20
async fn a_reconciler_that_is_killed_at_each_write_of_an_update_is_finished_by_the_next() {
    let fixture = Fixture::new("").await;
    let containers = Containers::run(&fixture).await;
    let mut set = Set::new(&fixture, "OnDelete").await;
    fixture.respec(json!({"update": {"mode": "inPlace"}})).await;
    let mut reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    let first = pods(&fixture).await;
    let revision = set.edit(template("search:2", "hot")).await;
    let unanswered = || fixture.server.counts().matching(|asked| asked.code == 0);
    let mut kills = 0;
    // A write that is not answered is the last one of its reconciler.
    while written(&fixture).await.0.history.is_empty() {
        reconciler.kill().await;
        fixture.server.clear_faults();
        for resource in ["searchclusters/status", "pods"] {
            for verb in ["patch", "update"] {
                fixture.server.inject(Fault::new(How::HangAfter).verb(verb).resource(resource));
            }
        }
        let before = unanswered();
        reconciler = Reconciler::start(fixture.server.client());
        eventually("the reconciler writes", async || (unanswered() > before).then_some(())).await;
        kills += 1;
        assert!(kills < 100, "no progress");
    }
    reconciler.kill().await;
    fixture.server.clear_faults();
    let reconciler = Reconciler::start(fixture.server.client());
    // For each node: image, labels and its end.
    assert!(kills >= 9, "{kills}");
    set.until_all_have(&revision).await;
    let entry = &written(&fixture).await.0.history[0];
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    let last = pods(&fixture).await;
    for name in NODES {
        assert_eq!(first[name].0, last[name].0, "the pod {name} stays");
        assert_ne!(first[name].1, last[name].1, "the container of {name} is another");
        assert_eq!(fixture.starts(name).await, 1, "{name} was started once in its container");
    }
    reconciler.end().await;
    containers.end();
}
