//! The status subresource and `generation`.

use kube::Client;
use serde_json::{Value, json};

use super::world::{World, config_map, gauge, pod, version};

pub async fn the_main_resource_ignores_the_status(client: Client) {
    let world = World::with_gauges(client).await;
    let mut object = gauge("a");
    object["status"] = json!({"phase": "Invented"});
    let made = world.post("gauges", &object).await.good();
    assert_eq!(made["status"], Value::Null);
    assert_eq!(made["metadata"]["generation"], 1);
    let status = json!({"status": {"phase": "Set"}});
    world.merge("gauges", "a/status", &status).await.good();

    let mut object = world.read("gauges", "a").await;
    object["status"] = json!({"phase": "Other"});
    let put = world.put("gauges", "a", &object).await.good();
    assert_eq!(put["status"], json!({"phase": "Set"}));
    assert_eq!(version(&put), version(&object));
    let patch = json!({"status": {"phase": "Other"}, "spec": {"paused": true}});
    let patched = world.merge("gauges", "a", &patch).await.good();
    assert_eq!(patched["status"], json!({"phase": "Set"}));
    assert_eq!(patched["spec"]["paused"], true);
    assert_eq!(patched["metadata"]["generation"], 2);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = world.merge("gauges", "a", &label).await.good();
    assert_eq!(labelled["metadata"]["generation"], 2);
}

pub async fn the_status_subresource_ignores_the_rest(client: Client) {
    let world = World::with_gauges(client).await;
    let made = world.post("gauges", &gauge("a")).await.good();
    let patch = json!({
        "metadata": {"labels": {"a": "b"}, "finalizers": ["stayput.dev/x"]},
        "spec": {"paused": true},
        "status": {"phase": "Set", "observedGeneration": 1, "unknown": 1},
    });
    let patched = world.merge("gauges", "a/status", &patch).await.good();
    assert_eq!(patched["status"], json!({"phase": "Set", "observedGeneration": 1}));
    assert_eq!(patched["spec"], made["spec"]);
    assert_eq!(patched["metadata"]["labels"], Value::Null);
    assert_eq!(patched["metadata"]["finalizers"], Value::Null);
    assert_eq!(patched["metadata"]["generation"], 1);
    assert!(version(&patched) > version(&made));
    assert_eq!(world.read("gauges", "a/status").await, patched);

    let mut object = patched.clone();
    object["status"] = json!({"phase": "Put"});
    object["spec"]["paused"] = json!(true);
    let put = world.put("gauges", "a/status", &object).await.good();
    assert_eq!(put["status"], json!({"phase": "Put"}));
    assert_eq!(put["spec"], made["spec"]);
    object.as_object_mut().unwrap().remove("status");
    object["metadata"]["resourceVersion"] = put["metadata"]["resourceVersion"].clone();
    let put = world.put("gauges", "a/status", &object).await.good();
    assert_eq!(put["status"], Value::Null);
}

pub async fn both_share_one_version(client: Client) {
    let world = World::with_gauges(client).await;
    let made = world.post("gauges", &gauge("a")).await.good();
    let patched =
        world.merge("gauges", "a/status", &json!({"status": {"phase": "x"}})).await.good();
    world.put("gauges", "a", &made).await.refused(409, "Conflict");
    let mut stale = made.clone();
    stale["status"] = json!({"phase": "y"});
    world.put("gauges", "a/status", &stale).await.refused(409, "Conflict");
    world.merge("gauges", "a", &json!({"spec": {"paused": true}})).await.good();
    let mut stale = patched;
    stale["status"] = json!({"phase": "z"});
    world.put("gauges", "a/status", &stale).await.refused(409, "Conflict");
}

pub async fn a_pod_takes_labels_through_its_status(client: Client) {
    let world = World::new(client).await;
    let made = world.post("pods", &pod("a")).await.good();
    assert_eq!(made["status"]["phase"], "Pending");
    let patch = json!({
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"containers": []},
        "status": {"phase": "Running", "podIP": "10.1.2.3"},
    });
    let patched = world.merge("pods", "a/status", &patch).await.good();
    assert_eq!(patched["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(patched["spec"], made["spec"]);
    assert_eq!(patched["status"]["phase"], "Running");
    assert_eq!(patched["status"]["podIP"], "10.1.2.3");
    let patched = world.merge("pods", "a", &json!({"status": {"phase": "Failed"}})).await.good();
    assert_eq!(patched["status"]["phase"], "Running");
    let sts = super::kinds::stateful_set("a");
    world.post("statefulsets", &sts).await.good();
    let status = json!({"status": {"replicas": 3, "updateRevision": "a-1"}});
    let patched = world.merge("statefulsets", "a/status", &status).await.good();
    assert_eq!(patched["status"]["updateRevision"], "a-1");
    world.post("configmaps", &config_map("a", json!({}))).await.good();
    let none = world.get(&world.path("configmaps", "a/status")).await;
    assert_eq!(none.code, 404);
}
