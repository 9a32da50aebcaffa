//! Pods without an owner, each with its own config, staged; a reconciler that is deleted in the middle
//! of a restart, and then the namespace.

use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::bare::{install, keys, pod};
use super::fixture::{Fixture, MANAGER};
use super::nodes::{
    NODES, assert_restarted_in_place, attribute, observe, until_formed, until_ready,
};
use super::phases::shown;
use crate::support::skip;
use crate::support::wait::{eventually, eventually_briefly};

/// Without a change of the pod, the kubelet takes more than a minute.
const ARRIVAL: Duration = Duration::from_secs(40);

#[test] // proves RESTART-107
fn each_pod_with_its_own_config_while_reconcilers_go() {
    let fixture = match Fixture::lay("restricted") {
        Ok(fixture) => fixture,
        Err(why) => {
            let test = "pods::own_config::each_pod_with_its_own_config_while_reconcilers_go";
            return skip(test, &why);
        }
    };
    keys(&fixture);
    let seeds = fixture.seeds();
    let config = |name: &str, round: &str| {
        format!(
            "cluster.name: logs\nnode.name: {name}\nnetwork.host: 0.0.0.0\n\
             discovery.seed_hosts: [{seeds}]\n\
             cluster.initial_cluster_manager_nodes: {}\n\
             path.data: /data\nnode.attr.round: {round}\n",
            NODES.join(",")
        )
    };
    for name in NODES {
        let text = config(name, "first");
        fixture.secret(&format!("{name}-config"), &[("opensearch.yml", &text)]);
        fixture.admin().apply(&pod(&fixture, name));
    }
    until_ready(&fixture, &NODES);
    // With it, a drain ends as soon as no slice has the pod as ready.
    fixture.admin().apply(&json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": { "selector": { "app": "logs" }, "ports": [{ "port": 9200 }] },
    }));
    install(&fixture, "{pod}-config");
    let before = observe(&fixture, MANAGER);
    until_formed(&before);
    fixture.at_rest();

    let mark = fixture.cluster.audit.now();
    let written = SystemTime::now();
    for name in NODES {
        let text = config(name, "second");
        fixture.secret(&format!("{name}-config"), &[("opensearch.yml", &text)]);
    }
    let asked = Instant::now();
    fixture.people.run("kubectl stayput -n search restart logs");
    goes_in_the_middle(&fixture);
    let printed = fixture.people.run("kubectl stayput -n search watch logs --timeout 10m");
    println!("the rolling restart took {} ms\n{printed}", asked.elapsed().as_millis());
    let path = "jsonpath={.status.history[-1:].outcome}";
    assert_eq!(fixture.run(&["get", "searchcluster", "logs", "--output", path]), "done");
    fixture.figures(mark, asked);

    let after = observe(&fixture, MANAGER);
    let expected = |name: &str| fixture.checksum(&[("opensearch.yml", &config(name, "second"))]);
    assert_restarted_in_place(&before, &after, expected);
    assert_eq!(attribute(&after, "round"), vec![json!("second"); 3]);
    for (name, node) in &after {
        let at = fixture.cluster.secret_mounted_at(&node.uid, "mounted");
        let waited = at.duration_since(written).expect("after the Secret's change");
        let touched = at.duration_since(fixture.first_patch(mark, name)).unwrap_or_default();
        println!(
            "{name}: mounted {} ms after the Secrets' change, {} ms after the first patch of the pod",
            waited.as_millis(),
            touched.as_millis()
        );
        assert!(touched < ARRIVAL, "{name}: {touched:?}: the patch of the pod had no effect");
    }
    namespace_goes_in_the_middle(&fixture);
}

/// Waits until the first node is being restarted.
fn until_under_way(fixture: &Fixture) {
    eventually_briefly("a node is stopped or started", || {
        let is_under_way = |pod: &Value| pod["phase"] == "stop" || pod["phase"] == "start";
        shown(fixture).iter().any(is_under_way).then_some(())
    });
}

/// The namespace of the engines is deleted when the first node is being restarted: it goes with everything in
/// it, and the reconciler takes care of the next cluster.
fn namespace_goes_in_the_middle(fixture: &Fixture) {
    fixture.people.run("kubectl stayput -n search restart logs");
    until_under_way(fixture);
    let began = Instant::now();
    fixture.admin().run(&["delete", "namespace", "search", "--timeout=10m"]);
    println!("the namespace was gone after {} ms", began.elapsed().as_millis());
    let left = fixture.admin().json(&["get", "searchclusters", "--all-namespaces"]);
    assert_eq!(left["items"], json!([]), "{left:#}");

    fixture.admin().run(&["create", "namespace", "next"]);
    fixture.admin().apply(&json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "next", "namespace": "next" },
        "spec": {
            "pods": { "selector": { "matchLabels": { "app": "next" } } },
            "engine": { "scheme": "http" },
            "manager": { "caSecret": "next-manager-ca", "auth": { "serviceAccountToken": {} } },
        },
    }));
    eventually("the next SearchCluster has a status", || {
        let get = ["get", "searchcluster", "next", "--namespace", "next"];
        fixture.admin().json(&get)["status"]["phase"].as_str().map(str::to_owned)
    });
    let path = "jsonpath={.items[*].status.containerStatuses[*].restartCount}";
    let restarts = fixture.admin().run(&["get", "pods", "-n", "stayput", "--output", path]);
    assert_eq!(restarts, "0 0", "a reconciler has ended");
}

/// Kills the active replica when the first node is being restarted.
fn goes_in_the_middle(fixture: &Fixture) {
    until_under_way(fixture);
    let holder = fixture.kill_reconciler();
    println!("{holder} was deleted while a node was being restarted");
}
