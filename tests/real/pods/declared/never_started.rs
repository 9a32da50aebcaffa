//! A declared cluster whose first templates cannot start. The status says why in the words of the kubelet or the
//! scheduler, and a corrected declaration reaches the pods.

use std::time::Instant;

use serde_json::{Value, json};

use super::claims::claims;
use super::three_nodes;
use crate::pods::bare::keys;
use crate::pods::fixture::{ENGINE, Fixture, HOME};
use crate::pods::stateful_set::{claim, volumes};
use crate::support::skip;
use crate::support::wait::eventually;

const NODES: [&str; 3] = ["logs-all-0", "logs-all-1", "logs-all-2"];

/// What makes the declaration bad: a name, the change of the `SearchCluster`, and the reason.
type Fault = (&'static str, fn(&mut Value), &'static str);

const FAULTS: [Fault; 2] = [
    (
        "an image that is not there",
        |spec| spec["engine"]["image"] = json!("stayput.test/none:1"),
        "ErrImageNeverPull",
    ),
    (
        "a request that is too large",
        |spec| container(spec)["resources"]["requests"]["memory"] = json!("64Ti"),
        "Unschedulable",
    ),
];

#[test] // proves UPDATE-7
fn a_first_template_that_cannot_start_is_corrected_in_the_declaration() {
    const TEST: &str = "pods::declared::never_started::\
                        a_first_template_that_cannot_start_is_corrected_in_the_declaration";
    let fixture = match Fixture::lay("restricted") {
        Ok(fixture) => fixture,
        Err(why) => return skip(TEST, &why),
    };
    keys(&fixture);
    let _storage = volumes(&fixture, &NODES);
    super::install(&fixture);
    fixture.people.run("kubectl apply -k deploy/replace");

    // One after the other: no pod has started before the last declaration.
    let mut claims_of_first = None;
    for (what, spoil, reason) in FAULTS {
        let began = Instant::now();
        let mut declared = declared(&fixture);
        spoil(&mut declared["spec"]);
        fixture.admin().apply(&declared);
        let shown = eventually(&format!("{what}: the status says why"), || told(&fixture, reason));
        println!("{what}: {shown}; told of all three in {} ms", began.elapsed().as_millis());
        let claims = claims(&fixture);
        assert_eq!(claims.len(), NODES.len(), "{what}");
        assert_eq!(*claims_of_first.get_or_insert(claims.clone()), claims, "{what}");
    }

    let began = Instant::now();
    fixture.admin().apply(&declared(&fixture));
    three_nodes(&fixture);
    fixture.until_idle();
    println!("corrected: three nodes are one cluster after {} ms", began.elapsed().as_millis());
    assert_eq!(Some(claims(&fixture)), claims_of_first, "the claims stay");
}

/// What is said of the first node, once each node is said to be down for this reason.
fn told(fixture: &Fixture, reason: &str) -> Option<String> {
    let logs = fixture.logs();
    let nodes = logs["status"]["nodes"].as_array().filter(|nodes| nodes.len() == NODES.len())?;
    let message = |node: &Value| {
        let message = node["message"].as_str()?;
        (node["down"] == "pod_not_started" && message.contains(reason)).then(|| message.to_owned())
    };
    nodes.iter().map(message).collect::<Option<Vec<_>>>()?.into_iter().next()
}

fn container(spec: &mut Value) -> &mut Value {
    &mut spec["nodeSets"][0]["podTemplate"]["spec"]["containers"][0]
}

/// Three stand-ins for engines.
fn declared(fixture: &Fixture) -> Value {
    let seeds: Value = serde_json::from_str(&format!("[{}]", fixture.seeds())).expect("JSON");
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "engine": {
                "scheme": "http",
                "distribution": "opensearch",
                "version": "2.19.3",
                "image": ENGINE,
            },
            "update": { "allow": ["relabel", "restart", "container", "resize", "replace"] },
            "nodeSets": [{
                "name": "all",
                "count": NODES.len(),
                "config": {
                    "discovery.seed_hosts": seeds,
                    "path.data": format!("{HOME}/data"),
                },
                "podTemplate": {
                    "metadata": { "labels": { "app": "logs" } },
                    "spec": {
                        "terminationGracePeriodSeconds": 5,
                        "containers": [{
                            "name": "opensearch",
                            "imagePullPolicy": "Never",
                            // As the official image has it.
                            "workingDir": HOME,
                            "env": [
                                { "name": "ES_PATH_CONF", "value": format!("{HOME}/config") },
                            ],
                            "volumeMounts": [
                                { "name": "config", "mountPath": format!("{HOME}/config") },
                            ],
                        }],
                        "volumes": [{ "name": "config", "emptyDir": {} }],
                    },
                },
                "volumeClaimTemplates": [claim()],
            }],
        },
    })
}
