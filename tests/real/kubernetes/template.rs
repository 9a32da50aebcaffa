//! The fields of a pod template, and which of them a living pod can be given, as a real apiserver
//! has it: against the table that says what a change of each asks for.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stayput_pod_update::{Abilities, Content, Declaration, UpdateStep, compare};

use crate::support::kubernetes::apiserver::ApiServer;
use crate::support::skip;

const FIELDS: &str = include_str!("../../../src/pod-update/tests/kubernetes-1.34.txt");

#[test] // proves UPDATE-58
fn every_field_is_known_and_goes_the_way_that_the_apiserver_leaves() {
    let server = match ApiServer::start() {
        Ok(server) => server,
        Err(why) => {
            let test = "kubernetes::template::\
                        every_field_is_known_and_goes_the_way_that_the_apiserver_leaves";
            return skip(test, &why);
        }
    };
    let served = served(&server);
    let known: BTreeSet<String> = FIELDS.lines().map(str::to_owned).collect();
    assert_eq!(served.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "not known");
    assert_eq!(known.difference(&served).collect::<Vec<_>>(), Vec::<&String>::new(), "not served");

    server.admin().run(&["create", "serviceaccount", "default"]);
    for (number, (change, resized)) in changes().into_iter().enumerate() {
        let actual = template();
        let mut wanted = template();
        let operations = change.as_array().expect("a JSON patch");
        for operation in operations {
            apply(&mut wanted, operation);
        }
        let content = Content::default();
        let of = |template| Declaration { template, content: &content };
        let abilities = Abilities { resize: true };
        let update = compare(of(&wanted), of(&actual), "engine", abilities);

        let name = format!("pod-{number}");
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
        pod["metadata"]["labels"] = actual["metadata"]["labels"].clone();
        pod["spec"] = actual["spec"].clone();
        server.admin().apply(&pod);
        let change = change.to_string();
        let mut patch = vec!["patch", "pod", &name, "--type=json", "--patch", &change];
        if resized {
            patch.extend(["--subresource", "resize"]);
        }
        let answer = server.admin().attempt(&patch, "");
        let possible = match update.step {
            UpdateStep::Relabel
            | UpdateStep::Restart
            | UpdateStep::Container
            | UpdateStep::Resize => true,
            UpdateStep::None | UpdateStep::Replace | UpdateStep::Move => false,
        };
        assert_eq!(answer.is_ok(), possible, "{change}: {update:?}\n{answer:?}");
        assert_eq!(update.step == UpdateStep::Resize, resized && possible, "{change}: {update:?}");
    }
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "logs"}},
        "spec": {
            "containers": [
                {
                    "name": "engine",
                    "image": "engine:1",
                    "env": [{"name": "A", "value": "a"}],
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "1Gi"},
                        "limits": {"memory": "2Gi"},
                    },
                },
                {"name": "exporter", "image": "exporter:1"},
            ],
            "initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}],
            "tolerations": [{"key": "disk", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 30,
        },
    })
}

/// Patches of a pod, and whether they go to `pods/resize`.
fn changes() -> Vec<(Value, bool)> {
    let engine = "/spec/containers/0";
    let limits = format!("{engine}/resources/limits");
    let change =
        |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
    let whole = json!({"cpu": "1", "memory": "2Gi"});
    vec![
        (change("add", "/metadata/labels/team", json!("a")), false),
        (change("add", "/metadata/annotations", json!({"a": "b"})), false),
        (change("replace", &format!("{engine}/image"), json!("engine:2")), false),
        (change("replace", "/spec/containers/1/image", json!("exporter:2")), false),
        (change("replace", "/spec/initContainers/0/image", json!("proxy:2")), false),
        (change("add", "/spec/tolerations/0", json!({"key": "zone", "operator": "Exists"})), false),
        (change("replace", "/spec/tolerations/0/key", json!("other")), false),
        (change("replace", &format!("{engine}/env/0/value"), json!("b")), false),
        (change("add", &format!("{engine}/args"), json!(["b"])), false),
        (change("add", &format!("{engine}/imagePullPolicy"), json!("Never")), false),
        (change("add", "/spec/affinity", json!({"podAntiAffinity": {}})), false),
        (change("add", "/spec/nodeSelector", json!({"a": "b"})), false),
        (change("replace", "/spec/terminationGracePeriodSeconds", json!(31)), false),
        (change("add", "/spec/hostNetwork", json!(true)), false),
        (change("add", "/spec/volumes", json!([{"name": "v", "emptyDir": {}}])), false),
        (change("replace", &format!("{limits}/memory"), json!("4Gi")), true),
        (change("add", &format!("{limits}/cpu"), json!("2")), true),
        (json!([{"op": "remove", "path": format!("{limits}/memory")}]), true),
        (change("add", &format!("{limits}/ephemeral-storage"), json!("1Gi")), true),
        (change("add", "/spec/initContainers/0/resources", json!({"limits": {"cpu": "1"}})), true),
        (
            // All equal and given: guaranteed, which the pod was not.
            json!([
                {"op": "replace", "path": format!("{engine}/resources"), "value": {"limits": whole, "requests": whole}},
                {"op": "add", "path": "/spec/containers/1/resources", "value": {"limits": whole, "requests": whole}},
                {"op": "add", "path": "/spec/initContainers/0/resources", "value": {"limits": whole, "requests": whole}},
            ]),
            true,
        ),
    ]
}

/// One operation of a JSON patch.
fn apply(object: &mut Value, operation: &Value) {
    let path = operation["path"].as_str().expect("a path");
    let (parent, last) = path.rsplit_once('/').expect("a slash");
    let parent = object.pointer_mut(parent).expect("there");
    match (operation["op"].as_str(), parent) {
        (Some("remove"), Value::Object(fields)) => {
            fields.remove(last);
        }
        (Some("add"), Value::Array(list)) => {
            list.insert(last.parse().expect("a number"), operation["value"].clone());
        }
        (_, parent) => parent[last] = operation["value"].clone(),
    }
}

/// Every field of a pod template that the apiserver serves: `[]` after a list, `{}` after a map.
fn served(server: &ApiServer) -> BTreeSet<String> {
    let document = server.raw("/openapi/v3/apis/apps/v1");
    let schemas = &document["components"]["schemas"];
    let mut found = BTreeSet::new();
    descend(schemas, &schemas["io.k8s.api.core.v1.PodTemplateSpec"], "", &mut found);
    found
}

fn descend(schemas: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str().or(schema["allOf"][0]["$ref"].as_str()) {
        let name = reference.rsplit('/').next().expect("a name");
        return descend(schemas, &schemas[name], path, found);
    }
    if schema["items"].is_object() {
        return descend(schemas, &schema["items"], &format!("{path}[]"), found);
    }
    if let Some(fields) = schema["properties"].as_object() {
        for (name, field) in fields {
            let dot = if path.is_empty() { "" } else { "." };
            descend(schemas, field, &format!("{path}{dot}{name}"), found);
        }
        return;
    }
    let map = if schema["additionalProperties"].is_object() { "{}" } else { "" };
    found.insert(format!("{path}{map}"));
}
