//! How objects are deleted.

use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::world::{GROUP, World, config_map, gauge, pod, text, version};

pub async fn an_object_goes_and_the_answer_says_which_it_was(client: Client) {
    let world = World::with_gauges(client).await;
    let made = world.post("gauges", &gauge("a")).await.good();
    let gone = world.delete("gauges", "a", &Value::Null).await;
    assert_eq!(gone.code, 200);
    let gone = gone.good();
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
    let uid = &made["metadata"]["uid"];
    let details = json!({"name": "a", "group": GROUP, "kind": "gauges", "uid": uid});
    assert_eq!(gone["details"], details);
    world.get(&world.path("gauges", "a")).await.refused(404, "NotFound");
    let again = world.post("gauges", &gauge("a")).await.good();
    assert_ne!(again["metadata"]["uid"], *uid);

    world.post("configmaps", &config_map("a", json!({}))).await.good();
    let gone = world.delete("configmaps", "a", &Value::Null).await.good();
    assert_eq!(gone["status"], "Success");
}

pub async fn preconditions_that_do_not_hold_refuse_a_deletion(client: Client) {
    let world = World::new(client).await;
    let made = world.post("configmaps", &config_map("a", json!({}))).await.good();
    let uid = "0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a";
    let options = json!({"preconditions": {"uid": uid}});
    let refused = world.delete("configmaps", "a", &options).await.refused(409, "Conflict");
    assert!(text(&refused["message"]).contains("the UID in the precondition"));
    let options = json!({"preconditions": {"resourceVersion": "1"}});
    let refused = world.delete("configmaps", "a", &options).await.refused(409, "Conflict");
    assert_eq!(refused["details"], json!({"name": "a", "kind": "ConfigMap"}));
    let message = text(&refused["message"]);
    assert!(message.contains("the ResourceVersion in the precondition"), "{message}");
    let held = json!({"preconditions": {
        "uid": made["metadata"]["uid"], "resourceVersion": version(&made).to_string(),
    }});
    world.delete("configmaps", "a", &held).await.good();
}

pub async fn a_finalizer_keeps_an_object_until_it_is_taken_off(client: Client) {
    let world = World::with_gauges(client).await;
    let mut object = gauge("a");
    object["metadata"]["finalizers"] = json!(["stayput.dev/debts", "stayput.dev/other"]);
    let made = world.post("gauges", &object).await.good();
    let marked = world.delete("gauges", "a", &Value::Null).await;
    assert_eq!(marked.code, 200);
    let marked = marked.good();
    assert_eq!(marked["kind"], "Gauge");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(marked["metadata"]["generation"], 2);
    assert!(version(&marked) > version(&made));
    let again = world.delete("gauges", "a", &Value::Null).await.good();
    assert_eq!(version(&again), version(&marked));
    world.post("gauges", &object).await.refused(409, "AlreadyExists");

    let mut events = world.watch("gauges", &format!("resourceVersion={}", version(&marked))).await;
    let one = json!({"metadata": {"finalizers": ["stayput.dev/other"]}});
    let kept = world.merge("gauges", "a", &one).await.good();
    assert!(kept["metadata"]["deletionTimestamp"].is_string());
    let status = json!({"status": {"phase": "going"}});
    world.merge("gauges", "a/status", &status).await.good();
    let none = json!({"metadata": {"finalizers": null}});
    world.merge("gauges", "a", &none).await.good();
    world.get(&world.path("gauges", "a")).await.refused(404, "NotFound");
    events.expect("MODIFIED").await;
    events.expect("MODIFIED").await;
    let last = events.expect("DELETED").await;
    assert!(version(&last) > version(&kept));
}

pub async fn an_object_that_is_going_takes_no_new_finalizers(client: Client) {
    let world = World::with_gauges(client).await;
    let mut object = gauge("a");
    object["metadata"]["finalizers"] = json!(["stayput.dev/debts"]);
    world.post("gauges", &object).await.good();
    world.delete("gauges", "a", &Value::Null).await.good();
    let more = json!({"metadata": {"finalizers": ["stayput.dev/debts", "stayput.dev/more"]}});
    let refused = world.merge("gauges", "a", &more).await.refused(422, "Invalid");
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["field"], "metadata.finalizers");
    assert_eq!(cause["reason"], "FieldValueForbidden");
    let alive = json!({"metadata": {"deletionTimestamp": null, "labels": {"a": "b"}}});
    let patched = world.merge("gauges", "a", &alive).await.good();
    assert!(patched["metadata"]["deletionTimestamp"].is_string(), "a deletion cannot be undone");
}

pub async fn a_bound_pod_is_given_time_and_another_is_gone_at_once(client: Client) {
    let world = World::new(client).await;
    world.post("pods", &pod("a")).await.good();
    let gone = world.delete("pods", "a", &Value::Null).await.good();
    assert_eq!(gone["kind"], "Pod");
    world.get(&world.path("pods", "a")).await.refused(404, "NotFound");

    let mut bound = pod("b");
    bound["spec"]["nodeName"] = json!("node-1");
    let made = world.post("pods", &bound).await.good();
    let marked = world.delete("pods", "b", &Value::Null).await.good();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let still = world.read("pods", "b").await;
    assert_eq!(still["metadata"]["uid"], made["metadata"]["uid"]);
    world.delete("pods", "b", &json!({"gracePeriodSeconds": 0})).await.good();
    world.get(&world.path("pods", "b")).await.refused(404, "NotFound");
}

pub async fn a_collection_is_deleted_by_selector(client: Client) {
    let world = World::new(client).await;
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"l": label});
        world.post("configmaps", &object).await.good();
    }
    let path = world.path("configmaps", "?labelSelector=l%3Dx");
    world.ask(Method::DELETE, &path, &[], Vec::new()).await.good();
    let left = world.read("configmaps", "?labelSelector=l").await;
    let left: Vec<&Value> =
        left["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(left, ["b"]);
}

pub async fn a_dry_run_is_said_in_the_body_if_there_is_one(client: Client) {
    let world = World::new(client).await;
    let made = world.post("configmaps", &config_map("a", json!({}))).await.good();
    world.delete("configmaps", "a", &json!({"dryRun": ["All"]})).await.good();
    assert_eq!(world.read("configmaps", "a").await, made);
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    world.delete("configmaps", "a?dryRun=All", &body).await.good();
    world.get(&world.path("configmaps", "a")).await.refused(404, "NotFound");
}
