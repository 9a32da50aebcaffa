//! Watches: events in order, from a version on, until the end.

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::world::{World, config_map, gauge, pod, text, version};

pub async fn changes_arrive_in_order_from_a_version_on(client: Client) {
    let world = World::with_gauges(client).await;
    let before = world.post("gauges", &gauge("before")).await.good();
    let mut events = world.watch("gauges", &format!("resourceVersion={}", version(&before))).await;
    let made = world.post("gauges", &gauge("a")).await.good();
    assert_eq!(events.expect("ADDED").await, made);
    let patch = json!({"spec": {"paused": true}});
    let patched = world.merge("gauges", "a", &patch).await.good();
    world.merge("gauges", "a", &patch).await.good();
    assert_eq!(events.expect("MODIFIED").await, patched);
    let status = json!({"status": {"phase": "x"}});
    let patched = world.merge("gauges", "a/status", &status).await.good();
    assert_eq!(events.expect("MODIFIED").await, patched, "a patch without effect is no event");
    world.delete("gauges", "a", &Value::Null).await.good();
    let last = events.expect("DELETED").await;
    assert_eq!(last["status"], patched["status"]);
    assert!(version(&last) > version(&patched));
    // The same events again, from an earlier version.
    let mut again = world.watch("gauges", &format!("resourceVersion={}", version(&before))).await;
    for kind in ["ADDED", "MODIFIED", "MODIFIED", "DELETED"] {
        again.expect(kind).await;
    }
}

pub async fn a_watch_without_a_version_begins_with_what_exists(client: Client) {
    let world = World::with_gauges(client).await;
    let a = world.post("gauges", &gauge("a")).await.good();
    let b = world.post("gauges", &gauge("b")).await.good();
    for query in ["", "resourceVersion=0"] {
        let mut events = world.watch("gauges", query).await;
        let mut seen = [events.expect("ADDED").await, events.expect("ADDED").await];
        seen.sort_by_key(version);
        assert_eq!(seen, [a.clone(), b.clone()]);
        let name = format!("c{}", query.len());
        let made = world.post("gauges", &gauge(&name)).await.good();
        assert_eq!(events.expect("ADDED").await, made);
        world.delete("gauges", &name, &Value::Null).await.good();
        events.expect("DELETED").await;
    }
}

pub async fn an_object_enters_and_leaves_a_selection(client: Client) {
    let world = World::new(client).await;
    let made = world.post("configmaps", &config_map("a", json!({"k": "1"}))).await.good();
    let query = format!("labelSelector=in%3Dyes&resourceVersion={}", version(&made));
    let mut events = world.watch("configmaps", &query).await;
    let label = |value: &str| json!({"metadata": {"labels": {"in": value}}});
    world.merge("configmaps", "a", &label("no")).await.good();
    let entered = world.merge("configmaps", "a", &label("yes")).await.good();
    assert_eq!(events.expect("ADDED").await, entered);
    world.merge("configmaps", "a", &json!({"data": {"k": "2"}})).await.good();
    events.expect("MODIFIED").await;
    let left = world.merge("configmaps", "a", &label("no")).await.good();
    let gone = events.expect("DELETED").await;
    assert_eq!(version(&gone), version(&left));
    assert_eq!(gone["metadata"]["labels"]["in"], "yes", "as it was when it last matched");
    world.delete("configmaps", "a", &Value::Null).await.good();
    let mut other = config_map("b", json!({}));
    other["metadata"]["labels"] = json!({"in": "yes"});
    world.post("configmaps", &other).await.good();
    assert_eq!(events.expect("ADDED").await["metadata"]["name"], "b");

    let query = format!("fieldSelector=metadata.name%3Dc&resourceVersion={}", version(&left));
    let mut events = world.watch("configmaps", &query).await;
    world.post("configmaps", &config_map("d", json!({}))).await.good();
    world.post("configmaps", &config_map("c", json!({}))).await.good();
    assert_eq!(events.expect("ADDED").await["metadata"]["name"], "c");
}

/// `forget` makes the server forget earlier versions, and returns a client of the server after
/// that.
pub async fn forgotten_versions_are_expired(client: Client, forget: impl AsyncFnOnce() -> Client) {
    let mut world = World::with_gauges(client).await;
    for name in ["a", "b", "c"] {
        world.post("gauges", &gauge(name)).await.good();
    }
    let page = world.read("gauges", "?limit=1").await;
    let (past, token) = (version(&page), text(&page["metadata"]["continue"]));
    world.post("gauges", &gauge("d")).await.good();
    world.watch("gauges", &format!("resourceVersion={past}")).await.expect("ADDED").await;
    world.client = forget().await;
    world.declare().await;

    let mut events = world.watch("gauges", &format!("resourceVersion={past}")).await;
    let status = events.expect("ERROR").await;
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")), "{status}");
    let message = text(&status["message"]);
    assert!(message.starts_with(&format!("too old resource version: {past} (")), "{message}");
    assert!(events.next().await.is_none());
    let query = format!("?resourceVersionMatch=Exact&resourceVersion={past}");
    world.get(&world.path("gauges", &query)).await.refused(410, "Expired");
    let query = format!("?limit=1&continue={token}");
    let refused = world.get(&world.path("gauges", &query)).await.refused(410, "Expired");
    let message = text(&refused["message"]);
    assert!(message.starts_with("The provided continue parameter is too old"), "{message}");
    let list = world.read("gauges", "").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 4);
    let mut events = world.watch("gauges", &format!("resourceVersion={}", version(&list))).await;
    world.post("gauges", &gauge("e")).await.good();
    assert_eq!(events.expect("ADDED").await["metadata"]["name"], "e");
}

pub async fn bookmarks_come_before_the_end(client: Client) {
    let world = World::new(client).await;
    let made = world.post("pods", &pod("a")).await.good();
    let version_ = version(&made);
    let query = format!("resourceVersion={version_}&allowWatchBookmarks=true&timeoutSeconds=10");
    let mut marks = 0;
    // It is due one to three seconds before the end, which a busy machine may miss.
    for _ in 0..6 {
        let mut events = world.watch("pods", &query).await;
        while let Some((kind, mark)) = events.next().await {
            assert_eq!(kind, "BOOKMARK", "nothing happened");
            assert!(version(&mark) >= version_);
            assert_eq!((&mark["kind"], &mark["apiVersion"]), (&json!("Pod"), &json!("v1")));
            marks += 1;
        }
        if marks > 0 {
            break;
        }
    }
    assert!(marks > 0, "no bookmark");
    let query = format!("resourceVersion={version_}&timeoutSeconds=1");
    let mut events = world.watch("pods", &query).await;
    assert!(events.next().await.is_none(), "no bookmarks where none were asked for");
}

pub async fn initial_events_end_with_a_bookmark(client: Client) {
    let world = World::new(client).await;
    let made = world.post("pods", &pod("a")).await.good();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = world.watch("pods", query).await;
    assert_eq!(events.expect("ADDED").await["metadata"]["uid"], made["metadata"]["uid"]);
    let mark = events.expect("BOOKMARK").await;
    assert_eq!(mark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert!(version(&mark) >= version(&made));
}

pub async fn metadata_alone_can_be_watched(client: Client) {
    let world = World::new(client).await;
    let made = world.post("pods", &pod("a")).await.good();
    let query = format!("resourceVersion={}", version(&made));
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut events = world.watch_as("pods", &query, accept).await;
    let patch = json!({"metadata": {"annotations": {"a": "b"}}});
    let patched = world.merge("pods", "a", &patch).await.good();
    let seen = events.expect("MODIFIED").await;
    assert_eq!(seen["kind"], "PartialObjectMetadata");
    assert_eq!(seen["metadata"], patched["metadata"]);
    assert_eq!(seen["spec"], Value::Null);
}

pub async fn the_watcher_of_kube_follows(client: Client) {
    let world = World::new(client).await;
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    world.post("configmaps", &config_map("a", json!({}))).await.good();
    let only = watcher::Config::default().fields("metadata.name!=kube-root-ca.crt");
    for config in [only.clone(), only.streaming_lists()] {
        let mut seen = watcher(api.clone(), config).default_backoff().applied_objects().boxed();
        let mut next = async || {
            let limit = std::time::Duration::from_secs(60);
            let next = tokio::time::timeout(limit, seen.next()).await;
            next.expect("in time").expect("not the end").unwrap()
        };
        assert_eq!(next().await.name_any(), "a");
        let count = text(&world.read("configmaps", "a").await["metadata"]["resourceVersion"]);
        let patch = json!({"data": {"count": count}});
        world.merge("configmaps", "a", &patch).await.good();
        assert_eq!(next().await.data.unwrap_or_default()["count"], count);
    }
}
