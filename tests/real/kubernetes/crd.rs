//! SearchClusters on a real apiserver: validation, defaults, printed columns.

use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Policy;

use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::wait::eventually;

const APPLY: [&str; 4] = ["apply", "--warnings-as-errors", "-f", "-"];

fn smallest() -> Value {
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": {"name": "small", "namespace": "search"},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"scheme": "http"},
            "manager": {"caSecret": "logs-manager-ca", "auth": {"serviceAccountToken": {}}},
        },
    })
}

/// What restarts of it are allowed to do.
fn policy(cluster: &SearchCluster) -> Policy {
    cluster.check().expect("a valid spec").policy
}

/// The smallest one with `change` merged into its spec.
fn with(change: Value) -> Value {
    fn merge(into: &mut Value, change: Value) {
        match (into, change) {
            (Value::Object(fields), Value::Object(changes)) => {
                for (key, change) in changes {
                    merge(fields.entry(key).or_insert(Value::Null), change);
                }
            }
            (into, change) => *into = change,
        }
    }
    let mut object = smallest();
    merge(&mut object["spec"], change);
    object
}

/// What makes the smallest one a declared cluster of these node sets.
fn with_sets(node_sets: Value) -> Value {
    json!({
        "pods": null,
        "manager": null,
        "engine": {"distribution": "opensearch", "version": "2.19.3"},
        "nodeSets": node_sets,
    })
}

pub(super) fn bad_objects_are_refused_with_field_and_remedy(admin: &Kubectl) {
    let table = [
        (json!({"pods": null}), "spec", "write either pods"),
        (json!({"nodeSets": [{"name": "a", "count": 1}]}), "spec", "write either pods"),
        (
            json!({"pods": null, "nodeSets": [{"name": "a", "count": 1}]}),
            "spec",
            "engine.distribution and engine.version say what to run",
        ),
        (json!({"pods": null, "nodeSets": []}), "spec.nodeSets", "should have at least 1 items"),
        (
            json!({"pods": {"selector": {"matchLabels": null}}}),
            "spec.pods.selector",
            "write a label under matchLabels",
        ),
        (json!({"engine": {"scheme": "https"}}), "spec.engine", "or set engine.scheme to http"),
        (
            json!({"engine": {"scheme": "ftp"}}),
            "spec.engine.scheme",
            "supported values: \"http\", \"https\"",
        ),
        (
            json!({"engine": {"credentialsSecret": "a"}}),
            "spec.engine",
            "engine.allowPlainCredentials to true",
        ),
        (json!({"engine": {"port": 0}}), "spec.engine.port", "greater than or equal to 1"),
        (json!({"engine": {"port": 65536}}), "spec.engine.port", "less than or equal to 65535"),
        (
            json!({"manager": {"caSecret": null}}),
            "spec",
            "manager.caSecret or manager.auth is missing",
        ),
        (json!({"manager": {"caSecret": "A_b"}}), "spec.manager.caSecret", "should match"),
        (
            json!({"manager": {"auth": {"serviceAccountToken": null}}}),
            "spec.manager.auth",
            "write serviceAccountToken: {} if in doubt",
        ),
        (
            json!({"manager": {"auth": {"jwtKeySecret": "k"}}}),
            "spec.manager.auth",
            "exactly one of",
        ),
        (
            json!({"config": {"sources": [{}]}}),
            "spec.config.sources[0]",
            "exactly one of secret and configMap",
        ),
        (
            json!({"config": {"sources": [{"secret": "a", "configMap": "b"}]}}),
            "spec.config.sources[0]",
            "exactly one of secret and configMap",
        ),
        (
            json!({"config": {"sources": [{"secret": "{node}"}]}}),
            "spec.config.sources[0].secret",
            "should match",
        ),
        (
            json!({"config": {"sources": [{"secret": "a", "directory": "a/b"}]}}),
            "spec.config.sources[0].directory",
            "should match",
        ),
        (
            json!({"restart": {"maxUnavailable": 0}}),
            "spec.restart.maxUnavailable",
            "write a number of nodes, 1 to 10000",
        ),
        (
            json!({"restart": {"maxUnavailable": "0%"}}),
            "spec.restart.maxUnavailable",
            "or a percentage, \"1%\" to \"100%\"",
        ),
        (
            json!({"restart": {"maxUnavailable": "101%"}}),
            "spec.restart.maxUnavailable",
            "or a percentage, \"1%\" to \"100%\"",
        ),
        (
            json!({"restart": {"maxUnavailable": 10_001}}),
            "spec.restart.maxUnavailable",
            "less than or equal to 10000",
        ),
        (json!({"restart": {"maxUnavailable": 1.5}}), "spec.restart.maxUnavailable", "integer"),
        (
            json!({"restart": {"maxUnavailableOfRole": {"data": 0}}}),
            "spec.restart.maxUnavailableOfRole.data",
            "greater than or equal to 1",
        ),
        (
            json!({"restart": {"maxUnavailableOfRole": {"data": "0%"}}}),
            "spec.restart.maxUnavailableOfRole.data",
            "should match",
        ),
        (
            json!({"restart": {"phaseTimeout": "15 minutes"}}),
            "spec.restart.phaseTimeout",
            "write a duration such as \"15m\"",
        ),
        (json!({"restart": {"drain": 10}}), "spec.restart.drain", "must be of type string"),
        (
            json!({"restart": {"onConfigChange": "always"}}),
            "spec.restart.onConfigChange",
            "supported values",
        ),
        (json!({"restart": {"maxUnavailabel": 2}}), "spec.restart.maxUnavailabel", "unknown field"),
        (
            json!({"update": {"mode": "inPlace", "allow": []}}),
            "spec.update",
            "name steps there, or set update.mode to off",
        ),
        (
            with_sets(json!([{"name": "a", "count": 1}, {"name": "a", "count": 2}])),
            "spec.nodeSets[1]",
            "Duplicate value",
        ),
        (
            with_sets(json!([{"name": "a", "count": 0}])),
            "spec.nodeSets[0].count",
            "greater than or equal to 1",
        ),
        (
            with_sets(json!([{"name": "a", "count": 1001}])),
            "spec.nodeSets[0].count",
            "less than or equal to 1000",
        ),
        (with_sets(json!([{"name": "A_b", "count": 1}])), "spec.nodeSets[0].name", "should match"),
        (
            with_sets(json!([{"name": "a".repeat(47), "count": 1}])),
            "metadata.name",
            "which may have 52 characters: shorten one of them",
        ),
        (json!({"paused": "yes"}), "spec.paused", "must be of type boolean"),
        (json!({"stopped": ["a", "a"]}), "spec.stopped[1]", "Duplicate value"),
    ];
    for (change, field, remedy) in table {
        let refused = admin
            .attempt(&APPLY, &with(change.clone()).to_string())
            .expect_err(&format!("{change} was taken"));
        assert!(refused.contains(field), "{change}: no {field} in {refused}");
        assert!(refused.contains(remedy), "{change}: no {remedy} in {refused}");
    }
}

/// What must not change is refused when it does, and everything else may.
pub(super) fn some_things_stay_as_they_are(admin: &Kubectl) {
    let declared = |change: Value| {
        let mut object = with(with_sets(json!([{"name": "all", "count": 3}])));
        for (key, value) in change.as_object().expect("fields") {
            object["spec"]["engine"][key] = value.clone();
        }
        object
    };
    let attached = smallest();
    let apply = |name: &str, mut object: Value| {
        object["metadata"]["name"] = name.into();
        admin.attempt(&APPLY, &object.to_string())
    };
    apply("attached", attached.clone()).expect("an attached cluster");
    apply("declared", declared(json!({}))).expect("a declared cluster");
    let version = json!({"version": "2.19.4"});
    apply("declared", declared(version)).expect("another version");
    let other = json!({"distribution": "elasticsearch", "version": "8.19.0"});
    let stays = "a cluster stays declared, or attached: make another SearchCluster";
    for (name, object, remedy) in [
        ("attached", declared(json!({})), stays),
        ("declared", attached, stays),
        ("declared", declared(other), "restore a snapshot into another SearchCluster"),
    ] {
        let refused = apply(name, object).expect_err(remedy);
        assert!(refused.contains(remedy), "{name}: no {remedy} in {refused}");
    }
    let mut dotted = declared(json!({}));
    dotted["metadata"]["name"] = "my.logs".into();
    let refused = admin.attempt(&APPLY, &dotted.to_string()).expect_err("a name with a dot");
    assert!(refused.contains("metadata.name cannot be the name of a Service"), "{refused}");
    for name in ["attached", "declared"] {
        admin.run(&["delete", "searchcluster", name, "--namespace", "search"]);
    }
}

pub(super) fn what_is_left_out_has_defaults(admin: &Kubectl) {
    admin.attempt(&APPLY, &smallest().to_string()).expect("the smallest");
    let object = admin.json(&["get", "searchcluster", "small", "--namespace", "search"]);
    assert_eq!(object["spec"]["engine"]["port"], 9200);
    assert_eq!(object["spec"]["manager"]["serverName"], "stayput");
    // The apiserver fills in our defaults: the object is the same as one read without them.
    let ours: SearchCluster = serde_json::from_value(smallest()).expect("the smallest");
    let theirs: SearchCluster = serde_json::from_value(object).expect("what the apiserver has");
    assert_eq!(theirs.spec, ours.spec);
    assert_eq!(theirs.status, None);
    assert_eq!(policy(&theirs), policy(&ours));
}

pub(super) fn limits_are_numbers_or_parts(admin: &Kubectl) {
    let limits = json!({
        "maxUnavailable": "25%", "maxUnavailableOfRole": {"data_hot": 2, "data": "10%"},
    });
    let mut object = with(json!({"restart": limits}));
    object["metadata"]["name"] = "limits".into();
    object["metadata"]["annotations"] = json!({"eck.k8s.elastic.co/disable-upgrade-predicates": "one_master_at_a_time, no_such_name"});
    admin.attempt(&APPLY, &object.to_string()).expect("limits");
    let ours: SearchCluster = serde_json::from_value(object).expect("limits");
    let read = admin.json(&["get", "searchcluster", "limits", "--namespace", "search"]);
    let theirs: SearchCluster = serde_json::from_value(read).expect("what the apiserver has");
    assert_eq!(policy(&theirs), policy(&ours));
    admin.run(&["delete", "searchcluster", "limits", "--namespace", "search"]);
}

pub(super) fn status_and_spec_are_apart(admin: &Kubectl) {
    let of = |object: &Value, field: &str| object["metadata"][field].clone();
    let patch = |subresource: &[&str], patch: Value| {
        let text = patch.to_string();
        let args = ["patch", "scl", "small", "--namespace", "search", "--type=merge", "--patch"];
        admin.json(&[&args[..], &[&text], subresource].concat())
    };
    let before = admin.json(&["get", "scl", "small", "--namespace", "search"]);
    let ignored = patch(&[], json!({"status": {"phase": "Idle"}}));
    assert!(ignored.get("status").is_none(), "{ignored:#}");
    let written = patch(
        &["--subresource=status"],
        json!({
            "spec": {"paused": true},
            "status": {
                "phase": "Restarting", "progress": "rolling 1/3", "message": "has not joined yet",
                "counts": {"pods": 3, "ready": 2, "pendingRestart": 1},
                "conditions": [{"type": "Blocked", "status": "False", "reason": "NothingBlocks",
                    "message": "", "lastTransitionTime": "2026-11-21T03:00:00.000Z"}],
                "ledger": {"clusterUuid": "c", "restart": {
                    "request": {"id": "a"}, "started": "2026-11-21T03:00:00.000Z",
                    "members": [{"podUid": "u", "node": "logs-0",
                        "step": "restarting", "since": "2026-11-21T03:00:00.000Z",
                        "stopSequence": 9_007_199_254_740_990_u64, "startSequence": 9_007_199_254_740_991_u64}],
                }},
                "of another version": 1,
            },
        }),
    );
    assert_eq!(of(&written, "generation"), of(&before, "generation"));
    assert_eq!(written["spec"]["paused"], false);
    assert!(written["status"].get("of another version").is_none(), "it is pruned");
    let read: SearchCluster = serde_json::from_value(written).expect("a SearchCluster");
    let member = &read.status.expect("a status").ledger.restart.expect("a restart").members[0];
    assert_eq!((member.stop_sequence, member.start_sequence), ((1 << 53) - 2, (1 << 53) - 1));
}

pub(super) fn the_list_says_what_is_happening(admin: &Kubectl) {
    let cells = |args: &[&str]| -> Vec<Vec<String>> {
        let printed = admin.run(&[&["get", "scl", "--namespace", "search"], args].concat());
        printed
            .lines()
            .map(|line| line.split("   ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>())
            .map(|line: Vec<String>| line.into_iter().filter(|cell| !cell.is_empty()).collect())
            .collect()
    };
    let list = eventually("the columns are served", || {
        Some(cells(&[])).filter(|list| list[0].contains(&"PHASE".to_owned()))
    });
    assert_eq!(list[0], ["NAME", "PHASE", "RESTART", "BLOCKED", "PODS", "READY", "PENDING", "AGE"]);
    assert_eq!(list[1][..3], ["small", "Restarting", "rolling 1/3"]);
    let wide = cells(&["--output", "wide"]);
    assert_eq!(wide[1].last().map(String::as_str), Some("has not joined yet"));
    let explained = admin.run(&["explain", "searchcluster.spec.restart.drain"]);
    assert!(explained.contains("not ready before its stop signal"), "{explained}");
}
