//! Three real Elasticsearch nodes by one SearchCluster: a setting is changed one by one, and TLS
//! between the nodes is turned on for all at once, each time in the same containers. And three that
//! have TLS from their first start.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::https::from_the_first_start;
use super::pinned::killed;
use super::spec::{declared, image_files, with_claims};
use super::writer::{assert_kept, write_until};
use super::{STAYPUT, install, put, same_pods_other_runs, three_nodes, until_restarted};
use crate::pods::bare::keys;
use crate::pods::nodes::{Node, attribute, observe_all, observe_killed, until_formed, until_ready};
use crate::pods::opensearch::Parts;
use crate::pods::seen::seen;
use crate::pods::stateful_set::volumes;
use crate::support::engine::Kind;
use crate::support::wait::eventually;

const TEST: &str = "pods::declared::elasticsearch::changed_and_given_tls_in_the_same_pods";
const NODES: [&str; 3] = ["logs-all-0", "logs-all-1", "logs-all-2"];
/// Documents that are there before TLS is turned on.
const BEFORE: usize = 20;

#[test] // proves CONFIG-11, DECLARE-4, DECLARE-6, DECLARE-10, DECLARE-15, DECLARE-27
fn changed_and_given_tls_in_the_same_pods() {
    let Some((parts, fixture)) = Parts::lay(TEST, Kind::Elasticsearch, "privileged") else {
        return;
    };
    keys(&fixture);
    image_files(&fixture, &parts);
    let _storage = volumes(&fixture, &NODES);
    install(&fixture);

    let began = Instant::now();
    let cluster = |settings: Value| {
        with_certificates(with_claims(declared(&fixture, &parts, "all", 3, &settings)))
    };
    fixture.admin().apply(&cluster(json!({ "node.attr.round": "first" })));
    let before = three_nodes(&fixture);
    println!("three nodes of a declared cluster: {} ms", began.elapsed().as_millis());
    fixture.until_idle();
    let pods = seen(&fixture);
    // By them a claim is known as one of this set.
    let ours = "labelSelector=stayput.dev/cluster%3Dlogs,stayput.dev/node-set%3Dall";
    let claims = fixture.read(&format!("persistentvolumeclaims?{ours}"));
    assert_eq!(claims["items"].as_array().map(Vec::len), Some(NODES.len()), "{claims:#}");
    let grace = each(&before, "/_nodes/settings", |node| {
        node["settings"]["http"]["shutdown_grace_period"].clone()
    });
    assert_eq!(grace, vec![json!("5s"); 3]);
    let node = before.values().next().expect("a node");
    put(
        node,
        "/docs?wait_for_active_shards=all",
        &json!({ "settings": { "number_of_shards": 3 } }),
    );
    for id in 0..BEFORE {
        put(node, &format!("/docs/_doc/{id}"), &json!({ "id": id }));
    }

    let began = Instant::now();
    fixture.admin().apply(&cluster(json!({ "node.attr.round": "second" })));
    until_restarted(&fixture);
    println!("a changed setting: {} ms", began.elapsed().as_millis());
    until_ready(&fixture, &NODES);
    let changed = observe_all(&fixture, STAYPUT);
    assert_eq!(seen(&fixture), pods, "the same pods, containers and claims");
    same_pods_other_runs(&before, &changed);
    assert_eq!(attribute(&changed, "round"), vec![json!("second"); 3]);

    fixture.admin().apply(&cluster(tls()));
    let says = eventually("it waits for a person", || {
        let status = &fixture.logs()["status"];
        (status["blocked"] == "needs_coordinated").then(|| status["message"].to_string())
    });
    assert!(says.contains("xpack.security"), "{says}");
    same_runs(&changed, &observe_all(&fixture, STAYPUT));
    let pinned = killed(&fixture, &changed);
    assert_eq!(each(&pinned, "/_nodes/settings", transport_tls), vec![Value::Null; 3]);
    let pods = seen(&fixture);

    let began = Instant::now();
    fixture.people.run("kubectl stayput -n search restart logs --coordinated --yes");
    let written = write_until(&fixture, BEFORE, || {
        let logs = fixture.logs();
        logs["status"]["history"].as_array().is_some_and(|entries| entries.len() == 2)
    });
    let documents = written - BEFORE;
    println!("TLS, {documents} documents meanwhile: {} ms", began.elapsed().as_millis());
    assert!(documents > 0, "the client could write");
    let history = &fixture.logs()["status"]["history"];
    let newest =
        history.as_array().expect("a list").iter().find(|entry| entry["strategy"] == "coordinated");
    assert_eq!(newest.expect("a coordinated restart")["outcome"], "done", "{history:#}");
    let secured = observe_killed(&fixture, STAYPUT);
    until_formed(&secured);
    fixture.until_idle();
    fixture.until_nothing_is_owed();
    until_ready(&fixture, &NODES);
    assert_eq!(seen(&fixture), pods, "the same pods, containers and claims");
    same_pods_other_runs(&pinned, &secured);
    assert_eq!(each(&secured, "/_nodes/settings", transport_tls), vec![json!("true"); 3]);
    let node = secured.values().next().expect("a node");
    assert_kept(node, written);

    from_the_first_start(&fixture, &parts);
}

/// Who asks without a name may do anything: the test is about TLS between the nodes.
fn tls() -> Value {
    json!({
        "node.attr.round": "second",
        "xpack.security": {
            "enabled": true,
            "authc.anonymous": { "username": "anybody", "roles": "superuser" },
            "transport.ssl": {
                "enabled": true,
                "verification_mode": "certificate",
                "key": "certificates/tls.key",
                "certificate": "certificates/tls.crt",
                "certificate_authorities": ["certificates/ca.crt"],
            },
        },
    })
}

/// The managers' certificate is the engines', too: it is mounted before any setting names it.
fn with_certificates(mut cluster: Value) -> Value {
    let spec = &mut cluster["spec"]["nodeSets"][0]["podTemplate"]["spec"];
    spec["volumes"].as_array_mut().expect("a list").push(
        json!({ "name": "certificates", "projected": { "sources": [
        { "secret": { "name": "logs-manager-tls" } },
        { "secret": { "name": "logs-manager-ca" } },
    ] } }),
    );
    let container = &mut spec["containers"][0];
    container["resources"] = json!({ "limits": { "memory": "1Gi" } });
    let mounts = container["volumeMounts"].as_array_mut().expect("a list");
    mounts.push(json!({ "name": "certificates", "mountPath": "/config/certificates" }));
    cluster
}

/// Whether a node has TLS for other nodes, if its config says so.
fn transport_tls(node: &Value) -> Value {
    node["settings"]["xpack"]["security"]["transport"]["ssl"]["enabled"].clone()
}

/// What each node says of itself.
fn each(
    nodes: &BTreeMap<String, Node>,
    target: &str,
    read: impl Fn(&Value) -> Value,
) -> Vec<Value> {
    let all = nodes.values().next().expect("a node").ask(target).expect("an answer");
    all["nodes"].as_object().expect("nodes").values().map(read).collect()
}

#[track_caller]
fn same_runs(before: &BTreeMap<String, Node>, after: &BTreeMap<String, Node>) {
    for (name, node) in after {
        assert_eq!(node.run(), before[name].run(), "{name} was restarted");
    }
}
