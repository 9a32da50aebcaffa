//! A SearchCluster whose engine and JVM are mounted from the machine, because there is no registry
//! with the official image.

use std::path::Path;

use serde_json::{Value, json};

use super::STAYPUT;
use crate::pods::fixture::{ENGINE, Fixture};
use crate::pods::opensearch::{Parts, shared_archive};
use crate::pods::stateful_set::claim;
use crate::support::archive;
use crate::support::engine::{Kind, own_files, variables};

/// Where the data is.
const WORK: &str = "/data";
/// The Secret with the files that the image has beside the main one.
const FILES: &str = "image-files";

pub(super) fn image_files(fixture: &Fixture, parts: &Parts) {
    let [mut options, log4j] = own_files(&parts.home, Path::new(WORK));
    if parts.kind == Kind::OpenSearch {
        options += &archive::option(shared_archive());
    }
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

/// Where the engine is in its container: OpenSearch at the path that its archive was made for.
fn home(parts: &Parts) -> &str {
    match parts.kind {
        Kind::OpenSearch => parts.home.to_str().expect("UTF-8"),
        Kind::Elasticsearch => "/engine",
    }
}

fn template(parts: &Parts) -> Value {
    let name = parts.kind.name();
    let home = home(parts);
    let mut host = vec![
        ("usr", Path::new("/usr"), "/usr"),
        ("bin", Path::new("/usr/bin"), "/bin"),
        ("lib", Path::new("/usr/lib"), "/lib"),
        ("lib64", Path::new("/usr/lib64"), "/lib64"),
        ("etc", Path::new("/etc"), "/etc"),
        ("engine", &parts.home, home),
        ("limits", parts.limits.path(), "/limits"),
    ];
    if parts.kind == Kind::OpenSearch {
        let archive = shared_archive();
        host.push(("archive", archive, archive.to_str().expect("UTF-8")));
    }
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
                "command": [STAYPUT, "run", "--", format!("{home}/bin/{name}")],
                "env": environment,
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        },
    })
}
