//! Creating and reading objects.

use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::world::{World, config_map, gauge, text, version};

pub async fn the_server_fills_in_the_metadata(client: Client) {
    let world = World::new(client).await;
    let mut object = config_map("a", json!({"k": "v"}));
    object["metadata"]["uid"] = json!("mine");
    object["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    object["metadata"]["generation"] = json!(7);
    let made = world.post("configmaps", &object).await;
    assert_eq!(made.code, 201);
    assert_eq!(made.content_type, "application/json");
    let made = made.good();
    let metadata = &made["metadata"];
    assert_eq!(metadata["namespace"], world.namespace);
    assert_eq!(text(&metadata["uid"]).len(), 36);
    assert!(text(&metadata["creationTimestamp"]).ends_with('Z'));
    assert_ne!(metadata["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert!(version(&made) > 0);
    assert_eq!((&made["kind"], &made["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    assert_eq!(made["data"], json!({"k": "v"}));
    assert_eq!(world.read("configmaps", "a").await, made);
}

pub async fn a_name_is_taken_once(client: Client) {
    let world = World::with_gauges(client).await;
    world.post("configmaps", &config_map("a", json!({}))).await.good();
    let refused = world.post("configmaps", &config_map("a", json!({}))).await;
    let refused = refused.refused(409, "AlreadyExists");
    assert_eq!(refused["details"], json!({"name": "a", "kind": "configmaps"}));
    assert_eq!(refused["message"], "configmaps \"a\" already exists");

    let gauge = super::world::gauge("a");
    world.post("gauges", &gauge).await.good();
    let refused = world.post("gauges", &gauge).await.refused(409, "AlreadyExists");
    let group = super::world::GROUP;
    assert_eq!(refused["details"], json!({"name": "a", "group": group, "kind": "gauges"}));
    assert_eq!(refused["message"], format!("gauges.{group} \"a\" already exists"));
}

pub async fn what_does_not_exist_is_not_found(client: Client) {
    let world = World::with_gauges(client).await;
    for plural in ["configmaps", "pods", "gauges", "statefulsets", "leases"] {
        let path = world.path(plural, "nobody");
        let refused = world.get(&path).await.refused(404, "NotFound");
        assert_eq!(refused["details"]["name"], "nobody");
        assert_eq!(refused["details"]["kind"], plural);
        world.delete(plural, "nobody", &Value::Null).await.refused(404, "NotFound");
        world.merge(plural, "nobody", &json!({"data": {}})).await.refused(404, "NotFound");
    }
    let put = world.put("configmaps", "nobody", &config_map("nobody", json!({}))).await;
    let refused = put.refused(404, "NotFound");
    assert_eq!(refused["message"], "configmaps \"nobody\" not found");
    let elsewhere = "/api/v1/namespaces/nowhere/configmaps";
    let refused = world.send(Method::POST, elsewhere, &config_map("a", json!({}))).await;
    let refused = refused.refused(404, "NotFound");
    assert_eq!(refused["details"], json!({"name": "nowhere", "kind": "namespaces"}));
    let list = world.get(elsewhere).await.good();
    assert_eq!(list["items"], json!([]));
}

pub async fn a_name_is_made_up_from_a_prefix(client: Client) {
    let world = World::new(client).await;
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"},
    });
    let names = [
        world.post("configmaps", &object).await.good(),
        world.post("configmaps", &object).await.good(),
    ];
    let names = names.map(|made| text(&made["metadata"]["name"]));
    assert!(names.iter().all(|name| name.starts_with("made-") && name.len() == 10), "{names:?}");
    assert_ne!(names[0], names[1]);
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let refused = world.post("configmaps", &nameless).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "metadata.name");
    assert_eq!(refused["details"]["causes"][0]["reason"], "FieldValueRequired");
    assert_eq!(refused["details"]["kind"], "ConfigMap");
    let refused = world.post("configmaps", &config_map("Not_A_Name", json!({}))).await;
    let refused = refused.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["reason"], "FieldValueInvalid");
}

pub async fn names_and_namespaces_have_to_agree_with_the_path(client: Client) {
    let world = World::new(client).await;
    let made = world.post("configmaps", &config_map("a", json!({}))).await.good();
    let mut other = made.clone();
    other["metadata"]["name"] = json!("b");
    world.put("configmaps", "a", &other).await.refused(400, "BadRequest");
    world
        .merge("configmaps", "a", &json!({"metadata": {"name": "b"}}))
        .await
        .refused(400, "BadRequest");
    let mut other = made.clone();
    other["metadata"]["namespace"] = json!("default");
    world.put("configmaps", "a", &other).await.refused(400, "BadRequest");
    let mut other = config_map("c", json!({}));
    other["metadata"]["namespace"] = json!("default");
    world.post("configmaps", &other).await.refused(400, "BadRequest");
    assert_eq!(world.read("configmaps", "a").await, made);
}

pub async fn labels_have_a_grammar(client: Client) {
    let world = World::with_gauges(client).await;
    world.post("gauges", &gauge("a")).await.good();
    for (field, key, value) in [
        ("labels", "a", "b c"),
        ("labels", "a b", "c"),
        ("labels", "a/b/c", "d"),
        ("annotations", "a b", "c"),
    ] {
        let patch = json!({"metadata": {field: {key: value}}});
        let refused = world.merge("gauges", "a", &patch).await.refused(422, "Invalid");
        let cause = &refused["details"]["causes"][0];
        assert_eq!(cause["field"], format!("metadata.{field}"), "{key}: {value}");
        assert_eq!(cause["reason"], "FieldValueInvalid");
    }
    let patch = json!({"metadata": {
        "labels": {"example.org/Some_label.1": "Yes", "empty": ""},
        "annotations": {"Example.org/x": "any text: {\"id\": 1}"},
    }});
    world.merge("gauges", "a", &patch).await.good();
}

pub async fn bad_bodies_are_told_apart(client: Client) {
    let world = World::with_gauges(client).await;
    let path = world.path("configmaps", "");
    let json = [("content-type", "application/json")];
    let cut = world.ask(Method::POST, &path, &json, b"{\"a\":".to_vec()).await;
    cut.refused(400, "BadRequest");
    world.post("configmaps", &super::world::pod("a")).await.refused(400, "BadRequest");
    world.post("configmaps", &config_map("a", json!("text"))).await.refused(400, "BadRequest");
    world.post("gauges", &config_map("a", json!({}))).await.refused(400, "BadRequest");
    let csv = [("content-type", "text/csv")];
    let body = config_map("a", json!({})).to_string().into_bytes();
    let refused = world.ask(Method::POST, &path, &csv, body).await;
    refused.refused(415, "UnsupportedMediaType");
    let accept = [("accept", "text/csv")];
    let refused = world.ask(Method::GET, &path, &accept, Vec::new()).await;
    refused.refused(406, "NotAcceptable");
    let refused = world.send(Method::PUT, &path, &config_map("a", json!({}))).await;
    refused.refused(405, "MethodNotAllowed");
}

pub async fn a_dry_run_leaves_nothing(client: Client) {
    let world = World::new(client).await;
    let path = world.path("configmaps", "?dryRun=All");
    let made = world.send(Method::POST, &path, &config_map("a", json!({}))).await;
    assert_eq!(made.code, 201);
    assert_eq!(made.good()["metadata"]["name"], "a");
    world.get(&world.path("configmaps", "a")).await.refused(404, "NotFound");
    let made = world.post("configmaps", &config_map("a", json!({"k": "1"}))).await.good();
    let changed = json!({"data": {"k": "2"}});
    let shown = world.merge("configmaps", "a?dryRun=All", &changed).await.good();
    assert_eq!(shown["data"], changed["data"]);
    world.delete("configmaps", "a?dryRun=All", &Value::Null).await.good();
    assert_eq!(world.read("configmaps", "a").await, made);
}
