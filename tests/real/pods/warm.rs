//! `kubectl stayput inject --warm`: a real pod makes the archive before its engine's first start, and
//! each of its engines uses it.

use serde_json::{Value, json};

use super::bare::keys;
use super::fixture::{Fixture, HOME};
use super::nodes::until_ready;
use super::official;
use super::opensearch::Parts;
use crate::support::engine::Kind;
use crate::support::wait::eventually;

const POD: &str = "logs-0";
const ANOTHER_IMAGE: &str = "stayput.test/opensearchproject/opensearch:2.19.4";

#[test] // proves STOP-25, UPDATE-56
fn a_pod_makes_the_archive_and_its_engines_use_it() {
    const TEST: &str = "pods::warm::a_pod_makes_the_archive_and_its_engines_use_it";
    let Some((parts, fixture)) = Parts::lay(TEST, Kind::OpenSearch, "privileged") else { return };
    keys(&fixture);
    official::load(&fixture, &parts, official::IMAGE);
    let config = "cluster.name: logs\nnode.name: ${NODE_NAME}\nnetwork.host: 0.0.0.0\n\
                  cluster.initial_cluster_manager_nodes: logs-0\nnode.store.allow_mmap: false\n";
    fixture.secret("logs-config", &[("opensearch.yml", config)]);
    fixture.admin().apply(&injected(&fixture, &one_node(&parts)));
    until_ready(&fixture, &[POD]);

    let printed = fixture.run(&["logs", POD, "--container", "stayput-warm"]);
    assert!(printed.contains("jvm.options.d/warm.options names it"), "{printed}");
    assert!(is_used(&fixture), "by the first engine");
    fixture.run(&["exec", POD, "--", "/stayput/stayput", "restart"]);
    assert!(is_used(&fixture), "by the next one in the same pod");
    let log = fixture.run(&["logs", POD, "--container", "opensearch"]);
    assert!(!log.contains("does not use the archive of classes"), "{log}");

    // As a reconciler changes it in place: the kubelet makes the engine's container anew, and no other one.
    official::load(&fixture, &parts, ANOTHER_IMAGE);
    let before = pod(&fixture);
    let images =
        ["opensearch", "stayput-warm"].map(|name| json!({ "name": name, "image": ANOTHER_IMAGE }));
    let patch = json!({ "spec": { "containers": [images[0]], "initContainers": [images[1]] } });
    fixture.run(&["patch", "pod", POD, "--patch", &patch.to_string()]);
    let id = |pod: &Value, list: &str, at: usize| pod["status"][list][at]["containerID"].clone();
    let is_anew = |pod: &Value| {
        let status = &pod["status"]["containerStatuses"][0];
        status["ready"] == true && status["containerID"] != id(&before, "containerStatuses", 0)
    };
    let after =
        eventually("the engine's container is made anew", || Some(pod(&fixture)).filter(is_anew));
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    for at in 0..2 {
        assert_eq!(
            id(&after, "initContainerStatuses", at),
            id(&before, "initContainerStatuses", at)
        );
    }
    assert!(is_used(&fixture), "it has the same JVM and jars");
}

fn pod(fixture: &Fixture) -> Value {
    serde_json::from_str(&fixture.run(&["get", "pod", POD, "--output", "json"])).expect("JSON")
}

fn one_node(parts: &Parts) -> Value {
    let mut set = official::stateful_set(parts);
    set["spec"]["replicas"] = json!(1);
    let container = &mut set["spec"]["template"]["spec"]["containers"][0];
    container["readinessProbe"]["httpGet"]["path"] = json!("/_cluster/health");
    set
}

/// With the manager. What the official image has is mounted from the machine, here also into the
/// container that makes the archive.
fn injected(fixture: &Fixture, set: &Value) -> Value {
    let directory = tempfile::tempdir().expect("a temp dir");
    let path = directory.path().join("set.json");
    std::fs::write(&path, set.to_string()).expect("a file");
    let line = format!("kubectl stayput inject --warm '{}'", path.display());
    let mut set: Value = serde_json::from_str(&fixture.people.run(&line)).expect("JSON");
    let spec = &mut set["spec"]["template"]["spec"];
    let engine = spec["containers"][0].clone();
    let inits = spec["initContainers"].as_array_mut().expect("a list").iter_mut();
    let init = inits.into_iter().find(|init| init["name"] == "stayput-warm").expect("it is there");
    let add = |own: &mut Value, from: &Value, of_image: &dyn Fn(&Value) -> bool| {
        let of_image = from.as_array().expect("a list").iter().filter(|item| of_image(item));
        own.as_array_mut().expect("a list").extend(of_image.cloned());
    };
    add(&mut init["volumeMounts"], &engine["volumeMounts"], &|mount| {
        // The official image has this directory.
        mount["name"].as_str().expect("a name").starts_with("machine-")
            || mount["mountPath"] == "/tmp"
    });
    add(&mut init["env"], &engine["env"], &|variable| variable["name"] == "PATH");
    set
}

fn is_used(fixture: &Fixture) -> bool {
    let archive = format!("{HOME}/config/jvm.options.d/warm.jsa");
    let look = format!("cat /proc/[0-9]*/maps | grep -q {archive} && echo mapped || echo without");
    let printed =
        fixture.run(&["exec", POD, "--container", "opensearch", "--", "/bin/sh", "-c", &look]);
    printed.contains("mapped")
}
