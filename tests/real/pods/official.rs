//! OpenSearch as the official image has it, which no registry here has: everything at its place,
//! owned by the engine's user. What is large is mounted from the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::fixture::{Fixture, HOME};
use super::nodes::NODES;
use super::opensearch::Parts;
use crate::support::kubernetes::image::Image;

/// A mirror keeps the end of the official name.
pub(super) const IMAGE: &str = "stayput.test/opensearchproject/opensearch:2.19.3";
/// The official one also makes options of variables and sets up plugins, which are not here.
const ENTRYPOINT: &str = "#!/bin/bash\numask 0002\nexec \"$@\"\n";
/// The user that the official image runs as.
pub(super) const USER: u32 = 1000;

/// Makes the image known to the cluster by this name.
pub(super) fn load(fixture: &Fixture, parts: &Parts, name: &str) {
    let options = parts.home.join("config/jvm.options");
    let options = fs::read_to_string(options).expect("the engine's own file");
    load_with(fixture, parts, name, ENTRYPOINT, &options);
}

/// The same with this entrypoint and these `jvm.options`.
pub(super) fn load_with(
    fixture: &Fixture,
    parts: &Parts,
    name: &str,
    entrypoint: &str,
    options: &str,
) {
    let own = tempfile::tempdir().expect("a temp dir");
    let file = |name: &str, text: &str| -> PathBuf {
        let path = own.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let entrypoint = file("entrypoint", entrypoint);
    let options = file("jvm.options", options);
    // An empty directory is no file.
    let logs = file("logs", "");
    let config = |name: &str| parts.home.join("config").join(name);
    let at = |path: &str| format!("{HOME}/{path}");
    let files = [
        (entrypoint, at("opensearch-docker-entrypoint.sh")),
        (config("opensearch.yml"), at("config/opensearch.yml")),
        (options, at("config/jvm.options")),
        (config("log4j2.properties"), at("config/log4j2.properties")),
        (logs, at("logs/.keep")),
    ];
    let files: Vec<(&Path, &str)> =
        files.iter().map(|(from, to)| (from.as_path(), to.as_str())).collect();
    let entrypoint = [files[0].1];
    let image =
        Image { name, files: &files, entrypoint: &entrypoint, directory: HOME, owner: USER };
    fixture.cluster.images.load(&image);
}

/// The `opensearch.yml` of all nodes.
pub(super) fn config(fixture: &Fixture) -> String {
    format!(
        "cluster.name: logs\nnode.name: ${{NODE_NAME}}\nnetwork.host: 0.0.0.0\n\
         discovery.seed_hosts: [{}]\ndiscovery.find_peers_interval: 200ms\n\
         cluster.initial_cluster_manager_nodes: {}\nnode.store.allow_mmap: false\n\
         cluster.routing.allocation.disk.threshold_enabled: false\n",
        fixture.seeds(),
        NODES.join(",")
    )
}

/// What a container mounts from the machine, and its volumes.
pub(super) fn machine(parts: &Parts) -> (Vec<Value>, Vec<Value>) {
    let own = ["bin", "lib", "modules", "plugins"];
    mounts(parts, own.map(|name| (parts.home.join(name), format!("{HOME}/{name}"))))
}

/// What every container mounts from the machine, and these folders; and their volumes.
pub(super) fn mounts(
    parts: &Parts,
    engine: impl IntoIterator<Item = (PathBuf, String)>,
) -> (Vec<Value>, Vec<Value>) {
    let limits = parts.limits.path();
    assert!(limits.metadata().expect("ours").permissions().mode() & 0o005 == 0o005);
    // Not the whole of /usr: the image's own files are in there.
    let folders = [
        ("/usr/bin", "/usr/bin"),
        ("/usr/bin", "/bin"),
        ("/usr/lib", "/usr/lib"),
        ("/usr/lib", "/lib"),
        ("/usr/lib64", "/lib64"),
        ("/etc", "/etc"),
    ];
    let folders = folders.map(|(path, at)| (PathBuf::from(path), at.to_owned()));
    let folders = engine.into_iter().chain(folders);
    let (mut mounts, mut volumes) = (Vec::new(), Vec::new());
    for (index, (from, at)) in
        folders.chain([(limits.to_owned(), "/limits".to_owned())]).enumerate()
    {
        let name = format!("machine-{index}");
        mounts.push(json!({ "name": name, "mountPath": at, "readOnly": true }));
        volumes.push(json!({ "name": name, "hostPath": { "path": from, "type": "Directory" } }));
    }
    (mounts, volumes)
}

/// What the engine and its JVM need besides.
pub(super) fn variables(parts: &Parts) -> Vec<Value> {
    vec![
        json!({ "name": "OPENSEARCH_JAVA_HOME", "value": parts.java }),
        json!({ "name": "PATH", "value": format!("{HOME}/bin:/usr/bin:/bin") }),
        json!({ "name": "LD_PRELOAD", "value": "/limits/limits.so" }),
    ]
}

/// The engines as users have them before they install stayput; their StatefulSet replaces no pod
/// by itself.
pub(super) fn stateful_set(parts: &Parts) -> Value {
    let (mut mounts, mut volumes) = machine(parts);
    mounts.extend([
        json!({ "name": "config", "mountPath": format!("{HOME}/config/opensearch.yml"),
                "subPath": "opensearch.yml" }),
        json!({ "name": "data", "mountPath": format!("{HOME}/data") }),
        json!({ "name": "tmp", "mountPath": "/tmp" }),
    ]);
    volumes.extend([
        json!({ "name": "config", "secret": { "secretName": "logs-config" } }),
        json!({ "name": "data", "emptyDir": {} }),
        json!({ "name": "tmp", "emptyDir": {} }),
    ]);
    let mut env = variables(parts);
    env.extend([
        json!({ "name": "NODE_NAME",
                "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }),
        json!({ "name": "OPENSEARCH_JAVA_OPTS",
                "value": "-Xms128m -Xmx128m -XX:TieredStopAtLevel=1" }),
    ]);
    super::stateful_set::stateful_set(&json!({
        "automountServiceAccountToken": false,
        "securityContext": { "runAsUser": USER, "fsGroup": USER },
        "containers": [{
            "name": "opensearch",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "args": ["opensearch"],
                        "env": env,
                        "resources": { "requests": { "cpu": "500m" } },
            "ports": [{ "name": "http", "containerPort": 9200 }],
            "readinessProbe": {
                "httpGet": { "path": "/_cluster/health?wait_for_nodes=3", "port": "http" },
                "timeoutSeconds": 5,
                "periodSeconds": 1,
            },
            "volumeMounts": mounts,
        }],
        "volumes": volumes,
    }))
}
