//! What the engine's container mounts and nobody watches.

use serde_json::json;
use stayput_pod_update::{Ignore, Source, SourceKind};

use crate::doctor::Facts;
use crate::doctor::Severity::Note;
use crate::doctor::checks::findings;
use crate::doctor::tests::healthy::healthy;
use crate::doctor::tests::{Change, each};

/// The engine's container watches `/config`, and mounts a Secret at `/certs`, too.
fn mount(facts: &mut Facts) {
    facts.change_pod(|it| {
        let container = &mut it["spec"]["containers"][0];
        let config = json!({"name": "STAYPUT_CONFIG", "value": "/config"});
        container["env"].as_array_mut().unwrap().push(config);
        for (name, path) in [("config", "/config"), ("certs", "/certs")] {
            let mount = json!({"name": name, "mountPath": path});
            container["volumeMounts"].as_array_mut().unwrap().push(mount);
        }
        for name in ["config", "certs"] {
            let secret = json!({"secretName": format!("logs-{name}")});
            let volume = json!({"name": name, "secret": secret});
            it["spec"]["volumes"].as_array_mut().unwrap().push(volume);
        }
    });
}

#[test] // proves UPDATE-16
fn what_restarts_nothing_is_named_with_both_ways_out() {
    each(&[
        (
            "a Secret beside the config",
            mount,
            Note,
            "not_watched",
            "Pod/logs-0",
            [
                "Secret logs-certs, mounted at /certs, is read by the engine's container and not \
                 watched: a change restarts nothing. To have it restart nodes, add --config \
                 NAME=/certs to the manager",
                "kubectl -n search describe secret logs-certs",
            ],
        ),
        (
            "only some keys do not count",
            |facts| {
                mount(facts);
                ignore(facts, "ca.crt");
            },
            Note,
            "not_watched",
            "Pod/logs-0",
            ["stayput.dev/ignore=true on it ends this note", "describe secret logs-certs"],
        ),
    ]);
}

/// A set of a thousand pods mounts the same.
#[test]
fn pods_that_mount_the_same_are_named_together() {
    let mut facts = healthy();
    mount(&mut facts);
    let pods = facts.pods.as_mut().unwrap();
    let mut other = json!(pods[0]);
    other["metadata"]["name"] = json!("logs-0b");
    pods.push(serde_json::from_value(other).unwrap());
    let found = findings(&facts);
    let objects: Vec<&str> = found
        .iter()
        .filter(|one| one.code == "not_watched")
        .map(|one| one.object.as_str())
        .collect();
    assert_eq!(objects, ["Pod/logs-0, Pod/logs-0b"]);
}

fn ignore(facts: &mut Facts, value: &str) {
    let source = Source { kind: SourceKind::Secret, name: "logs-certs".into() };
    facts.ignored.insert(source, Ignore::parse(Some(value)));
}

#[test] // proves UPDATE-16
fn nothing_is_said_where_it_is_known_or_somebody_else_decides() {
    let ways: [(&str, Change); 3] = [
        ("ignored", |facts| ignore(facts, "true")),
        ("named in the spec", |facts| {
            facts.change_cluster(|it| {
                it["spec"]["config"]["sources"] =
                    json!([{"secret": "{pod}-config"}, {"secret": "logs-certs"}]);
            });
        }),
        ("an operator's", |facts| {
            facts.change_set(|it| {
                it["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "opensearch.opster.io/v1", "kind": "OpenSearchCluster",
                    "name": "logs", "uid": "o", "controller": true,
                }]);
            });
        }),
    ];
    for (what, change) in ways {
        let mut facts = healthy();
        mount(&mut facts);
        change(&mut facts);
        let found = findings(&facts);
        assert!(found.iter().all(|one| one.code != "not_watched"), "{what}: {found:#?}");
    }
}
