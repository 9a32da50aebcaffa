//! `docs/first-ten-minutes.md`, exactly as written: a StatefulSet of engines without stayput, and
//! the reader's commands one after the other.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::fixture::{ENGINE, Fixture, HOME};
use super::nodes::{NODES, assert_restarted_in_place, attribute, observe, until_formed};
use crate::support::skip::skip;
use crate::support::wait::eventually;

/// Where the document puts the manager.
const STAYPUT: &str = "/stayput/stayput";

/// The blocks marked `sh`, with their headings.
fn blocks() -> Vec<(String, String)> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/first-ten-minutes.md");
    let document = fs::read_to_string(document).expect("the document");
    let mut blocks = Vec::new();
    for part in document.split("\n## ").skip(1) {
        let heading = part.lines().next().expect("a heading");
        for rest in part.split("```sh\n").skip(1) {
            let script = rest.split("```").next().expect("a block");
            blocks.push((heading.to_owned(), script.to_owned()));
        }
    }
    blocks
}

#[test]
fn the_first_ten_minutes() {
    let fixture = match Fixture::lay("restricted") {
        Ok(fixture) => fixture,
        Err(why) => return skip("pods::first_ten_minutes::the_first_ten_minutes", &why),
    };
    let config = format!(
        "cluster.name: logs\nnode.name: ${{NODE_NAME}}\nnetwork.host: 0.0.0.0\n\
         discovery.seed_hosts: [{}]\ncluster.initial_cluster_manager_nodes: {}\npath.data: {HOME}/data\n",
        fixture.seeds(),
        NODES.join(",")
    );
    fixture.secret("logs-config", &[("opensearch.yml", &config)]);
    fixture.admin().apply(&stateful_set());
    fixture.run(&["rollout", "status", "statefulset/logs", "--timeout=120s"]);

    let began = Instant::now();
    let mut before = None;
    for (heading, script) in blocks() {
        let block = Instant::now();
        if script.contains("restart-phase=schedule-rolling") {
            let nodes = observe(&fixture, STAYPUT);
            until_formed(&nodes);
            fixture.at_rest();
            before = Some((nodes, fixture.cluster.audit.now(), Instant::now()));
        }
        let printed = fixture.people.run(&script);
        println!("{heading}: {} ms\n{script}{printed}", block.elapsed().as_millis());
        if script.contains("--for=condition=RestartInProgress=false") {
            assert!(printed.ends_with("done\n"), "{printed}");
            let (_, mark, began) = before.as_ref().expect("it was asked for before");
            println!("the rolling restart took {} ms", began.elapsed().as_millis());
            fixture.figures(*mark);
        }
    }
    println!("the document took {} s", began.elapsed().as_secs());

    let (before, ..) = before.expect("the document asks for a restart");
    let config = config + "\nnode.attr.first: \"yes\"\n";
    let expected = fixture.checksum(&[("opensearch.yml", &config)]);
    let after = observe(&fixture, STAYPUT);
    assert_restarted_in_place(&before, &after, |_| expected.clone());
    assert_eq!(attribute(&after, "first"), vec![json!("yes"); 3]);
    the_plugin(&fixture);
}

/// The engines as users have them before they install stayput.
fn stateful_set() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "serviceName": "logs",
            "replicas": 3,
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": "logs" } },
            "template": {
                "metadata": { "labels": { "app": "logs" } },
                "spec": {
                    "automountServiceAccountToken": false,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 1000,
                        "fsGroup": 1000,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [{
                        "name": "opensearch",
                        "image": ENGINE,
                        "imagePullPolicy": "Never",
                        "workingDir": HOME,
                        "args": ["opensearch"],
                        "env": [
                            { "name": "ES_PATH_CONF", "value": format!("{HOME}/config") },
                            { "name": "NODE_NAME",
                              "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                        ],
                        "ports": [{ "name": "http", "containerPort": 9200 }],
                        "startupProbe": {
                            "tcpSocket": { "port": "http" },
                            "periodSeconds": 1,
                            "failureThreshold": 60,
                        },
                        "readinessProbe": {
                            "httpGet": { "path": "/_cluster/health?wait_for_nodes=3", "port": "http" },
                            "timeoutSeconds": 5,
                            "periodSeconds": 1,
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": { "drop": ["ALL"] },
                        },
                        "volumeMounts": [
                            { "name": "config", "mountPath": format!("{HOME}/config") },
                            { "name": "data", "mountPath": format!("{HOME}/data") },
                        ],
                    }],
                    "volumes": [
                        { "name": "config", "secret": { "secretName": "logs-config" } },
                        { "name": "data", "emptyDir": {} },
                    ],
                },
            },
        },
    })
}

/// The output of `kubectl stayput` afterwards.
fn the_plugin(fixture: &Fixture) {
    for (line, part) in [
        ("kubectl stayput -n search status logs", "Idle"),
        ("kubectl stayput -n search plan logs", ""),
        ("kubectl stayput -n search why logs-1", "logs-1"),
        ("kubectl stayput -n search history logs", "done"),
    ] {
        let printed = fixture.people.run(line);
        println!("{line}\n{printed}");
        assert!(printed.contains(part), "{line}: {printed}");
    }
    eventually("nothing is left on the pods", || {
        let path = "jsonpath={.items[*].metadata.annotations}";
        let left = fixture.run(&["get", "pods", "--selector", "app=logs", "--output", path]);
        assert!(left.contains("stayput.dev/last-restart"), "{left}");
        (!left.contains("restart-phase") && !left.contains("stayput.dev/shown")).then_some(())
    });
}
