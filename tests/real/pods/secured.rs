//! `kubectl stayput inject --ready-auth --ready-ca`: an Elasticsearch with TLS and a password, whose
//! manager logs in to know whether it is ready.

use std::path::Path;

use serde_json::{Value, json};
use stayput_standin::harness::pki::issue;

use super::bare::keys;
use super::fixture::{ENGINE, Fixture};
use super::nodes::until_ready;
use super::official;
use super::opensearch::Parts;
use super::stateful_set::stateful_set;
use crate::support::engine::{Kind, own_files};
use crate::support::wait::eventually;

const POD: &str = "logs-0";
const PASSWORD: &str = "a password";
/// What the entrypoint of the official image does with the password.
const ENTRYPOINT: &str = "cd /usr/share/elasticsearch
test -e config/elasticsearch.keystore ||
    printf %s \"$ELASTIC_PASSWORD\" | bin/elasticsearch-keystore add --force --stdin bootstrap.password
exec bin/elasticsearch";
const HOME: &str = "/usr/share/elasticsearch";
const CONFIG: &str = "cluster.name: logs
network.host: 0.0.0.0
discovery.type: single-node
path: {data: /data/data, logs: /data/logs}
node.store.allow_mmap: false
xpack.security:
  enabled: true
  http.ssl: {enabled: true, key: certs/tls.key, certificate: certs/tls.crt}
  transport.ssl: {enabled: true, key: certs/tls.key, certificate: certs/tls.crt,
                  certificate_authorities: [certs/ca.crt], verification_mode: certificate}
";

#[test] // proves MANIFEST-9
fn an_engine_with_tls_and_a_password_is_ready_once_the_manager_is_let_in() {
    const TEST: &str =
        "pods::secured::an_engine_with_tls_and_a_password_is_ready_once_the_manager_is_let_in";
    let Some((parts, fixture)) = Parts::lay(TEST, Kind::Elasticsearch, "privileged") else {
        return;
    };
    keys(&fixture);
    let [options, log4j] = own_files(&parts.home, Path::new("/data"));
    fixture.secret("image-files", &[("jvm.options", &options), ("log4j2.properties", &log4j)]);
    fixture.secret("logs-config", &[("elasticsearch.yml", CONFIG)]);
    let (authority, certificate, key) = issue(&["localhost"]).expect("a certificate").pem();
    fixture.secret("logs-ca", &[("ca.crt", &authority)]);
    let files = [("ca.crt", &authority), ("tls.crt", &certificate), ("tls.key", &key)];
    fixture.secret("logs-certs", &files.map(|(name, pem)| (name, pem.as_str())));
    // Another password than the engine's, until it is set right.
    fixture.secret("logs-user", &[("username", "elastic"), ("password", "another")]);
    fixture.secret("engine-password", &[("password", PASSWORD)]);

    fixture.people.write("set.json", &one_node(&parts).to_string());
    let line = "kubectl stayput inject --ready-auth secret/logs-user --ready-ca secret/logs-ca \
                --ready https://localhost:9200/_cluster/health set.json";
    let set: Value = serde_json::from_str(&fixture.people.run(line)).expect("JSON");
    fixture.admin().apply(&set);
    until_told(&fixture, "401");
    fixture.secret("logs-user", &[("username", "elastic"), ("password", PASSWORD)]);
    // The kubelet renews the files of a pod that changes at once, others within two minutes.
    fixture.run(&["annotate", "pod", POD, "seen=1"]);
    until_ready(&fixture, &[POD]);
    fixture.run(&["exec", POD, "--", "/stayput/stayput", "restart"]);
    fixture.run(&["exec", POD, "--", "/stayput/stayput", "wait", "--for=ready", "--timeout=5m"]);
}

/// Waits until the manager's status says this of the engine.
fn until_told(fixture: &Fixture, text: &str) {
    eventually(text, || {
        let ask = ["exec", "--namespace=search", POD, "--", "/stayput/stayput", "status"];
        let told = fixture.admin().attempt(&ask, "").ok()?;
        told.contains(text).then_some(())
    });
}

/// As a user has it before stayput comes.
fn one_node(parts: &Parts) -> Value {
    let (mut mounts, mut volumes) = official::mounts(
        parts,
        ["bin", "lib", "modules", "plugins"]
            .map(|name| (parts.home.join(name), format!("{HOME}/{name}"))),
    );
    let config = format!("{HOME}/config");
    for (name, path) in [("data", "/data"), ("config", config.as_str()), ("tmp", "/tmp")] {
        mounts.push(json!({ "name": name, "mountPath": path }));
        volumes.push(json!({ "name": name, "emptyDir": {} }));
    }
    let mut copies = mounts.clone();
    for (name, secret) in
        [("files", "image-files"), ("yml", "logs-config"), ("certs", "logs-certs")]
    {
        volumes.push(json!({ "name": name, "secret": { "secretName": secret } }));
    }
    copies.push(json!({ "name": "files", "mountPath": "/files", "readOnly": true }));
    mounts.extend([
        json!({ "name": "yml", "mountPath": format!("{config}/elasticsearch.yml"),
                "subPath": "elasticsearch.yml" }),
        json!({ "name": "certs", "mountPath": format!("{config}/certs"), "readOnly": true }),
    ]);
    let password = json!({ "secretKeyRef": { "name": "engine-password", "key": "password" } });
    let mut env = vec![
        json!({ "name": "PATH", "value": "/usr/bin:/bin" }),
        json!({ "name": "LD_PRELOAD", "value": "/limits/limits.so" }),
        json!({ "name": "ELASTIC_PASSWORD", "valueFrom": password }),
    ];
    env.push(json!({ "name": "ES_JAVA_HOME", "value": parts.java }));
    env.push(
        json!({ "name": "ES_JAVA_OPTS", "value": "-Xms256m -Xmx256m -XX:TieredStopAtLevel=1" }),
    );
    let mut set = stateful_set(&json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 5,
        "securityContext": { "runAsUser": 1000, "fsGroup": 1000 },
        "initContainers": [{
            "name": "files",
            "image": ENGINE,
            "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", format!("cp /files/* {config}/")],
            "volumeMounts": copies,
        }],
        "containers": [{
            "name": "elasticsearch",
            "image": ENGINE,
            "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", ENTRYPOINT],
            "env": env,
            "ports": [{ "name": "http", "containerPort": 9200 }],
            "volumeMounts": mounts,
        }],
        "volumes": volumes,
    }));
    set["spec"]["replicas"] = json!(1);
    set
}
