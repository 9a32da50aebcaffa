//! Discovery.

use kube::Client;
use serde_json::{Value, json};

use super::world::{GROUP, World, text};

pub async fn groups_versions_and_kinds_are_listed(client: Client) {
    let world = World::new(client).await;
    let versions = world.get("/api").await.good();
    assert_eq!(versions["versions"], json!(["v1"]));
    let groups = world.get("/apis").await.good();
    assert_eq!(groups["kind"], "APIGroupList");
    let names: Vec<String> =
        groups["groups"].as_array().unwrap().iter().map(|group| text(&group["name"])).collect();
    for name in ["apps", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io"] {
        assert!(names.iter().any(|group| group == name), "{name} in {names:?}");
        let group = world.get(&format!("/apis/{name}")).await.good();
        assert_eq!(group["preferredVersion"]["groupVersion"], format!("{name}/v1"));
    }
    for (path, plural, kind, namespaced) in [
        ("/api/v1", "pods", "Pod", true),
        ("/api/v1", "pods/status", "Pod", true),
        ("/api/v1", "pods/resize", "Pod", true),
        ("/api/v1", "namespaces", "Namespace", false),
        ("/api/v1", "serviceaccounts/token", "TokenRequest", true),
        ("/apis/apps/v1", "statefulsets", "StatefulSet", true),
        ("/apis/apps/v1", "controllerrevisions", "ControllerRevision", true),
        ("/apis/coordination.k8s.io/v1", "leases", "Lease", true),
    ] {
        let list = world.get(path).await.good();
        let found = find(&list, plural).unwrap_or_else(|| panic!("{plural} in {path}"));
        assert_eq!((&found["kind"], &found["namespaced"]), (&json!(kind), &json!(namespaced)));
    }
    let version = world.get("/version").await.good();
    assert!(text(&version["gitVersion"]).starts_with("v1."));
    assert_eq!(world.get("/readyz").await.text, "ok");
}

fn find<'a>(list: &'a Value, plural: &str) -> Option<&'a Value> {
    list["resources"].as_array()?.iter().find(|resource| resource["name"] == plural)
}

pub async fn an_unknown_path_is_a_status_in_groups_that_are_built_in(client: Client) {
    let world = World::new(client).await;
    world.declare().await;
    let foreign = format!("/apis/{GROUP}/v1/things");
    for path in ["/apis/nobody.example/v1/things", &foreign, "/nonsense"] {
        let answer = world.get(path).await;
        assert_eq!((answer.code, answer.text.trim()), (404, "404 page not found"), "{path}");
    }
    for path in ["/apis/apps/v1/things", "/apis/apps/v2/things", "/api/v1/things"] {
        let refused = world.get(path).await.refused(404, "NotFound");
        assert_eq!(refused["message"], "the server could not find the requested resource");
    }
}

pub async fn a_new_kind_is_established_and_listed(client: Client) {
    let world = World::with_gauges(client).await;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gauges.{GROUP}");
    let definition = world
        .until("it is established", async || {
            let definition = world.get(&path).await.good();
            let conditions = definition["status"]["conditions"].as_array().cloned();
            let holds = conditions.into_iter().flatten().any(|condition| {
                condition["type"] == "Established" && condition["status"] == "True"
            });
            holds.then_some(definition)
        })
        .await;
    assert_eq!(definition["status"]["acceptedNames"]["kind"], "Gauge");
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    let list = world
        .until("it is discovered", async || {
            let list = world.get(&format!("/apis/{GROUP}/v1")).await;
            (list.code == 200).then_some(list.body)
        })
        .await;
    let found = find(&list, "gauges").expect("the kind");
    assert_eq!((&found["kind"], &found["singularName"]), (&json!("Gauge"), &json!("gauge")));
    assert_eq!(found["shortNames"], json!(["gg"]));
    assert!(find(&list, "gauges/status").is_some());
    let path = format!("/openapi/v3/apis/{GROUP}/v1");
    let schema = world
        .until("its schema is published", async || {
            let document = world.get(&path).await;
            let schemas = document.body["components"]["schemas"].as_object()?;
            let is_it =
                |schema: &&Value| schema["x-kubernetes-group-version-kind"][0]["kind"] == "Gauge";
            schemas.values().find(is_it).cloned()
        })
        .await;
    let written = &super::schema::definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for part in ["spec", "status"] {
        let names = |schema: &Value| {
            let fields = schema["properties"][part]["properties"].as_object().cloned();
            fields.expect("fields").into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&schema), names(written), "{part}");
    }
    let mut other = super::schema::definition();
    other["metadata"]["name"] = json!("others.example.org");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let refused = world.send(http::Method::POST, definitions, &other).await;
    refused.refused(422, "Invalid");
}
