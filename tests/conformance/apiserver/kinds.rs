//! Special behaviour of the built-in kinds.

use kube::Client;
use serde_json::{Value, json};

use super::world::{World, pod, version};

/// A StatefulSet with three replicas.
pub(super) fn stateful_set(name: &str) -> Value {
    let pod = pod("");
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "serviceName": name,
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {"metadata": {"labels": {"app": "logs"}}, "spec": pod["spec"]},
        },
    })
}

pub async fn a_secret_takes_plain_text_and_shows_base64(client: Client) {
    let world = World::new(client).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
        "data": {"bytes": "AAEC"}, "stringData": {"text": "hello"},
    });
    let made = world.post("secrets", &secret).await.good();
    assert_eq!(made["data"], json!({"bytes": "AAEC", "text": "aGVsbG8="}));
    assert_eq!(made["stringData"], Value::Null);
    assert_eq!(made["type"], "Opaque");
    let patch = json!({"stringData": {"text": "bye"}, "data": {"bytes": null}});
    let patched = world.merge("secrets", "a", &patch).await.good();
    assert_eq!(patched["data"], json!({"text": "Ynll"}));
    let bad = json!({"data": {"bytes": "not base64!"}});
    let refused = world.merge("secrets", "a", &bad).await;
    assert!([400, 422].contains(&refused.code), "{refused:?}");
}

pub async fn an_immutable_config_map_stays(client: Client) {
    let world = World::new(client).await;
    let mut object = super::world::config_map("a", json!({"k": "v"}));
    object["immutable"] = json!(true);
    world.post("configmaps", &object).await.good();
    let refused = world.merge("configmaps", "a", &json!({"data": {"k": "w"}})).await;
    let refused = refused.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["reason"], "FieldValueForbidden");
    world.merge("configmaps", "a", &json!({"metadata": {"labels": {"a": "b"}}})).await.good();
}

pub async fn a_pod_gets_defaults_and_keeps_its_spec(client: Client) {
    let world = World::new(client).await;
    let made = world.post("pods", &pod("a")).await.good();
    assert_eq!(made["spec"]["restartPolicy"], "Always");
    assert_eq!(made["spec"]["terminationGracePeriodSeconds"], 30);
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    let label = json!({"metadata": {"labels": {"more": "yes"}}});
    let labelled = world.merge("pods", "a", &label).await.good();
    assert_eq!(labelled["spec"], made["spec"]);
    let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "engine:2"}]);
    world.patch("json-patch", "pods", "a", &image).await.good();
    let refused = world.merge("pods", "a", &json!({"spec": {"hostNetwork": true}})).await;
    refused.refused(422, "Invalid");
    let mut empty = pod("b");
    empty["spec"]["containers"] = json!([]);
    let refused = world.post("pods", &empty).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.containers");
    let odd = json!({"spec": {"containers": "none"}});
    let refused = world.merge("pods", "a", &odd).await;
    assert!([400, 422].contains(&refused.code), "{refused:?}");
}

pub async fn a_pod_gets_another_size_only_through_resize(client: Client) {
    let world = World::new(client).await;
    let mut object = pod("a");
    object["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "64Mi"}});
    world.post("pods", &object).await.good();
    let size = |seen: &str, wanted: &str| {
        let path = "/spec/containers/0/resources/requests/memory";
        json!([
            {"op": "test", "path": path, "value": seen},
            {"op": "replace", "path": path, "value": wanted},
        ])
    };
    let whole = world.patch("json-patch", "pods", "a", &size("64Mi", "96Mi")).await;
    whole.refused(422, "Invalid");
    // A `test` that does not hold names no object; what is invalid does.
    let late = world.patch("json-patch", "pods", "a/resize", &size("1Mi", "96Mi")).await;
    assert_eq!(late.code, 422, "{late:?}");
    assert_eq!(late.body["details"]["name"], Value::Null, "{late:?}");
    let resized = world.patch("json-patch", "pods", "a/resize", &size("64Mi", "96Mi")).await.good();
    assert_eq!(resized["spec"]["containers"][0]["resources"]["requests"]["memory"], "96Mi");
    assert_eq!(resized["metadata"]["generation"], 2);
}

pub async fn a_stateful_set_counts_its_generations(client: Client) {
    let world = World::new(client).await;
    let made = world.post("statefulsets", &stateful_set("a")).await.good();
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["status"]["replicas"], 0);
    let scaled = world.merge("statefulsets", "a", &json!({"spec": {"replicas": 2}})).await.good();
    assert_eq!(scaled["metadata"]["generation"], 2);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = world.merge("statefulsets", "a", &label).await.good();
    assert_eq!(labelled["metadata"]["generation"], 2);
    let status = json!({"status": {"replicas": 2, "observedGeneration": 2}});
    let patched = world.merge("statefulsets", "a/status", &status).await.good();
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(patched["spec"]["replicas"], 2);
}

pub async fn a_controller_revision_keeps_fields_that_nobody_knows(client: Client) {
    let world = World::new(client).await;
    let template = json!({"$patch": "replace", "spec": {"tomorrow": {"a": [1, "b"]}}});
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"},
        "revision": 1, "data": {"spec": {"template": template}},
    });
    let made = world.post("controllerrevisions", &revision).await.good();
    assert_eq!(made["data"]["spec"]["template"], template);
    assert!(made["metadata"]["generation"].is_null(), "{made:#}");
    let read = world.get(&world.path("controllerrevisions", "a")).await.good();
    assert_eq!(read["data"], revision["data"]);
}

pub async fn an_endpoint_slice_says_which_pods_are_ready(client: Client) {
    let world = World::new(client).await;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "a"},
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": true},
            "targetRef": {"kind": "Pod", "name": "a-0", "uid": "u-1"},
        }],
    });
    let made = world.post("endpointslices", &slice).await.good();
    assert_eq!(made["metadata"]["generation"], 1);
    let mut changed = made.clone();
    changed["endpoints"][0]["conditions"]["ready"] = json!(false);
    let changed = world.put("endpointslices", "a", &changed).await.good();
    assert_eq!(changed["metadata"]["generation"], 2);
    let listed = world.read("endpointslices", "").await;
    assert_eq!(listed["items"][0]["endpoints"], changed["endpoints"], "{listed}");
    assert_eq!(listed["items"][0]["endpoints"][0]["targetRef"]["uid"], "u-1");
}

pub async fn a_lease_is_taken_by_one_of_two(client: Client) {
    let world = World::new(client).await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {
            "holderIdentity": "one", "leaseDurationSeconds": 15,
            "renewTime": "2026-11-21T09:00:00.123456Z",
        },
    });
    let made = world.post("leases", &lease).await.good();
    assert_eq!(made["spec"]["renewTime"], "2026-11-21T09:00:00.123456Z");
    let mut first = made.clone();
    first["spec"]["holderIdentity"] = json!("two");
    let mut second = made.clone();
    second["spec"]["holderIdentity"] = json!("three");
    let answers = [world.put("leases", "a", &first).await, world.put("leases", "a", &second).await];
    let [taken, refused] = answers;
    assert!(version(&taken.good()) > version(&made));
    refused.refused(409, "Conflict");
    assert_eq!(world.read("leases", "a").await["spec"]["holderIdentity"], "two");
}
