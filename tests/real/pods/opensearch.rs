//! Pods with real engines: the engine and its JVM are mounted from the machine, because there is no registry
//! with the official image.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::fixture::{Fixture, MANAGER};
use super::nodes::NODES;
use crate::support::archive;
use crate::support::engine::{Kind, home, own_files};
use crate::support::skip;

/// The engine's own directory in the pod.
const WORK: &str = "/data";
/// An engine that other nodes can reach requires 65,535 descriptors, which root may not raise on
/// every machine: a library makes this one see a higher limit.
const LIMITS: &str = r"
#define _GNU_SOURCE
#include <dlfcn.h>
struct limit { unsigned long now, most; };
static int ask(const char *name, int what, struct limit *limit) {
    int (*real)(int, struct limit *) = (int (*)(int, struct limit *)) dlsym(RTLD_NEXT, name);
    int result = real(what, limit);
    /* RLIMIT_NOFILE */
    if (result == 0 && what == 7) limit->now = limit->most = 65536;
    return result;
}
int getrlimit(int what, struct limit *limit) { return ask(__func__, what, limit); }
int getrlimit64(int what, struct limit *limit) { return ask(__func__, what, limit); }
";

/// What the engine's JVM starts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jvm {
    Cold,
    /// The archive of class data that the engine's tests have in common.
    Warm,
}

/// The directories of the machine that the pods mount.
pub(super) struct Parts {
    pub(super) kind: Kind,
    pub(super) home: PathBuf,
    pub(super) java: PathBuf,
    pub(super) limits: TempDir,
}

impl Parts {
    /// Those of OpenSearch; `Err` names what is missing here.
    pub(super) fn find() -> Result<Self, String> {
        Self::of(Kind::OpenSearch)
    }

    /// Those of this engine, and a cluster of Kubernetes whose pods have this PodSecurity. None if
    /// something is missing here; then the test is skipped.
    pub(super) fn lay(test: &str, kind: Kind, policy: &str) -> Option<(Self, Fixture)> {
        let laid = Self::of(kind).and_then(|parts| Ok((parts, Fixture::lay(policy)?)));
        laid.map_err(|why| skip(test, &why)).ok()
    }

    /// Those of this engine; `Err` names what is missing here.
    pub(super) fn of(kind: Kind) -> Result<Self, String> {
        let home = home(kind).ok_or_else(|| format!("{} is not installed", kind.name()))?;
        let java = std::env::var_os("JAVA_HOME").map(PathBuf::from).ok_or("no JAVA_HOME")?;
        Ok(Self { kind, home, java, limits: limits() })
    }

    /// The config of a node of OpenSearch that finds the others at `seeds`.
    pub(super) fn files(
        &self,
        name: &str,
        seeds: &str,
        round: &str,
        jvm: Jvm,
    ) -> [(&'static str, String); 3] {
        let [mut options, log4j] = own_files(&self.home, Path::new(WORK));
        if jvm == Jvm::Warm {
            options += &archive::option(shared_archive());
        }
        // With the default of 30 s for connections, a stop soon after a pod was deleted takes up to
        // that long (docs/warm.md).
        let yml = format!(
            "cluster.name: logs\nnode.name: {name}\nnetwork.host: 0.0.0.0\n\
             discovery.seed_hosts: [{seeds}]\ndiscovery.find_peers_interval: 200ms\n\
             cluster.initial_cluster_manager_nodes: {}\n\
             path.data: {WORK}/data\npath.logs: {WORK}/logs\nnode.store.allow_mmap: false\n\
             cluster.routing.allocation.disk.threshold_enabled: false\n\
             transport.connect_timeout: 5s\n\
             node.attr.round: {round}\n",
            NODES.join(",")
        );
        [("opensearch.yml", yml), ("jvm.options", options), ("log4j2.properties", log4j)]
    }

    /// The same pod with real OpenSearch, at the path that its archive was made for.
    pub(super) fn real(&self, mut pod: Value) -> Value {
        let container = &mut pod["spec"]["containers"][0];
        let home = self.home.to_str().expect("UTF-8");
        let archive = shared_archive().to_str().expect("UTF-8");
        container["command"] = json!([MANAGER, "run", "--", format!("{home}/bin/opensearch")]);
        let ready = "http://127.0.0.1:9200/_cluster/health?master_timeout=500ms&timeout=500ms";
        let env = container["env"].as_array_mut().expect("a list");
        env.retain(|variable| variable["name"] != "STAYPUT_READY");
        for (name, value) in [
            ("STAYPUT_READY", ready),
            ("STAYPUT_TMP_DIR", "/tmp"),
            ("OPENSEARCH_PATH_CONF", "/config"),
            ("OPENSEARCH_JAVA_HOME", self.java.to_str().expect("UTF-8")),
            ("OPENSEARCH_JAVA_OPTS", "-Xms128m -Xmx128m -XX:TieredStopAtLevel=1"),
            ("LD_PRELOAD", "/limits/limits.so"),
            ("PATH", "/usr/bin:/bin"),
        ] {
            env.push(json!({ "name": name, "value": value }));
        }
        let folders = [
            ("usr", Path::new("/usr"), "/usr"),
            ("bin", Path::new("/usr/bin"), "/bin"),
            ("lib", Path::new("/usr/lib"), "/lib"),
            ("lib64", Path::new("/usr/lib64"), "/lib64"),
            ("etc", Path::new("/etc"), "/etc"),
            ("engine", &self.home, home),
            ("archive", Path::new(archive), archive),
            ("limits", self.limits.path(), "/limits"),
        ];
        let mounts = container["volumeMounts"].as_array_mut().expect("a list");
        mounts.push(json!({ "name": "tmp", "mountPath": "/tmp" }));
        for (name, _, at) in folders {
            mounts.push(json!({ "name": name, "mountPath": at, "readOnly": true }));
        }
        let volumes = pod["spec"]["volumes"].as_array_mut().expect("a list");
        volumes.push(json!({ "name": "tmp", "emptyDir": {} }));
        for (name, from, _) in folders {
            let kind = if from.is_dir() { "Directory" } else { "File" };
            volumes.push(json!({ "name": name, "hostPath": { "path": from, "type": kind } }));
        }
        pod
    }
}

/// Of the class data of the installed OpenSearch.
pub(super) fn shared_archive() -> &'static Path {
    archive::of_opensearch().expect("OpenSearch is installed")
}

/// The library that reports a higher limit of descriptors to engines.
fn limits() -> TempDir {
    let directory = tempfile::tempdir().expect("a temp dir");
    let (source, library) = (directory.path().join("limits.c"), directory.path().join("limits.so"));
    fs::write(&source, LIMITS).expect("a file");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status();
    assert!(built.expect("cc can be executed").success());
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(directory.path(), open).expect("permissions");
    directory
}
