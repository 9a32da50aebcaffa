//! Which Secrets and ConfigMaps are found, and how a change of them arrives.

use serde_json::{Value, json};

use super::template;
use crate::{SourceKind, uses};

/// Each use as `Kind name key arrival`, sorted.
fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut template = template();
    change(&mut template);
    uses(&template, "opensearch")
        .into_iter()
        .map(|each| {
            let kind = match each.source.kind {
                SourceKind::Secret => "Secret",
                SourceKind::ConfigMap => "ConfigMap",
            };
            let key = each.key.unwrap_or("*".to_owned());
            format!("{kind} {} {key} {:?}", each.source.name, each.arrival)
        })
        .collect()
}

fn mounts(all: &mut Value, mounts: Value, volumes: Value) {
    all["spec"]["containers"][0]["volumeMounts"] = mounts;
    all["spec"]["volumes"] = volumes;
}

#[test]
fn a_mounted_volume() {
    assert_eq!(found(|_| {}), ["Secret logs-config * Mounted"]);
}

#[test]
fn only_the_items_that_are_mounted() {
    let config_map =
        json!({"name": "c", "items": [{"key": "a", "path": "x/a.yml"}, {"key": "b", "path": "b"}]});
    let volumes = json!([{"name": "v", "configMap": config_map}]);
    let whole = json!([{"name": "v", "mountPath": "/v"}]);
    let part = json!([{"name": "v", "mountPath": "/v", "subPath": "x/a.yml"}]);
    assert_eq!(
        found(|all| mounts(all, whole, volumes.clone())),
        ["ConfigMap c a Mounted", "ConfigMap c b Mounted"]
    );
    assert_eq!(found(|all| mounts(all, part, volumes.clone())), ["ConfigMap c a NewContainer"]);
    // A directory that is made of items.
    for directory in ["x", "x/"] {
        let part = json!([{"name": "v", "mountPath": "/v", "subPath": directory}]);
        let found = found(|all| mounts(all, part, volumes.clone()));
        assert_eq!(found, ["ConfigMap c a NewContainer"], "{directory}");
    }
    let other = json!([{"name": "v", "mountPath": "/v", "subPath": "x/a"}]);
    assert_eq!(found(|all| mounts(all, other, volumes)), [""; 0]);
}

#[test]
fn a_sub_path_is_the_key_of_that_name() {
    let volumes = json!([{"name": "v", "secret": {"secretName": "s"}}]);
    for path in ["opensearch.yml", "./opensearch.yml", "opensearch.yml/"] {
        let part = json!([{"name": "v", "mountPath": "/v", "subPath": path}]);
        let found = found(|all| mounts(all, part, volumes.clone()));
        assert_eq!(found, ["Secret s opensearch.yml NewContainer"], "{path}");
    }
    let whole = json!([{"name": "v", "mountPath": "/v", "subPath": "."}]);
    assert_eq!(found(|all| mounts(all, whole, volumes)), ["Secret s * NewContainer"]);
}

#[test]
fn all_sources_of_a_projected_volume() {
    let sources = json!([
        {"secret": {"name": "s"}},
        {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
        {"serviceAccountToken": {"path": "token"}},
        {"downwardAPI": {"items": []}}
    ]);
    let volumes = json!([{"name": "v", "projected": {"sources": sources}}]);
    let mount = json!([{"name": "v", "mountPath": "/v"}]);
    assert_eq!(
        found(|all| mounts(all, mount, volumes)),
        ["ConfigMap c k Mounted", "Secret s * Mounted"]
    );
}

#[test] // proves UPDATE-60
fn variables_and_whole_environments() {
    let variables = json!([
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "b"}}},
        {"name": "C", "value": "c"}
    ]);
    let found = found(|all| {
        mounts(all, json!([]), json!([]));
        all["spec"]["containers"][0]["env"] = variables;
        all["spec"]["containers"][0]["envFrom"] =
            json!([{"secretRef": {"name": "e"}}, {"configMapRef": {"name": "f"}}]);
    });
    assert_eq!(
        found,
        [
            "ConfigMap c b NewContainer",
            "ConfigMap f * NewContainer",
            "Secret e * NewContainer",
            "Secret s a NewContainer",
        ]
    );
}

#[test]
fn what_init_containers_read_needs_another_pod_unless_the_engine_reads_it_too() {
    let keystore =
        json!([{"name": "keystore", "mountPath": "/k"}, {"name": "config", "mountPath": "/c"}]);
    let found = found(|all| {
        all["spec"]["initContainers"][0]["volumeMounts"] = keystore;
        let volumes = all["spec"]["volumes"].as_array_mut().expect("a list");
        volumes.push(json!({"name": "keystore", "secret": {"secretName": "secure"}}));
    });
    assert_eq!(found, ["Secret logs-config * Mounted", "Secret secure * NewPod"]);
}

/// ECK's scripts are in a ConfigMap that the engine's container mounts for its hooks.
#[test] // proves UPDATE-88
fn a_script_of_an_init_container_needs_another_pod_though_the_engine_mounts_it_too() {
    let of = |command: Value, mount: Value, items: Value| {
        found(|all| {
            all["spec"]["initContainers"][0]["command"] = command;
            all["spec"]["initContainers"][0]["volumeMounts"] = json!([mount]);
            let volumes = all["spec"]["volumes"].as_array_mut().expect("a list");
            volumes.push(json!({"name": "scripts", "configMap": {"name": "s", "items": items}}));
            let mounts = all["spec"]["containers"][0]["volumeMounts"].as_array_mut();
            mounts.expect("a list").push(json!({"name": "scripts", "mountPath": "/mine"}));
        })
    };
    let mount = || json!({"name": "scripts", "mountPath": "/scripts/"});
    let items = json!([{"key": "prepare", "path": "a/prepare.sh"}, {"key": "b", "path": "b"}]);
    let mounted = ["ConfigMap s * Mounted", "Secret logs-config * Mounted"];
    let of_items =
        ["ConfigMap s b Mounted", "ConfigMap s prepare Mounted", "Secret logs-config * Mounted"];
    for (command, mount, items, expected) in [
        (json!(["bash", "-c", "/scripts/prepare.sh"]), mount(), Value::Null, &mounted[..]),
        (json!(["/scripts/./a/prepare.sh"]), mount(), items.clone(), &of_items[..]),
    ] {
        let found = of(command, mount, items);
        let (once, others): (Vec<String>, Vec<String>) =
            found.into_iter().partition(|used| used.ends_with("NewPod"));
        let key = if others.len() == 2 { "prepare.sh" } else { "prepare" };
        assert_eq!(once, [format!("ConfigMap s {key} NewPod")]);
        assert_eq!(others, expected);
    }
    let elsewhere = json!({"name": "scripts", "mountPath": "/elsewhere"});
    for (command, mount) in [
        (json!(["sh", "-c", "prepare.sh"]), mount()),
        (json!(["/script"]), mount()),
        (json!(["cp", "-r", "/scripts", "/mine"]), mount()),
        (json!(["/scripts/prepare.sh"]), elsewhere),
    ] {
        assert_eq!(of(command, mount, Value::Null), mounted);
    }
}

#[test] // proves UPDATE-67
fn what_other_containers_read_is_theirs() {
    let found = found(|all| {
        let reference = json!({"secretKeyRef": {"name": "password", "key": "p"}});
        for (list, index) in [("containers", 1), ("initContainers", 1)] {
            all["spec"][list][index]["env"] = json!([{"name": "P", "valueFrom": reference}]);
        }
    });
    assert_eq!(found, ["Secret logs-config * Mounted"]);
    let mut all = template();
    let reference = json!({"secretKeyRef": {"name": "password", "key": "p"}});
    all["spec"]["initContainers"][1]["env"] = json!([{"name": "P", "valueFrom": reference}]);
    let own: Vec<String> = uses(&all, "proxy").into_iter().map(|used| used.field).collect();
    assert_eq!(own, ["spec.initContainers[proxy].env[P]"], "of a sidecar");
}

#[test]
fn what_admission_mounts_for_the_apiserver_is_left_to_its_clients() {
    let found = found(|all| {
        let path = "/var/run/secrets/kubernetes.io/serviceaccount";
        let mount = json!([{"name": "kube-api-access-x", "mountPath": path}]);
        all["spec"]["initContainers"][0]["volumeMounts"] = mount;
        let sources = json!([{"configMap": {"name": "kube-root-ca.crt"}}]);
        let volumes = all["spec"]["volumes"].as_array_mut().expect("a list");
        volumes.push(json!({"name": "kube-api-access-x", "projected": {"sources": sources}}));
    });
    assert_eq!(found, ["Secret logs-config * Mounted"]);
}
