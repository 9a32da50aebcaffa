//! An `Elasticsearch`, and its image as far as ECK needs it: its files at their places, owned by the engine's
//! user. What is large is mounted from the machine.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::pods::fixture::Fixture;
use crate::pods::official::mounts;
use crate::pods::opensearch::Parts;
use crate::pods::stateful_set::claim;
use crate::support::kubernetes::image::Image;

/// A mirror keeps the end of the official name.
pub(super) const IMAGE: &str = "stayput.test/elasticsearch/elasticsearch:8.19.0";
const HOME: &str = "/usr/share/elasticsearch";
const ENTRYPOINT: &str = "/usr/local/bin/docker-entrypoint.sh";
/// The official one also makes options of variables. Its argument `eswrapper` is the engine.
const SCRIPT: &str =
    "#!/bin/bash\numask 0002\ncd /usr/share/elasticsearch\nexec bin/elasticsearch\n";
/// In the image `nc` is a program; ECK's own readiness probe asks it whether a port is open.
const NETCAT: &str = "#!/bin/bash\nexec 3<>\"/dev/tcp/${@: -2:1}/${@: -1}\"\n";
/// As ECK calls the volume with the data.
pub(super) const DATA: &str = "elasticsearch-data";
/// The user that the official image runs as.
const USER: u32 = 1000;
/// Of the image: ECK copies these, and looks at the licence.
const FILES: [&str; 3] = ["bin", "config", "LICENSE.txt"];

/// Makes the image known to the cluster.
pub(super) fn load(fixture: &Fixture, parts: &Parts) {
    let own = tempfile::tempdir().expect("a temp dir");
    let file = |name: &str, text: &str| -> PathBuf {
        let path = own.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let mut files = vec![(file("entrypoint", SCRIPT), ENTRYPOINT.to_owned())];
    files.push((file("nc", NETCAT), "/usr/local/bin/nc".to_owned()));
    // An empty directory is no file.
    files.push((file("logs", ""), format!("{HOME}/logs/.keep")));
    for name in FILES {
        let from = parts.home.join(name);
        if from.is_file() {
            files.push((from, format!("{HOME}/{name}")));
            continue;
        }
        for entry in fs::read_dir(&from).expect("a directory") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
            if path.is_file() && !file.ends_with(".bat") && !file.ends_with(".exe") {
                files.push((path.clone(), format!("{HOME}/{name}/{file}")));
            }
        }
    }
    let files: Vec<(&Path, &str)> =
        files.iter().map(|(from, to)| (from.as_path(), to.as_str())).collect();
    let image = Image {
        name: IMAGE,
        files: &files,
        entrypoint: &[ENTRYPOINT],
        directory: HOME,
        owner: USER,
    };
    fixture.cluster.images.load(&image);
}

/// Three nodes, as users have them before stayput comes, with what this machine needs.
pub(super) fn three_nodes(parts: &Parts) -> Value {
    let large = ["lib", "modules"].map(|name| (parts.home.join(name), format!("{HOME}/{name}")));
    let (mounts, volumes) = mounts(parts, large);
    let mut claim = claim();
    claim["metadata"]["name"] = json!(DATA);
    let environment = [
        ("ES_JAVA_HOME", parts.java.to_str().expect("UTF-8")),
        ("ES_JAVA_OPTS", "-Xms512m -Xmx512m -XX:TieredStopAtLevel=1"),
        ("CLI_JAVA_OPTS", "-XX:TieredStopAtLevel=1"),
        ("LD_PRELOAD", "/limits/limits.so"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        // No client is behind a proxy here that has to learn that a pod goes.
        ("PRE_STOP_ADDITIONAL_WAIT_SECONDS", "0"),
        ("PRE_STOP_MAX_DNS_ERRORS", "0"),
    ];
    let environment: Vec<Value> =
        environment.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    json!({
        "apiVersion": "elasticsearch.k8s.elastic.co/v1",
        "kind": "Elasticsearch",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "version": "8.19.0",
            "image": IMAGE,
            "nodeSets": [{
                "name": "default",
                "count": 3,
                "volumeClaimTemplates": [claim],
                "config": {
                    // There is no DNS.
                    "http.publish_host": "${POD_IP}",
                    "discovery.find_peers_interval": "200ms",
                    "node.store.allow_mmap": false,
                    "cluster.routing.allocation.disk.threshold_enabled": false,
                    "xpack.ml.enabled": false,
                },
                "podTemplate": {
                    "metadata": { "labels": { "app": "logs" } },
                    "spec": {
                        "containers": [{
                            "name": "elasticsearch",
                            "env": environment,
                            "resources": {
                                "requests": { "cpu": "100m", "memory": "1536Mi" },
                                "limits": { "memory": "1536Mi" },
                            },
                            "volumeMounts": mounts,
                        }],
                        "volumes": volumes,
                    },
                },
            }],
        },
    })
}
