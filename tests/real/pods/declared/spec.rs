//! A SearchCluster whose engine and JVM are mounted from the machine, because there is no registry
//! with the official image.

use std::path::Path;

use serde_json::{Value, json};

use super::STAYPUT;
use crate::pods::fixture::{ENGINE, Fixture};
use crate::pods::opensearch::Parts;
use crate::pods::stateful_set::claim;
use crate::support::engine::{Kind, own_files, variables};

/// Where the data is.
const WORK: &str = "/data";
/// The Secret with the files that the image has beside the main one.
const FILES: &str = "image-files";

pub(super) fn image_files(fixture: &Fixture, parts: &Parts) {
    let [options, log4j] = own_files(&parts.home, Path::new(WORK));
    fixture.secret(FILES, &[("jvm.options", &options), ("log4j2.properties", &log4j)]);
}

/// With one set, and these settings besides those that the machine needs.
pub(super) fn declared(
    fixture: &Fixture,
    parts: &Parts,
    set: &str,
    count: u32,
    settings: &Value,
) -> Value {
    let version = match parts.kind {
        Kind::OpenSearch => "2.19.3",
        Kind::Elasticsearch => "8.19.0",
    };
    let seeds: Value = serde_json::from_str(&format!("[{}]", fixture.seeds())).expect("JSON");
    let mut config = json!({
        "discovery.seed_hosts": seeds,
        "discovery.find_peers_interval": "200ms",
        "path": { "data": format!("{WORK}/data"), "logs": format!("{WORK}/logs") },
        "node.store.allow_mmap": false,
        "cluster.routing.allocation.disk.threshold_enabled": false,
    });
    for (name, value) in settings.as_object().expect("settings") {
        config[name] = value.clone();
    }
    json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "engine": {
                "scheme": "http",
                "distribution": parts.kind.name(),
                "version": version,
                "image": ENGINE,
            },
            "nodeSets": [{
                "name": set,
                "count": count,
                "config": config,
                "podTemplate": template(parts),
            }],
        },
    })
}

/// The same with the data of its nodes on claims.
pub(super) fn with_claims(mut cluster: Value) -> Value {
    let set = &mut cluster["spec"]["nodeSets"][0];
    set["volumeClaimTemplates"] = json!([claim()]);
    let volumes = set["podTemplate"]["spec"]["volumes"].as_array_mut().expect("a list");
    volumes.retain(|volume| volume["name"] != "data");
    cluster
}

fn template(parts: &Parts) -> Value {
    let name = parts.kind.name();
    let host = [
        ("usr", Path::new("/usr"), "/usr"),
        ("bin", Path::new("/usr/bin"), "/bin"),
        ("lib", Path::new("/usr/lib"), "/lib"),
        ("lib64", Path::new("/usr/lib64"), "/lib64"),
        ("etc", Path::new("/etc"), "/etc"),
        ("engine", &parts.home, "/engine"),
        ("limits", parts.limits.path(), "/limits"),
    ];
    let mut mounts: Vec<Value> = host
        .iter()
        .map(|(name, _, at)| json!({ "name": name, "mountPath": at, "readOnly": true }))
        .collect();
    mounts.push(json!({ "name": "config", "mountPath": "/config" }));
    let mut volumes: Vec<Value> = host
        .iter()
        .map(|(name, from, _)| json!({ "name": name, "hostPath": { "path": from } }))
        .collect();
    for name in ["data", "config", "tmp"] {
        volumes.push(json!({ "name": name, "emptyDir": {} }));
    }
    volumes.push(json!({ "name": "files", "secret": { "secretName": FILES } }));

    let mut copies = mounts.clone();
    copies.push(json!({ "name": "files", "mountPath": "/files", "readOnly": true }));
    mounts.extend([
        json!({ "name": "data", "mountPath": WORK }),
        json!({ "name": "tmp", "mountPath": "/tmp" }),
        json!({ "$patch": "delete", "mountPath": format!("/usr/share/{name}/data") }),
    ]);
    let ready = "http://127.0.0.1:9200/_cluster/health?master_timeout=500ms&timeout=500ms";
    let environment = [
        ("STAYPUT_READY", ready),
        ("STAYPUT_STAGE", "/stayput-config=/config"),
        ("STAYPUT_TMP_DIR", "/tmp"),
        ("LD_PRELOAD", "/limits/limits.so"),
        ("PATH", "/usr/bin:/bin"),
    ];
    let mut environment: Vec<Value> =
        environment.map(|(name, value)| json!({ "name": name, "value": value })).into();
    // The config is in `/config`.
    let engine = variables(parts.kind, parts.java.as_os_str(), Path::new("/"));
    environment.extend(engine.into_iter().map(
        |(name, value)| json!({ "name": name, "value": value.into_string().expect("UTF-8") }),
    ));
    json!({
        "metadata": { "labels": { "app": "logs" } },
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "initContainers": [{
                "name": "files",
                "image": ENGINE,
                "imagePullPolicy": "Never",
                "command": ["/bin/cp", "/files/jvm.options", "/files/log4j2.properties", "/config/"],
                "volumeMounts": copies,
            }],
            "containers": [{
                "name": name,
                "imagePullPolicy": "Never",
                "command": [STAYPUT, "run", "--", format!("/engine/bin/{name}")],
                "env": environment,
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        },
    })
}
