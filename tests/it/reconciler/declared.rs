//! Declared clusters: their objects are made in order, whoever is killed, and nobody else's is touched.

mod refused;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use stayput_kube_access::cluster::{SearchCluster, crd};
use stayput_standin::apiserver::{ApiServer, Asked, Fault, How};

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::{NAMESPACE, eventually};

/// Group, kind and name of everything that is made, in order.
const OBJECTS: [(&str, &str, &str); 6] = [
    ("", "Secret", "logs-masters-config"),
    ("", "Secret", "logs-data-config"),
    ("", "ConfigMap", "logs-bootstrap"),
    ("", "Service", "logs-nodes"),
    ("apps", "StatefulSet", "logs-masters"),
    ("apps", "StatefulSet", "logs-data"),
];

fn declared() -> Value {
    let set = |name: &str, count: u32, role: &str| {
        json!({
            "name": name,
            "count": count,
            "config": {"node.roles": [role]},
            "podTemplate": {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}},
        })
    };
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": NAMESPACE},
        "spec": {
            "engine": {"scheme": "http", "distribution": "opensearch", "version": "2.19.3"},
            "manager": {"caSecret": "manager-ca", "auth": {"jwtKeySecret": "manager-key"}},
            "nodeSets": [set("data", 2, "data"), set("masters", 3, "cluster_manager")],
        },
    })
}

fn api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

/// What is there of the objects, in their order.
async fn there(client: &Client) -> Vec<DynamicObject> {
    let mut found = Vec::new();
    for (group, kind, name) in OBJECTS {
        found.extend(api(client, group, kind).get_opt(name).await.expect("an answer"));
    }
    found
}

async fn all(client: &Client) -> Vec<DynamicObject> {
    eventually("everything is made", async || {
        let found = there(client).await;
        (found.len() == OBJECTS.len()).then_some(found)
    })
    .await
}

fn versions(objects: &[DynamicObject]) -> Vec<u64> {
    let version = |object: &DynamicObject| {
        object.metadata.resource_version.as_ref().expect("a version").parse().expect("a number")
    };
    objects.iter().map(version).collect()
}

/// An apiserver that knows the SearchCluster, and nothing else.
async fn empty() -> (ApiServer, Client) {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    let client = server.client();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &crd()).await.expect("the definition is taken");
    (server, client)
}

async fn declare(client: &Client) -> SearchCluster {
    create(client, declared()).await
}

async fn create(client: &Client, cluster: Value) -> SearchCluster {
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), NAMESPACE);
    let cluster = serde_json::from_value(cluster).expect("a SearchCluster");
    clusters.create(&PostParams::default(), &cluster).await.expect("it is created")
}

#[tokio::test] // proves DECLARE-11
async fn objects_are_made_in_order_and_a_second_reconciler_changes_nothing() {
    let (server, client) = empty().await;
    let cluster = declare(&client).await;
    let reconciler = Reconciler::start(server.client());
    let made = all(&client).await;
    assert!(versions(&made).is_sorted(), "{:?}", versions(&made));
    for object in &made {
        let owner = &object.metadata.owner_references.as_ref().expect("owners")[0];
        assert_eq!(Some(&owner.uid), cluster.metadata.uid.as_ref());
        assert_eq!(object.metadata.labels.as_ref().expect("labels")["stayput.dev/cluster"], "logs");
    }
    let names = "logs-masters-0,logs-masters-1,logs-masters-2";
    assert_eq!(made[2].data["data"]["INITIAL_MASTER_NODES"], names);
    reconciler.end().await;

    let before = server.counts();
    // The answers come in another order than the questions: one is held back until there are others.
    server.inject(Fault::new(How::Hold).verb("get").resource("secrets"));
    let reconciler = Reconciler::start(server.client());
    let are_read = |resource: &str, count: u64| {
        let is_read = |one: &Asked| one.verb == "get" && one.resource == resource;
        server.counts().since(&before).matching(is_read) >= count
    };
    eventually("the others are read", async || {
        let others = [("secrets", 1), ("services", 1), ("statefulsets", 2)];
        others.into_iter().all(|(resource, count)| are_read(resource, count)).then_some(())
    })
    .await;
    server.release();
    let patches = |resource: &str, is_good: bool| {
        server.counts().since(&before).matching(|one| {
            one.verb == "patch" && one.resource == resource && (one.code == 200) == is_good
        })
    };
    eventually("everything is applied again", async || {
        (patches("statefulsets", true) >= 2).then_some(())
    })
    .await;
    assert!(server.is_faultless());
    for resource in ["secrets", "configmaps", "services", "statefulsets"] {
        assert_eq!(patches(resource, false), 0, "{resource}");
    }
    assert_eq!(versions(&there(&client).await), versions(&made));
    reconciler.end().await;
}

/// Another image of an init container takes another pod for each node.
#[tokio::test] // proves DECLARE-12
async fn a_newer_reconciler_leaves_the_managers_of_sets_that_are_there() {
    const OLD: &str = "stayput/manager:0.0.9";
    let (server, client) = empty().await;
    declare(&client).await;
    let reconciler = Reconciler::start(server.client());
    all(&client).await;
    reconciler.end().await;
    let sets = api(&client, "apps", "StatefulSet");
    let at = "/spec/template/spec/initContainers/0/image";
    let older = json!([{"op": "replace", "path": at, "value": OLD}]);
    let older = Patch::Json::<()>(serde_json::from_value(older).expect("a patch"));
    for name in ["logs-masters", "logs-data"] {
        sets.patch(name, &PatchParams::default(), &older).await.expect("it is taken");
    }

    let before = server.counts();
    let reconciler = Reconciler::start(server.client());
    eventually("everything is applied again", async || {
        let applied = server.counts().since(&before).matching(|one| {
            one.verb == "patch" && one.resource == "statefulsets" && one.code == 200
        });
        (applied >= 2).then_some(())
    })
    .await;
    for name in ["logs-masters", "logs-data"] {
        let set = sets.get(name).await.expect("it is there");
        assert_eq!(set.data.pointer(at), Some(&json!(OLD)), "{name}");
    }
    reconciler.end().await;
}

/// The write is made and its answer lost, or it is lost itself; then the reconciler is killed.
#[tokio::test] // proves DECLARE-13
async fn a_reconciler_that_is_killed_at_any_write_is_finished_by_the_next() {
    for how in [How::LoseAnswer, How::LoseRequest] {
        for resource in ["secrets", "configmaps", "services", "statefulsets"] {
            let (server, client) = empty().await;
            declare(&client).await;
            server.inject(Fault::new(how).verb("patch").resource(resource));
            let reconciler = Reconciler::start(server.client());
            eventually("the fault", async || server.is_faultless().then_some(())).await;
            reconciler.kill().await;
            let part = there(&client).await.len();
            assert!(part < OBJECTS.len(), "{how:?} {resource}: {part} objects were made");
            let reconciler = Reconciler::start(server.client());
            let made = all(&client).await;
            assert_eq!(made[4].data["spec"]["replicas"], 3, "{how:?} {resource}");
            reconciler.end().await;
        }
    }
}

#[tokio::test] // proves DECLARE-15
async fn an_object_of_somebody_else_is_named_and_nothing_is_made() {
    let (server, client) = empty().await;
    let services = api(&client, "", "Service");
    let foreign = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "logs-nodes", "labels": {"stayput.dev/cluster": "logs"}},
        "spec": {"ports": [{"port": 80}]},
    });
    let foreign: DynamicObject = serde_json::from_value(foreign).expect("an object");
    let before = services.create(&PostParams::default(), &foreign).await.expect("it is created");
    declare(&client).await;
    let reconciler = Reconciler::start(server.client());
    let message = blocked(&client, "foreign_object").await;
    assert!(message.starts_with("Service logs-nodes exists and is not of this"), "{message}");
    assert_eq!(versions(&there(&client).await), versions(&[before]), "only what was there");

    services.delete("logs-nodes", &DeleteParams::default()).await.expect("it is deleted");
    all(&client).await;
    reconciler.end().await;
}

/// Waits until the status has this word; returns the message.
async fn blocked(client: &Client, word: &str) -> String {
    let clusters: Api<SearchCluster> = Api::namespaced(client.clone(), NAMESPACE);
    eventually(word, async || {
        let report = clusters.get("logs").await.ok()?.status?.report;
        (report.blocked.as_deref() == Some(word)).then_some(report.message?)
    })
    .await
}

/// What the StatefulSet controller writes.
async fn ready(client: &Client, name: &str, count: u32) {
    let status = json!({"status": {"replicas": count, "readyReplicas": count}});
    let sets = api(client, "apps", "StatefulSet");
    sets.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.expect("taken");
}

async fn replicas(client: &Client, name: &str) -> u64 {
    let set = api(client, "apps", "StatefulSet").get(name).await.expect("it is there");
    set.data["spec"]["replicas"].as_u64().expect("a number")
}

#[tokio::test] // proves DECLARE-18
async fn a_formed_cluster_grows_master_by_master() {
    let fixture = Fixture::bare("").await;
    let client = fixture.client.clone();
    for name in NODES {
        let labels = Patch::Merge(json!({"metadata": {"labels": {"stayput.dev/cluster": "logs"}}}));
        let pods = api(&client, "", "Pod");
        pods.patch(name, &PatchParams::default(), &labels).await.expect("it is taken");
    }
    declare(&client).await;
    let reconciler = Reconciler::start(fixture.server.client());
    let made = all(&client).await;
    eventually("the engine has formed a cluster", async || {
        let names = api(&client, "", "ConfigMap").get("logs-bootstrap").await.ok()?;
        (names.data["data"]["INITIAL_MASTER_NODES"] == "").then_some(())
    })
    .await;
    let after = there(&client).await;
    for (before, after) in made.iter().zip(&after).filter(|(one, _)| one.data["spec"].is_object()) {
        assert_eq!(before.metadata.generation, after.metadata.generation, "no pod is touched");
    }
    assert_eq!(made[0].data["data"], after[0].data["data"], "the config stays the same");

    ready(&client, "logs-masters", 3).await;
    let sets = |masters: u32, data: u32| {
        let mut sets = declared()["spec"]["nodeSets"].take();
        sets[0]["count"] = json!(data);
        sets[1]["count"] = json!(masters);
        json!({"nodeSets": sets})
    };
    fixture.respec(sets(5, 7)).await;
    eventually("the data nodes", async || {
        (replicas(&client, "logs-data").await == 7).then_some(())
    })
    .await;
    assert_eq!(replicas(&client, "logs-masters").await, 4, "the fourth has to join first");
    ready(&client, "logs-masters", 4).await;
    eventually("the fifth", async || (replicas(&client, "logs-masters").await == 5).then_some(()))
        .await;
    ready(&client, "logs-masters", 5).await;

    reconciler.end().await;
}
