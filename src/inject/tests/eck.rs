//! Pods as ECK makes them of what is written here: whether the kubelet starts them, and PodSecurity `restricted`
//! accepts them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::manifests::manifest;
use crate::{Options, inject, uninject};

/// The pods of each node set, with the fields that ECK adds about users: `securitycontext.For` in
/// pkg/controller/elasticsearch/securitycontext of github.com/elastic/cloud-on-k8s, which a container with a
/// `securityContext` of its own does not get.
fn pods(text: &str) -> Vec<Value> {
    let object = crate::yaml::one(text).unwrap().value();
    let mut version = object["spec"]["version"].as_str().unwrap().split('.');
    let mut number = || version.next().unwrap().parse::<u32>().unwrap();
    let mut default = json!({
        "capabilities": {"drop": ["ALL"]}, "privileged": false, "allowPrivilegeEscalation": false,
    });
    if (number(), number()) >= (8, 8) {
        default["runAsNonRoot"] = json!(true);
    }
    let sets = object["spec"]["nodeSets"].as_array().unwrap().iter();
    sets.map(|set| {
        let mut pod = set["podTemplate"]["spec"].clone();
        for list in ["containers", "initContainers"] {
            for container in pod[list].as_array_mut().unwrap() {
                if container["securityContext"].is_null() {
                    container["securityContext"] = default.clone();
                }
            }
        }
        pod
    })
    .collect()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["containers", "initContainers"].into_iter();
    lists.flat_map(|list| pod[list].as_array().into_iter().flatten())
}

/// The container's own field, else that of its pod.
fn security<'a>(pod: &'a Value, container: &'a Value, field: &str) -> &'a Value {
    let own = &container["securityContext"][field];
    if own.is_null() { &pod["securityContext"][field] } else { own }
}

/// Whether the kubelet starts a container: one that may not be root needs a user, from the manifest or the image.
fn is_started(pod: &Value, container: &Value) -> bool {
    let is_image_of_root =
        container["image"].as_str().is_some_and(|image| image.contains("/manager:"));
    let user = security(pod, container, "runAsUser");
    security(pod, container, "runAsNonRoot") != true
        || if user.is_null() { !is_image_of_root } else { user != 0 }
}

fn example() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = fs::read_to_string(root.join("docker/manager.Dockerfile")).unwrap();
    assert!(!image.contains("\nUSER"), "the manager's image has no user: {image}");
    fs::read_to_string(root.join("examples/kubernetes/eck.yaml")).unwrap()
}

fn injected(name: &str, options: &Options) -> String {
    let text = manifest(name);
    let injected = inject(&text, options).unwrap().text;
    assert_eq!(uninject(&injected).unwrap().text, text);
    injected
}

#[test] // proves MANIFEST-16
fn its_pods_start() {
    let none = Options::default();
    for text in [example(), injected("eck.yaml", &none), injected("eck-7.yaml", &none)] {
        for pod in pods(&text) {
            for container in containers(&pod) {
                assert!(is_started(&pod, container), "{container:#}");
            }
        }
    }
}

/// Where ECK says for each of its containers that it is not root, those that are added say it, too.
#[test] // proves MANIFEST-16
fn no_container_may_be_root_where_none_of_ecks_may() {
    for text in [example(), injected("eck.yaml", &Options::default())] {
        for pod in pods(&text) {
            for container in containers(&pod) {
                assert_eq!(security(&pod, container, "runAsNonRoot"), true, "{container:#}");
                assert_eq!(security(&pod, container, "allowPrivilegeEscalation"), false);
                let capabilities = security(&pod, container, "capabilities");
                assert_eq!(capabilities["drop"], json!(["ALL"]), "{container:#}");
            }
        }
    }
    // Before 8.8 it does not, and the image of the engine has no user by number.
    let old = pods(&injected("eck-7.yaml", &Options::default()));
    let init = &old[0]["initContainers"][0]["securityContext"];
    assert_eq!((&init["runAsNonRoot"], &init["runAsUser"]), (&Value::Null, &Value::Null));
}

/// The engine's container gets nothing from ECK then.
#[test] // proves MANIFEST-16
fn a_security_context_of_the_engine_is_taken_as_it_is() {
    let own = "        - name: elasticsearch\n          securityContext: {runAsUser: 2000}\n";
    let text = manifest("eck.yaml").replace("        - name: elasticsearch\n", own);
    let text = inject(&text, &Options::default()).unwrap().text;
    let init = &pods(&text)[1]["initContainers"][0]["securityContext"];
    assert_eq!((&init["runAsNonRoot"], &init["runAsUser"]), (&Value::Null, &json!(2000)));
    let assigned = Options { assigned_user: true, ..Options::default() };
    let init = &pods(&injected("eck.yaml", &assigned))[0]["initContainers"][0]["securityContext"];
    assert_eq!((&init["runAsNonRoot"], &init["runAsUser"]), (&json!(true), &Value::Null));
}
