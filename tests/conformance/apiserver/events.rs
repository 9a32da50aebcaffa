//! Events: two APIs for the same objects.

use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::world::{World, text};

fn event(world: &World, name: &str, about: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
        "eventTime": "2026-11-21T09:00:00.000001Z",
        "reportingController": "stayput.dev/reconciler",
        "reportingInstance": "reconciler-0",
        "action": "Restart", "reason": "RestartStarted", "note": "Starting rolling restart",
        "type": "Normal",
        "regarding": {
            "apiVersion": "v1", "kind": "Pod", "name": about, "namespace": world.namespace,
        },
    })
}

fn path(world: &World) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", world.namespace)
}

pub async fn an_event_of_the_new_api_is_seen_by_the_old_one(client: Client) {
    let world = World::new(client).await;
    let made = world.send(Method::POST, &path(&world), &event(&world, "a", "logs-0")).await.good();
    assert_eq!(made["note"], "Starting rolling restart");
    assert_eq!(made["regarding"]["name"], "logs-0");
    let old = world.read("events", "a").await;
    assert_eq!((&old["kind"], &old["apiVersion"]), (&json!("Event"), &json!("v1")));
    assert_eq!(old["message"], "Starting rolling restart");
    assert_eq!(old["involvedObject"]["name"], "logs-0");
    assert_eq!(old["reportingComponent"], "stayput.dev/reconciler");
    assert_eq!(old["eventTime"], "2026-11-21T09:00:00.000001Z");
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-11-21T09:00:05.000000Z"}});
    let headers = [("content-type", "application/merge-patch+json")];
    let body = series.to_string().into_bytes();
    let patched = world.ask(Method::PATCH, &format!("{}/a", path(&world)), &headers, body).await;
    assert_eq!(patched.good()["series"]["count"], 2);
    assert_eq!(world.read("events", "a").await["series"]["count"], 2);
}

pub async fn an_incomplete_event_is_refused(client: Client) {
    let world = World::new(client).await;
    for field in ["eventTime", "reportingController", "reportingInstance", "action", "reason"] {
        let mut object = event(&world, "a", "logs-0");
        object.as_object_mut().unwrap().remove(field);
        let refused = world.send(Method::POST, &path(&world), &object).await;
        let refused = refused.refused(422, "Invalid");
        assert_eq!(text(&refused["details"]["causes"][0]["field"]), field);
    }
    let mut kind = event(&world, "a", "logs-0");
    kind["type"] = json!("Loud");
    world.send(Method::POST, &path(&world), &kind).await.refused(422, "Invalid");
    let mut nowhere = event(&world, "a", "logs-0");
    nowhere["regarding"].as_object_mut().unwrap().remove("namespace");
    let refused = world.send(Method::POST, &path(&world), &nowhere).await;
    let refused = refused.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "involvedObject.namespace");
    let elsewhere = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"},
        "involvedObject": {"kind": "Pod", "name": "logs-0", "namespace": "other"},
    });
    world.post("events", &elsewhere).await.refused(422, "Invalid");
}

pub async fn events_are_selected_by_what_they_are_about(client: Client) {
    let world = World::new(client).await;
    for (name, about) in [("a", "logs-0"), ("b", "logs-1")] {
        world.send(Method::POST, &path(&world), &event(&world, name, about)).await.good();
    }
    let query = "?fieldSelector=involvedObject.kind%3DPod%2CinvolvedObject.name%3Dlogs-1";
    let list = world.read("events", query).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["metadata"]["name"], "b");
    let query = format!("{}?fieldSelector=regarding.name%3Dlogs-0", path(&world));
    let list = world.get(&query).await.good();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    assert_eq!(list["items"][0]["regarding"]["name"], "logs-0");
}
