//! Invalid specs and the messages about them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use stayput_restart::{Disabled, OnConfigChange, Policy, Predicate, Share, UpdateStep, annotation};

use crate::cluster::check::Invalid;
use crate::cluster::sources::Auth;
use crate::cluster::spec::SearchCluster;
use crate::cluster::tests::{read, set, smallest, with};

/// What restarts are allowed to do.
fn policy(cluster: &SearchCluster) -> Result<Policy, Vec<Invalid>> {
    cluster.check().map(|checked| checked.policy)
}

/// What is changed in the smallest spec, and the expected message.
#[test] // proves RESTART-154
fn every_fault_is_named_with_its_field_and_its_remedy() {
    let source = |more: serde_json::Value| json!([more]);
    let table = [
        ("pods/selector", json!({}), "spec.pods.selector: is empty", "write a label"),
        (
            "pods/selector",
            json!({"matchLabels": {}}),
            "spec.pods.selector: is empty",
            "write a label",
        ),
        (
            "pods/selector",
            json!({"matchExpressions": [{"key": "app", "operator": "Like"}]}),
            "spec.pods.selector: ",
            "use the operators In, NotIn, Exists and DoesNotExist",
        ),
        ("engine", json!({}), "spec.engine.caSecret: is missing", "set engine.scheme to http"),
        (
            "engine/credentialsSecret",
            json!("logs-admin"),
            "spec.engine.credentialsSecret: would be sent over plain http",
            "engine.allowPlainCredentials to true",
        ),
        (
            "engine/serverName",
            json!("not a name"),
            "spec.engine.serverName: \"not a name\"",
            "write the DNS name",
        ),
        (
            "manager/serverName",
            json!("a b"),
            "spec.manager.serverName: \"a b\"",
            "write the DNS name",
        ),
        ("manager/caSecret", json!(null), "spec.manager.caSecret: is missing", "name the Secret"),
        (
            "engine/version",
            json!("2.19.3"),
            "spec.engine.version: is for spec.nodeSets",
            "Take it out",
        ),
        ("engine/warm", json!(true), "spec.engine.warm: is for spec.nodeSets", "inject --warm"),
        (
            "manager/auth",
            json!({}),
            "spec.manager.auth: needs exactly one",
            "serviceAccountToken: {}",
        ),
        (
            "manager/auth",
            json!({"serviceAccountToken": {}, "jwtKeySecret": "key"}),
            "spec.manager.auth: needs exactly one",
            "serviceAccountToken: {}",
        ),
        (
            "config",
            json!({"sources": source(json!({}))}),
            "spec.config.sources[0]: needs exactly one",
            "secret and configMap",
        ),
        (
            "config",
            json!({"sources": source(json!({"secret": "a", "configMap": "b"}))}),
            "spec.config.sources[0]: needs exactly one",
            "secret and configMap",
        ),
        (
            "config",
            json!({"sources": source(json!({"secret": "{node}-config"}))}),
            "spec.config.sources[0]: \"{node}-config\" has a brace",
            "only the pod's name",
        ),
        (
            "config",
            json!({"sources": source(json!({"secret": "a", "directory": "etc/x"}))}),
            "spec.config.sources[0].directory: \"etc/x\"",
            "--config NAME=DIR",
        ),
        (
            "config",
            json!({"sources": source(json!({"secret": "a", "items": [{"key": "k", "path": "../k"}]}))}),
            "spec.config.sources[0].items[0].path: \"../k\"",
            "write one such as",
        ),
        (
            "config",
            json!({"sources": source(json!({"secret": "a", "items": [{"key": "k", "path": "/k"}]}))}),
            "spec.config.sources[0].items[0].path: \"/k\"",
            "write one such as",
        ),
        (
            "config",
            json!({"sources": [{"secret": "a"}, {"secret": "a"}]}),
            "spec.config.sources[1]: is there twice",
            "remove it",
        ),
        (
            "config",
            json!({"sources": [{"secret": "a"}, {"secret": "b", "directory": "certs"}]}),
            "spec.config.sources: some have a directory",
            "--config NAME=DIR",
        ),
        (
            "config",
            json!({"live": ["ok", "a***"]}),
            "spec.config.live[1]: \"a***\" is no pattern",
            "at character",
        ),
        ("restart", json!({"maxUnavailable": 0}), "spec.restart.maxUnavailable: is 0,", "write 1"),
        (
            "restart",
            json!({"maxUnavailable": "0%"}),
            "spec.restart.maxUnavailable: is 0%,",
            "write 1% or more",
        ),
        (
            "restart",
            json!({"maxUnavailable": "a quarter"}),
            "spec.restart.maxUnavailable: \"a quarter\" is neither",
            "\"25%\"",
        ),
        (
            "restart",
            json!({"maxUnavailableOfRole": {"data": 1, "data_hot": "0%"}}),
            "spec.restart.maxUnavailableOfRole.data_hot: is 0%,",
            "write 1% or more",
        ),
        (
            "restart",
            json!({"maxUnavailableOfRole": {"data ": 1}}),
            "spec.restart.maxUnavailableOfRole.data : \"data \" is no role",
            "write one such as data_hot",
        ),
        (
            "restart",
            json!({"phaseTimeout": "soon"}),
            "spec.restart.phaseTimeout: \"soon\"",
            "\"90s\"",
        ),
        ("restart", json!({"drain": "25h"}), "spec.restart.drain: \"25h\"", "longer than a day"),
        (
            "restart",
            json!({"drain": "15m"}),
            "spec.restart.drain: 15m leaves nothing",
            "make it shorter",
        ),
        (
            "update",
            json!({"mode": "inPlace", "allow": []}),
            "spec.update.allow: is empty",
            "update.mode to off",
        ),
    ];
    for (pointer, value, says, remedy) in table {
        let problems = policy(&read(with(pointer, value.clone()))).unwrap_err();
        let [problem] = &problems[..] else { panic!("{pointer} = {value}: {problems:?}") };
        let message = problem.to_string();
        assert!(message.starts_with(says), "{pointer} = {value}: {message}");
        assert!(message.contains(remedy), "{pointer} = {value}: {message}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let mut object = smallest();
    set(&mut object, "pods/selector", json!({}));
    set(&mut object, "manager/auth", json!({}));
    set(&mut object, "restart", json!({"phaseTimeout": "x", "drain": "y"}));
    let problems = read(object).check().unwrap_err();
    let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.pods.selector",
            "spec.manager.auth",
            "spec.restart.phaseTimeout",
            "spec.restart.drain"
        ]
    );
}

#[test]
fn the_smallest_spec_has_the_defaults_of_the_policy() {
    assert_eq!(policy(&read(smallest())), Ok(Policy::default()));
}

#[test]
fn everything_said_about_restarts_reaches_the_policy() {
    let mut object = smallest();
    set(
        &mut object,
        "restart",
        json!({
            "maxUnavailable": "25%", "maxUnavailableOfRole": {"data_hot": 2, "data": "10%"},
            "zoneAttribute": "rack", "allowOutage": true, "phaseTimeout": "1m 30s", "drain": "0s",
            "onConfigChange": "coordinated", "rollback": false,
        }),
    );
    object["metadata"]["annotations"] = json!({annotation::DISABLE: "one_master_at_a_time"});
    set(&mut object, "config", json!({"sources": [{"secret": "{pod}-config"}]}));
    set(&mut object, "update", json!({"mode": "inPlace", "allow": ["replace", "relabel"]}));
    let expected = Policy {
        update: BTreeSet::from([UpdateStep::Relabel, UpdateStep::Replace]),
        max_unavailable: Share::Percent(25),
        max_unavailable_of_role: BTreeMap::from([
            ("data".into(), Share::Percent(10)),
            ("data_hot".into(), Share::Nodes(2)),
        ]),
        disabled: Disabled::by_annotation("one_master_at_a_time"),
        zone_attribute: "rack".into(),
        allow_outage: true,
        phase_timeout: 90_000,
        drain: stayput_restart::Drain::Fixed(0),
        on_config_change: OnConfigChange::Coordinated,
        rollback: false,
    };
    assert_eq!(policy(&read(object)), Ok(expected));
}

/// A pod is deleted only where somebody has written so.
#[test] // proves UPDATE-54
fn templates_are_carried_out_only_if_asked_for_and_pods_deleted_only_if_named() {
    let update = |value| policy(&read(with("update", value))).unwrap().update;
    assert_eq!(update(json!({"allow": ["replace"]})), BTreeSet::new());
    let all_but_replace =
        [UpdateStep::Relabel, UpdateStep::Restart, UpdateStep::Container, UpdateStep::Resize];
    assert_eq!(update(json!({"mode": "inPlace"})), BTreeSet::from(all_but_replace));
    let named = json!({"mode": "inPlace", "allow": ["restart", "replace"]});
    assert_eq!(update(named), BTreeSet::from([UpdateStep::Restart, UpdateStep::Replace]));
}

#[test]
fn what_the_annotation_disables_is_disabled_and_its_faults_are_none_of_the_spec() {
    let mut object = smallest();
    let names = "one_master_at_a_time, require_started_replica, b";
    object["metadata"]["annotations"] = json!({annotation::DISABLE: names});
    let cluster = read(object);
    let disabled = policy(&cluster).unwrap().disabled;
    assert_eq!(
        disabled.iter().collect::<Vec<_>>(),
        [Predicate::StartedReplica, Predicate::OneMaster]
    );
    let unknown = disabled.unknown().unwrap();
    assert!(unknown.contains("\"b\" in eck.k8s.elastic.co/"), "{unknown}");
    let salvaged = cluster.salvage().unwrap().policy.disabled;
    assert_eq!(salvaged, disabled, "a mistake elsewhere does not change what is disabled");
}

#[test]
fn each_way_to_say_who_we_are_is_understood() {
    let auth = |value| read(with("manager/auth", value)).check().unwrap().auth;
    assert_eq!(auth(json!({"serviceAccountToken": {}})), Auth::ServiceAccountToken);
    assert_eq!(auth(json!({"jwtKeySecret": "k"})), Auth::JwtKey { secret: "k".into() });
    assert_eq!(
        auth(json!({"clientCertificateSecret": "c"})),
        Auth::ClientCertificate { secret: "c".into() }
    );
}

#[test]
fn credentials_over_plain_http_need_a_word() {
    let mut object = with("engine/credentialsSecret", json!("logs-admin"));
    set(&mut object, "engine/allowPlainCredentials", json!(true));
    assert!(read(object).check().is_ok());
    let https = json!({"caSecret": "logs-ca", "credentialsSecret": "logs-admin"});
    assert!(read(with("engine", https)).check().is_ok());
    // They are sent once the engine has TLS.
    let later = json!({"scheme": "http", "caSecret": "logs-ca", "credentialsSecret": "logs-admin"});
    assert!(read(with("engine", later)).check().is_ok());
}

#[test]
fn the_selector_finds_by_labels_and_expressions() {
    let selector = json!({
        "matchLabels": {"app": "logs"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["frozen"]}],
    });
    let checked = read(with("pods/selector", selector)).check().unwrap();
    assert_eq!(checked.pods.to_string(), "app=logs,tier notin (frozen)");
}
