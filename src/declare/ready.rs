//! How a manager asks its engine whether it is ready: with the CA and the login with which the reconciler asks it.

use serde_json::{Value, json};

use crate::{Cluster, NodeSet};

const URL: &str = "STAYPUT_READY";
/// The volumes of the Secrets. Each is mounted at its name.
const LOGIN: &str = "stayput-ready-auth";
const AUTHORITY: &str = "stayput-ready-ca";

/// Additions to the engine's container and to its pod for the readiness check.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    pub(crate) variables: Vec<Value>,
    pub(crate) mounts: Vec<Value>,
    pub(crate) volumes: Vec<Value>,
}

impl Ready {
    /// The additions for a set; empty if the set's own template says how to ask.
    pub(crate) fn of(cluster: &Cluster, set: &NodeSet) -> Self {
        let engine = &cluster.engine;
        if names_url(set, engine.distribution.name()) {
            return Self::default();
        }
        let scheme = if engine.tls { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{}/_cluster/health", engine.port);
        let mut ready = Self { variables: vec![variable(URL, &url)], ..Self::default() };
        if let Some(secret) = &engine.credentials_secret {
            let path = format!("/{LOGIN}");
            ready.add(LOGIN, &json!({ "secretName": secret }), "STAYPUT_READY_AUTH", &path);
        }
        if let Some(secret) = engine.ca_secret.as_ref().filter(|_| engine.tls) {
            let items = json!([{ "key": "ca.crt", "path": "ca.crt" }]);
            let path = format!("/{AUTHORITY}/ca.crt");
            let secret = json!({ "secretName": secret, "items": items });
            ready.add(AUTHORITY, &secret, "STAYPUT_READY_CA", &path);
        }
        ready
    }

    fn add(&mut self, volume: &str, secret: &Value, name: &str, path: &str) {
        self.variables.push(variable(name, path));
        let at = format!("/{volume}");
        self.mounts.push(json!({ "name": volume, "mountPath": at, "readOnly": true }));
        self.volumes.push(json!({ "name": volume, "secret": secret }));
    }
}

fn variable(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

fn names_url(set: &NodeSet, container: &str) -> bool {
    let containers = set.pod_template["spec"]["containers"].as_array().into_iter().flatten();
    let mut engine = containers.filter(|one| one["name"] == container);
    engine.any(|one| {
        let variables = one["env"].as_array().into_iter().flatten();
        variables.into_iter().any(|variable| variable["name"] == URL)
    })
}
