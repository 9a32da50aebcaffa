//! PATCH in each format.

use kube::Client;
use serde_json::{Value, json};

use super::world::{GROUP, World, config_map, gauge, pod, version};

pub async fn a_merge_patch_sets_and_removes(client: Client) {
    let world = World::with_gauges(client).await;
    let mut object = gauge("a");
    object["metadata"]["annotations"] = json!({"stayput.dev/x": "1", "y": "2"});
    world.post("gauges", &object).await.good();
    let patch = json!({
        "metadata": {"annotations": {"stayput.dev/x": null, "z": "3"}},
        "spec": {"tags": ["a", "b"]},
    });
    let patched = world.merge("gauges", "a", &patch).await;
    assert_eq!(patched.code, 200);
    let patched = patched.good();
    assert_eq!(patched["metadata"]["annotations"], json!({"y": "2", "z": "3"}));
    assert_eq!(patched["spec"]["tags"], json!(["a", "b"]));
    let patched = world.merge("gauges", "a", &json!({"spec": {"tags": ["c"]}})).await.good();
    assert_eq!(patched["spec"]["tags"], json!(["c"]));
    assert_eq!(patched["spec"]["scale"]["unit"], "bar");
    let patched = world.merge("gauges", "a", &json!({"metadata": {"annotations": null}})).await;
    assert_eq!(patched.good()["metadata"]["annotations"], Value::Null);
}

pub async fn a_json_patch_tests_and_replaces(client: Client) {
    let world = World::with_gauges(client).await;
    for (plural, mut object) in [("pods", pod("a")), ("gauges", gauge("a"))] {
        object["metadata"]["annotations"] = json!({"stayput.dev/phase": "schedule"});
        let made = world.post(plural, &object).await.good();
        let patch = json!([
            {"op": "test", "path": "/metadata/annotations/stayput.dev~1phase", "value": "schedule"},
            {"op": "replace", "path": "/metadata/annotations/stayput.dev~1phase", "value": "stop"},
            {"op": "add", "path": "/metadata/annotations/more", "value": "yes"},
        ]);
        let patched = world.patch("json-patch", plural, "a", &patch).await.good();
        let annotations = json!({"stayput.dev/phase": "stop", "more": "yes"});
        assert_eq!(patched["metadata"]["annotations"], annotations);
        assert_eq!(patched["spec"], made["spec"]);

        let refused = world.patch("json-patch", plural, "a", &patch).await;
        refused.refused(422, "Invalid");
        let versions = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": version(&made).to_string()},
            {"op": "remove", "path": "/metadata/annotations/more"},
        ]);
        let refused = world.patch("json-patch", plural, "a", &versions).await;
        refused.refused(422, "Invalid");
        assert_eq!(world.read(plural, "a").await, patched);
    }
}

pub async fn a_json_patch_that_does_not_fit_changes_nothing(client: Client) {
    let world = World::new(client).await;
    let made = world.post("configmaps", &config_map("a", json!({"k": "v"}))).await.good();
    for (patch, code, reason) in [
        (json!([{"op": "fold", "path": "/data/k", "value": "x"}]), 422, "Invalid"),
        (json!([{"op": "remove", "path": "/data/none"}]), 422, "Invalid"),
        (json!([{"op": "add", "path": "/none/deep", "value": "x"}]), 422, "Invalid"),
        (json!([{"op": "test", "path": "/data/none", "value": "x"}]), 422, "Invalid"),
        (json!({"data": {}}), 400, "BadRequest"),
    ] {
        world.patch("json-patch", "configmaps", "a", &patch).await.refused(code, reason);
    }
    world.merge("configmaps", "a", &json!([])).await.refused(400, "BadRequest");
    assert_eq!(world.read("configmaps", "a").await, made);
}

pub async fn a_json_patch_on_a_missing_key_is_lenient(client: Client) {
    let world = World::new(client).await;
    world.post("configmaps", &config_map("a", json!({"k": "v"}))).await.good();
    let patch = json!([
        {"op": "test", "path": "/data/none", "value": null},
        {"op": "test", "path": "/metadata/annotations", "value": null},
        {"op": "replace", "path": "/data/none", "value": "x"},
    ]);
    let patched = world.patch("json-patch", "configmaps", "a", &patch).await.good();
    assert_eq!(patched["data"], json!({"k": "v", "none": "x"}));
    world.patch("json-patch", "configmaps", "a", &patch).await.refused(422, "Invalid");
    let deep = json!([{"op": "test", "path": "/metadata/annotations/none", "value": null}]);
    world.patch("json-patch", "configmaps", "a", &deep).await.refused(422, "Invalid");
}

pub async fn a_patch_of_another_format_is_refused(client: Client) {
    let world = World::with_gauges(client).await;
    world.post("configmaps", &config_map("a", json!({}))).await.good();
    world.post("gauges", &gauge("a")).await.good();
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let refused = world.patch("fancy", "configmaps", "a", &patch).await;
    refused.refused(415, "UnsupportedMediaType");
    let refused = world.patch("strategic-merge-patch", "gauges", "a", &patch).await;
    refused.refused(415, "UnsupportedMediaType");
}

pub async fn a_strategic_patch_merges_maps(client: Client) {
    let world = World::new(client).await;
    world.post("pods", &pod("a")).await.good();
    let patch = json!({"metadata": {"annotations": {"a": "b"}, "labels": {"app": null, "x": "y"}}});
    let patched = world.patch("strategic-merge-patch", "pods", "a", &patch).await.good();
    assert_eq!(patched["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(patched["metadata"]["labels"], json!({"x": "y"}));
}

pub async fn a_patch_with_a_stale_version_conflicts(client: Client) {
    let world = World::with_gauges(client).await;
    for (plural, object) in [("pods", pod("a")), ("gauges", gauge("a"))] {
        let stale = version(&world.post(plural, &object).await.good()).to_string();
        let merge = json!({"metadata": {"resourceVersion": stale, "annotations": {"n": "1"}}});
        let fresh = world.merge(plural, "a", &merge).await.good();
        let merge = json!({"metadata": {"resourceVersion": stale, "annotations": {"n": "2"}}});
        world.merge(plural, "a", &merge).await.refused(409, "Conflict");
        let patch = json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": stale},
            {"op": "replace", "path": "/metadata/annotations/n", "value": "3"},
        ]);
        world.patch("json-patch", plural, "a", &patch).await.refused(409, "Conflict");
        let status =
            json!({"metadata": {"resourceVersion": stale}, "status": {"phase": "Running"}});
        world.merge(plural, "a/status", &status).await.refused(409, "Conflict");
        assert_eq!(world.read(plural, "a").await, fresh);
    }
}

/// As the reconciler changes a ledger.
pub async fn a_json_patch_changes_items_of_lists_of_the_status(client: Client) {
    let world = World::with_gauges(client).await;
    world.post("gauges", &gauge("a")).await.good();
    let group = |since: &str, nodes: Value| json!({"since": since, "nodes": nodes});
    let groups =
        json!([group("1", json!({"x": "one"})), group("2", json!({"y": "two", "z/0": "three"})),]);
    let status = json!({"status": {"groups": groups}});
    let made = world.merge("gauges", "a/status", &status).await.good();
    let stale = made["metadata"]["resourceVersion"].clone();
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": made["metadata"]["uid"]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": stale},
        {"op": "test", "path": "/status/groups/0/since", "value": "1"},
        {"op": "remove", "path": "/status/groups/0"},
        {"op": "test", "path": "/status/groups/0/since", "value": "2"},
        {"op": "remove", "path": "/status/groups/0/nodes/z~10"},
        {"op": "add", "path": "/status/groups/1", "value": group("3", json!({"z/0": "three"}))},
        {"op": "add", "path": "/status/phase", "value": "Restarting"},
        {"op": "add", "path": "/spec/paused", "value": true},
    ]);
    let patched = world.patch("json-patch", "gauges", "a/status", &patch).await.good();
    let groups = json!([group("2", json!({"y": "two"})), group("3", json!({"z/0": "three"}))]);
    assert_eq!(patched["status"], json!({"groups": groups, "phase": "Restarting"}));
    assert_eq!(patched["spec"], made["spec"]);

    // Another version is a conflict. Another item is a refusal that names no object.
    let version = |value: &Value| json!({"op": "replace", "path": "/metadata/resourceVersion", "value": value});
    let set = json!({"op": "add", "path": "/status/phase", "value": "Other"});
    let patch = json!([version(&stale), set]);
    world.patch("json-patch", "gauges", "a/status", &patch).await.refused(409, "Conflict");
    let test = json!({"op": "test", "path": "/status/groups/0/since", "value": "1"});
    let none = json!({"op": "remove", "path": "/status/groups/0/nodes/none"});
    // It compares what is written, and writes `<` as `\u003c`.
    let escaped = json!({"op": "test", "path": "/status/groups/0/since", "value": "2 < 3"});
    let set_escaped =
        json!([{"op": "replace", "path": "/status/groups/0/since", "value": "2 < 3"}]);
    let patched = world.patch("json-patch", "gauges", "a/status", &set_escaped).await.good();
    assert_eq!(patched["status"]["groups"][0]["since"], "2 < 3");
    for wrong in [test, escaped, none] {
        let patch = json!([version(&patched["metadata"]["resourceVersion"]), set, wrong]);
        let refused = world.patch("json-patch", "gauges", "a/status", &patch).await;
        let refused = refused.refused(422, "Invalid");
        assert_eq!(refused["details"]["name"].as_str().unwrap_or_default(), "", "{refused}");
    }
    assert_eq!(world.read("gauges", "a/status").await, patched);
}

pub async fn a_forced_apply_creates_and_changes(client: Client) {
    let world = World::with_gauges(client).await;
    let query = "a?fieldManager=conformance&force=true";
    let made = world.patch("apply-patch", "gauges", query, &gauge("a")).await;
    assert_eq!(made.code, 201, "{made:?}");
    let mut changed = gauge("a");
    changed["spec"]["scale"]["unit"] = json!("psi");
    let applied = world.patch("apply-patch", "gauges", query, &changed).await;
    assert_eq!(applied.code, 200, "{applied:?}");
    let applied = applied.good();
    assert_eq!(applied["spec"]["scale"]["unit"], "psi");
    assert_eq!(applied["apiVersion"], format!("{GROUP}/v1"));
    let refused = world.patch("apply-patch", "gauges", "a", &changed).await;
    let refused = refused.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "fieldManager");
}
