//! `docs/first-ten-minutes.md`, exactly as written: a StatefulSet of real engines without stayput,
//! and the reader's commands one after the other.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::document::Document;
use super::fixture::{ENGINE, Fixture, HOME};
use super::nodes::{
    NODES, Node, assert_restarted_in_place, attribute, observe, until_formed, until_ready,
};
use super::official;
use super::opensearch::Parts;
use super::stateful_set::stateful_set;
use super::trusted::trusted;
use super::upgrade_document::upgrade_the_manager;
use crate::support::engine::Kind;
use crate::support::wait::eventually;

/// Where the document puts the manager.
pub(super) const STAYPUT: &str = "/stayput/stayput";

pub(super) const FIVE: &str = "In five commands";
pub(super) const UNINSTALL: &str = "Uninstall";
const INIT: &str = "Certificate, keys and SearchCluster";
const ADD: &str = "Add stayput to the pods";

/// The document's sections with blocks. All of them are run below, but the first and the last one, which
/// `five_commands` runs.
pub(super) const SECTIONS: [&str; 9] = [
    FIVE,
    "Install the reconciler",
    INIT,
    ADD,
    "Change the config",
    "A config that is wrong",
    "Renew the certificate",
    "When it does not continue",
    UNINSTALL,
];

#[test] // proves HOST-4, RESTART-2, RESTART-4, RESTART-111, UPDATE-37, UPDATE-41, UPDATE-52, UPDATE-53, MANIFEST-2, OPERATE-2, DOCTOR-1, DOCTOR-8, PAGE-4
fn the_first_ten_minutes() {
    const TEST: &str = "pods::first_ten_minutes::the_first_ten_minutes";
    let Some((parts, fixture)) = Parts::lay(TEST, Kind::OpenSearch, "restricted") else { return };
    let began = Instant::now();
    let reader = Document::read(&fixture, "first-ten-minutes.md", &SECTIONS);
    reader.section("Install the reconciler");
    a_set_that_replaces_its_pods(&reader);

    // Engines and JVM are mounted from the machine, which `restricted` forbids.
    let label = "pod-security.kubernetes.io/enforce=privileged";
    fixture.admin().run(&["label", "--overwrite", "namespace/search", label]);
    official::load(&fixture, &parts, official::IMAGE);
    let config = official::config(&fixture);
    fixture.secret("logs-config", &[("opensearch.yml", &config)]);
    fixture.admin().apply(&official::stateful_set(&parts));
    until_ready(&fixture, &NODES);

    let read = Instant::now();
    for heading in ["Install the reconciler", INIT, ADD] {
        reader.section(heading);
    }
    let good = fixture.checksum(&[("opensearch.yml", &(config + "\nnode.attr.first: \"yes\"\n"))]);
    let after = changed(&reader, &good);
    wrong(&reader, &after, &good);
    renewed(&reader);
    reader.section("When it does not continue");
    stopped_by_hand(&fixture);
    println!(
        "the document took {} s, {} s with a StatefulSet before it",
        read.elapsed().as_secs(),
        began.elapsed().as_secs()
    );
    fixture.until_idle();
    the_plugin(&fixture);
    trusted(&fixture);
}

/// The other update strategy, under PodSecurity `restricted`, with a stand-in engine.
fn a_set_that_replaces_its_pods(reader: &Document<'_>) {
    let fixture = reader.fixture;
    let config = "cluster.name: logs\nnode.name: ${NODE_NAME}\nnetwork.host: 0.0.0.0\n\
                  cluster.initial_cluster_manager_nodes: logs-0\n";
    let config = format!("{config}path.data: {HOME}/data\n");
    fixture.secret("logs-config", &[("opensearch.yml", &config)]);
    fixture.admin().apply(&standin_set());
    until_ready(fixture, &NODES[..1]);
    let template = || {
        let path = "--output=jsonpath={.spec.template.spec}";
        fixture.run(&["get", "statefulset/logs", path])
    };
    let plain = template();
    reader.section(INIT);
    let printed = reader.section(ADD);
    assert!(printed.contains("roll out complete"), "{printed}");
    assert!(template().contains(STAYPUT), "{}", template());
    upgrade_the_manager(fixture);
    // What people who no longer want it do: docs/inject.md.
    fixture.people.run(
        "kubectl --namespace search get statefulset logs --output yaml |
           kubectl stayput uninject | kubectl replace --filename -",
    );
    assert_eq!(template(), plain);
    fixture.run(&["delete", "statefulset/logs", "--cascade=foreground"]);
    fixture.run(&["delete", "searchcluster/logs"]);
}

/// "Change the config": every engine is another process, and every pod the same. Returns the nodes
/// afterwards.
fn changed(reader: &Document<'_>, good: &str) -> BTreeMap<String, Node> {
    let fixture = reader.fixture;
    let before = observe(fixture, STAYPUT);
    until_formed(&before);
    let (mark, began) = (fixture.cluster.audit.now(), Instant::now());
    let printed = reader.section("Change the config");
    assert!(printed.contains("\ndone\n"), "{printed}");
    println!("the document's restart took {} ms", began.elapsed().as_millis());
    fixture.figures(mark, began);
    let after = observe(fixture, STAYPUT);
    assert_restarted_in_place(&before, &after, |_| good.to_owned());
    assert_eq!(attribute(&after, "first"), vec![json!("yes"); 3]);
    fixture.at_rest();
    after
}

/// "A config that is wrong": one engine is another process, on the good config as all others.
fn wrong(reader: &Document<'_>, before: &BTreeMap<String, Node>, good: &str) {
    let fixture = reader.fixture;
    let printed = reader.section_with("A config that is wrong", |script| {
        if script.contains("'{.status.phase}'=Idle") {
            let after = observe(fixture, STAYPUT);
            let mut others = 0;
            for (name, node) in &after {
                assert_eq!(node.stays, before[name].stays, "{name}");
                assert_eq!(node.checksum(), good, "{name}: {:#}", node.status);
                assert_eq!(node.status["state"], "running", "{name}: {:#}", node.status);
                others += usize::from(node.run() != before[name].run());
            }
            assert_eq!(others, 1, "one node was asked");
            assert_eq!(attribute(&after, "first"), vec![json!("yes"); 3]);
            touch(fixture);
        }
    });
    assert!(printed.contains("\nrolledBack\n"), "{printed}");
}

/// "Renew the certificate": the managers have the new one, which the same CA has signed.
fn renewed(reader: &Document<'_>) {
    let fixture = reader.fixture;
    let before = fixture.run(&["get", "secret/logs-manager-ca", "--output", "jsonpath={.data}"]);
    let certificate = "kubectl -n search get secret logs-manager-tls \
         --output 'go-template={{index .data \"tls.crt\" | base64decode}}' |
         openssl x509 -noout -fingerprint";
    let old = fixture.people.run(certificate);
    reader.section("Renew the certificate");
    let ours = fixture.people.run(certificate);
    assert_ne!(ours, old);
    // The runbook says the same: where to look, and what to type.
    let page = fixture.people.run("kubectl stayput runbook certificate");
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).collect();
    for block in &blocks[..2] {
        let script = block.split("```").next().expect("its end");
        println!("{script}{}", fixture.people.run(script));
    }
    let new = fixture.people.run(certificate);
    assert_ne!(new, ours);
    let after = fixture.run(&["get", "secret/logs-manager-ca", "--output", "jsonpath={.data}"]);
    assert_eq!(after, before, "the reconciler needs no other CA");
    touch(fixture);
    for (name, node) in observe(fixture, STAYPUT) {
        let served = format!(
            "openssl s_client -connect {}:9199 -servername stayput 2>/dev/null </dev/null |
             openssl x509 -noout -fingerprint",
            node.address
        );
        eventually(&format!("{name} has the new certificate"), || {
            (fixture.people.run(&served) == new).then_some(())
        });
    }
}

/// What is typed at 3 a.m.: a page of the runbook word for word, and the command that `status` prints.
fn stopped_by_hand(fixture: &Fixture) {
    fixture.run(&["exec", "logs-1", "--", STAYPUT, "stop"]);
    let start = eventually("status says how to start it", || {
        let page = fixture.people.run("kubectl stayput -n search status logs --no-color");
        let mut quoted = page.split('`').skip(1).step_by(2);
        quoted.find(|command| command.ends_with(" start")).map(str::to_owned)
    });
    assert_eq!(start, "kubectl -n search exec logs-1 -c opensearch -- /stayput/stayput start");
    let page = fixture.people.run("kubectl stayput runbook stopped_long");
    let look = page.lines().find(|line| line.ends_with(" status")).expect("where to look");
    let printed = fixture.people.run(look);
    assert!(printed.contains("stopped"), "{look}: {printed}");
    println!("{look}\n{printed}{start}\n{}", fixture.people.run(&start));
    until_ready(fixture, &NODES);
}

/// A kubelet looks for changed Secrets when a pod has changed, and else once a minute or less.
fn touch(fixture: &Fixture) {
    let at = humantime::format_rfc3339_nanos(std::time::SystemTime::now()).to_string();
    let annotation = format!("stayput.test/touched={at}");
    fixture.run(&["annotate", "--overwrite", "pods", "--selector", "app=logs", &annotation]);
}

/// One engine with a root file system that is read-only.
fn standin_set() -> Value {
    let mut set = stateful_set(&json!({
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
            "command": ["./opensearch-docker-entrypoint.sh"],
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
                "httpGet": { "path": "/_cluster/health", "port": "http" },
                "timeoutSeconds": 5,
                "periodSeconds": 1,
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [
                { "name": "engine-config", "mountPath": format!("{HOME}/config") },
                { "name": "config", "subPath": "opensearch.yml",
                  "mountPath": format!("{HOME}/config/opensearch.yml") },
                { "name": "data", "mountPath": format!("{HOME}/data") },
            ],
        }],
        "volumes": [
            { "name": "config", "secret": { "secretName": "logs-config" } },
            { "name": "engine-config", "emptyDir": {} },
            { "name": "data", "emptyDir": {} },
        ],
    }));
    let spec = set["spec"].as_object_mut().expect("an object");
    spec.insert("replicas".to_owned(), json!(1));
    spec.remove("updateStrategy");
    set
}

/// The output of `kubectl stayput` afterwards.
fn the_plugin(fixture: &Fixture) {
    for (line, part) in [
        ("kubectl stayput -n search status logs", "Idle"),
        // Through a port that kubectl forwards to the reconciler.
        ("kubectl stayput -n search plan logs", "search/logs, observed at"),
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
