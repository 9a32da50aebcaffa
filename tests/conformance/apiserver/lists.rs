//! Lists: order, selection, pages, versions.

use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::world::{World, config_map, gauge, pod, text, version};

async fn with_maps(client: Client, names: &[&str]) -> World {
    let world = World::new(client).await;
    for name in names {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"mine": "yes", "name": name});
        world.post("configmaps", &object).await.good();
    }
    world
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| text(&item["metadata"]["name"])).collect()
}

pub async fn items_come_in_order_with_a_version(client: Client) {
    let world = with_maps(client, &["b", "c", "a"]).await;
    let list = world.read("configmaps", "?labelSelector=mine").await;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!(names(&list), ["a", "b", "c"]);
    let newest = list["items"].as_array().unwrap().iter().map(version).max().unwrap();
    assert!(version(&list) >= newest);
    assert_eq!(list["items"][0]["kind"], Value::Null, "the list has the kind");
    let cached = world.read("configmaps", "?labelSelector=mine&resourceVersion=0").await;
    assert_eq!(names(&cached), ["a", "b", "c"]);
    let path = format!("?labelSelector=mine&resourceVersion={newest}");
    assert_eq!(names(&world.read("configmaps", &path).await), ["a", "b", "c"]);

    world.declare().await;
    world.post("gauges", &gauge("a")).await.good();
    let list = world.read("gauges", "").await;
    assert_eq!(list["kind"], "GaugeList");
    assert_eq!(list["items"][0]["kind"], "Gauge");
    let everywhere = world.get("/api/v1/configmaps?labelSelector=mine").await.good();
    assert!(names(&everywhere).len() >= 3);
}

pub async fn labels_select(client: Client) {
    let world = with_maps(client, &["a", "b", "c"]).await;
    for (selector, expected) in [
        ("name=a", &["a"][..]),
        ("name==a", &["a"]),
        ("mine,name!=a", &["b", "c"]),
        ("name in (a, c)", &["a", "c"]),
        ("name notin (a, c),mine=yes", &["b"]),
        ("mine=no", &[]),
        ("name,!mine", &[]),
        ("mine=yes,name=b", &["b"]),
    ] {
        let query = encode(selector);
        let list = world.read("configmaps", &format!("?labelSelector={query}")).await;
        assert_eq!(names(&list), expected, "{selector}");
    }
    let refused = world.get(&world.path("configmaps", "?labelSelector=name+in+a")).await;
    refused.refused(400, "BadRequest");
}

/// Encoded for a query.
fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

pub async fn fields_select(client: Client) {
    let world = with_maps(client, &["a", "b"]).await;
    let list = world.read("configmaps", "?fieldSelector=metadata.name%3Db").await;
    assert_eq!(names(&list), ["b"]);
    let list =
        world.read("configmaps", "?fieldSelector=metadata.name!%3Db&labelSelector=mine").await;
    assert_eq!(names(&list), ["a"]);
    let mut bound = pod("bound");
    bound["spec"]["nodeName"] = json!("node-1");
    world.post("pods", &bound).await.good();
    world.post("pods", &pod("free")).await.good();
    for (selector, expected) in [
        ("spec.nodeName=node-1", "bound"),
        ("spec.nodeName!=node-1", "free"),
        ("status.phase=Pending,metadata.name=free", "free"),
    ] {
        let list = world.read("pods", &format!("?fieldSelector={}", encode(selector))).await;
        assert_eq!(names(&list), [expected], "{selector}");
    }
    let refused = world.get(&world.path("pods", "?fieldSelector=spec.colour%3Dred")).await;
    refused.refused(400, "BadRequest");
    world.declare().await;
    world.post("gauges", &gauge("a")).await.good();
    let list = world.read("gauges", "?fieldSelector=metadata.name%3Da").await;
    assert_eq!(names(&list), ["a"]);
    let refused = world.get(&world.path("gauges", "?fieldSelector=spec.paused%3Dtrue")).await;
    refused.refused(400, "BadRequest");
}

pub async fn pages_are_of_one_version(client: Client) {
    let world = with_maps(client, &["a", "b", "c", "d", "e"]).await;
    let first =
        world.read("configmaps", "?limit=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt").await;
    assert_eq!(names(&first), ["a", "b"]);
    let token = text(&first["metadata"]["continue"]);
    world.delete("configmaps", "d", &Value::Null).await.good();
    world.post("configmaps", &config_map("cc", json!({}))).await.good();
    let query = format!(
        "?limit=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt&continue={}",
        encode(&token)
    );
    let second = world.read("configmaps", &query).await;
    assert_eq!(names(&second), ["c", "d"], "as it was when the first page was read");
    assert_eq!(version(&second), version(&first));
    let token = text(&second["metadata"]["continue"]);
    let query = format!(
        "?limit=2&fieldSelector=metadata.name!%3Dkube-root-ca.crt&continue={}",
        encode(&token)
    );
    let third = world.read("configmaps", &query).await;
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"]["continue"].as_str().unwrap_or_default().is_empty());
    let refused = world.get(&world.path("configmaps", "?limit=2&continue=nonsense")).await;
    refused.refused(400, "BadRequest");
}

pub async fn versions_that_are_gone_or_not_there_yet_are_refused(client: Client) {
    let world = with_maps(client, &["a"]).await;
    let now = version(&world.read("configmaps", "").await);
    world.post("configmaps", &config_map("b", json!({}))).await.good();
    let query = format!("?labelSelector=mine&resourceVersionMatch=Exact&resourceVersion={now}");
    assert_eq!(names(&world.read("configmaps", &query).await), ["a"]);
    let query = format!("?resourceVersion={}", now + 1_000_000);
    let refused = world.get(&world.path("configmaps", &query)).await.refused(504, "Timeout");
    assert_eq!(refused["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

pub async fn options_have_to_go_together(client: Client) {
    let world = World::new(client).await;
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Odd&resourceVersion=1",
        "watch=true&resourceVersionMatch=Exact",
        "watch=true&sendInitialEvents=true",
    ] {
        let refused = world.get(&world.path("configmaps", &format!("?{query}"))).await;
        let refused = refused.refused(422, "Invalid");
        assert_eq!(refused["details"]["kind"], "ListOptions");
        assert_eq!(refused["details"]["causes"][0]["field"], "resourceVersionMatch", "{query}");
    }
}

pub async fn metadata_alone_can_be_asked_for(client: Client) {
    let world = World::new(client).await;
    let made = world.post("pods", &pod("a")).await.good();
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let path = world.path("pods", "a");
    let found = world.ask(Method::GET, &path, &[("accept", one)], Vec::new()).await.good();
    assert_eq!(found["kind"], "PartialObjectMetadata");
    assert_eq!(found["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(found["metadata"], made["metadata"]);
    assert_eq!((&found["spec"], &found["status"]), (&Value::Null, &Value::Null));
    let all = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let path = world.path("pods", "");
    let found = world.ask(Method::GET, &path, &[("accept", all)], Vec::new()).await.good();
    assert_eq!(found["kind"], "PartialObjectMetadataList");
    assert_eq!(found["items"][0]["metadata"], made["metadata"]);
    assert_eq!(found["items"][0]["spec"], Value::Null);
    assert!(version(&found) >= version(&made));
}
