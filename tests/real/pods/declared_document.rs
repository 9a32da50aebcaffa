//! `docs/declared.md`, exactly as written: from an empty namespace to three real OpenSearch nodes, a
//! changed config, another version of the engine, one node more, and one less.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use super::document::Document;
use super::fixture::{Fixture, HOME};
use super::nodes::{Node, attribute, observe_all};
use super::official::variables;
use super::releases::Releases;
use super::seen::{Seen, seen};
use super::stateful_set::volumes;
use crate::support::http::exchange;
use crate::support::skip;

const TEST: &str = "pods::declared_document::from_an_empty_namespace_word_for_word";
/// The document's sections with blocks. All of them are run below.
const SECTIONS: [&str; 6] = [
    "Reconciler and rights",
    "A cluster",
    "Change it",
    "Another version",
    "One node more",
    "One node less",
];
/// Documents that are written before the other version.
const DOCUMENTS: usize = 10;
/// What the document applies.
const EXAMPLE: &str = "examples/kubernetes/declared-laptop.yaml";
/// Where the init container has put the program.
const STAYPUT: &str = "/stayput/stayput";
/// Of the engine as the reconciler names it, and of the version after it.
const IMAGES: [&str; 2] = [
    "docker.io/opensearchproject/opensearch:2.19.3",
    "docker.io/opensearchproject/opensearch:2.19.4",
];

#[test] // proves DECLARE-8
fn from_an_empty_namespace_word_for_word() {
    let laid = Releases::find().and_then(|both| Ok((both, Fixture::lay("privileged")?)));
    let (releases, fixture) = match laid {
        Ok(laid) => laid,
        Err(why) => return skip(TEST, &why),
    };
    // The document makes it.
    fixture.admin().run(&["delete", "namespace", "search"]);
    releases.load(&fixture, IMAGES);
    let _storage = volumes(&fixture, &["logs-all-0", "logs-all-1", "logs-all-2", "logs-all-3"]);
    let document = Document::read(&fixture, "declared.md", &SECTIONS);
    let began = Instant::now();

    document.section("Reconciler and rights");
    mount_the_engines(&fixture, &releases);
    document.section("A cluster");
    let (nodes, pods) = (observe_all(&fixture, STAYPUT), seen(&fixture));

    document.section("Change it");
    let changed = observe_all(&fixture, STAYPUT);
    assert_eq!(seen(&fixture), pods, "the same pods and containers");
    assert_other_runs(&nodes, &changed);
    assert_eq!(attribute(&changed, "first"), vec![json!("yes"); 3]);

    assert_eq!(versions(&pods), vec![json!("2.19.3"); 3]);
    write_documents(&pods[0]);
    document.section("Another version");
    let newer = seen(&fixture);
    assert_other_containers(&pods, &newer);
    assert_eq!(versions(&newer), vec![json!("2.19.4"); 3]);
    let history = &fixture.logs()["status"]["history"];
    let newest = history.as_array().and_then(|entries| entries.last()).expect("a restart");
    assert_eq!((&newest["strategy"], &newest["nodes"]), (&json!("rolling"), &json!(3)), "{newest}");

    document.section("One node more");
    let grown = seen(&fixture);
    assert_eq!(grown[..3], newer, "the others go on");
    assert_eq!(grown.len(), 4);

    document.section("One node less");
    assert_eq!(seen(&fixture), newer, "the others go on");
    assert_eq!(newer[0].ask("/docs/_count").expect("a count")["count"], DOCUMENTS);
    println!("the document took {} s", began.elapsed().as_secs());
}

/// Adds to the example what the official images have and ours mount from the machine, and addresses
/// in place of the names that only a cluster with DNS knows.
fn mount_the_engines(fixture: &Fixture, releases: &Releases) {
    let read = format!("kubectl create --dry-run=client --output=json --filename={EXAMPLE}");
    let mut cluster: Value = serde_json::from_str(&fixture.people.run(&read)).expect("JSON");
    let set = &mut cluster["spec"]["nodeSets"][0];
    let seeds: Value = serde_json::from_str(&format!("[{}]", fixture.seeds())).expect("JSON");
    set["config"]["discovery.seed_hosts"] = seeds;
    set["config"]["cluster.routing.allocation.disk.threshold_enabled"] = json!(false);
    let template = &mut set["podTemplate"];
    // By which this test finds the pods.
    template["metadata"] = json!({ "labels": { "app": "logs" } });
    let (mut mounts, mut volumes) = releases.machine();
    mounts.push(json!({ "name": "tmp", "mountPath": "/tmp" }));
    volumes.push(json!({ "name": "tmp", "emptyDir": {} }));
    template["spec"]["volumes"] = json!(volumes);
    let container = &mut template["spec"]["containers"][0];
    container["workingDir"] = json!(HOME);
    container["volumeMounts"] = json!(mounts);
    container["env"].as_array_mut().expect("a list").extend(variables(&releases.now));
    fixture.people.write(EXAMPLE, &cluster.to_string());
}

/// Of the engine, on each node.
fn versions(pods: &[Seen]) -> Vec<Value> {
    let all = pods[0].ask("/_nodes/jvm").expect("the engine answers");
    let all = all["nodes"].as_object().expect("nodes").values();
    all.map(|node| node["version"].clone()).collect()
}

/// With a replica each: an engine allocates none to a node of a lower version than its primary's.
fn write_documents(node: &Seen) {
    let put = |target: &str, body: &Value| {
        let stream = TcpStream::connect((node.address.as_str(), 9200)).expect("a connection");
        let answer = exchange(stream, ("PUT", target), Some(body)).expect("an answer");
        assert!(answer.status < 300, "{target}: {} {}", answer.status, answer.body);
    };
    put("/docs?wait_for_active_shards=all", &json!({ "settings": { "number_of_shards": 3 } }));
    for id in 0..DOCUMENTS {
        put(&format!("/docs/_doc/{id}?refresh"), &json!({ "id": id }));
    }
}

#[track_caller]
fn assert_other_runs(before: &BTreeMap<String, Node>, after: &BTreeMap<String, Node>) {
    for (name, node) in after {
        assert_ne!(node.run(), before[name].run(), "{name} was not restarted");
    }
}

#[track_caller]
fn assert_other_containers(before: &[Seen], after: &[Seen]) {
    for (was, is) in before.iter().zip(after) {
        assert_eq!(is.same_pod(), was.same_pod());
        assert_ne!(is.container, was.container, "{}", is.name);
        assert_eq!(is.image, "opensearchproject/opensearch:2.19.4");
    }
}
