//! A cluster of which there is nothing to say.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde_json::{Value, json};
use stayput_kube_access::cluster::crd;
use stayput_restart::{Saved, Time, Unknown};

use crate::doctor::{ApiserverTime, Facts, Installation, Right, Taken};

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn from<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

pub(crate) fn now() -> Time {
    Time::parse("2026-11-21T03:10:00Z").unwrap()
}

pub(crate) fn unknown() -> Unknown {
    Unknown { message: "forbidden".into() }
}

/// Three pods of a StatefulSet, each with the manager; everything was read.
pub(crate) fn healthy() -> Facts {
    let rights = ["pods", "secrets", "configmaps", "statefulsets"];
    let rights = rights
        .map(|resource| (Right { verb: "get", group: "", resource, subresource: "" }, Ok(true)));
    Facts {
        now: now(),
        cluster: from(cluster()),
        pods: Ok((0..3).map(|number| from(pod(number))).collect()),
        sets: BTreeMap::from([("logs".to_owned(), Ok(Some(from(set()))))]),
        operated: BTreeMap::new(),
        secrets: BTreeMap::from([
            ("logs-admin".to_owned(), Ok(Some(from(credentials())))),
            ("logs-ca".to_owned(), Ok(Some(from(ca("logs-ca"))))),
            ("manager-ca".to_owned(), Ok(Some(from(ca("manager-ca"))))),
        ]),
        ignored: BTreeMap::new(),
        snapshot: Ok(Taken { asked: now(), saved: saved(|_| {}), answered: now() }),
        policies: Ok(vec![]),
        budgets: Ok(vec![from(json!({
            "metadata": {"name": "logs"}, "spec": {"selector": {"matchLabels": {"app": "logs"}}},
        }))]),
        rights: rights.into(),
        installation: installation(),
    }
}

fn installation() -> Installation {
    Installation {
        apiserver_time: Ok(ApiserverTime { asked: now(), server: now(), answered: now() }),
        definition: Ok(Some(crd())),
        lease: Ok(Some(from(json!({
            "metadata": {"name": "stayput-reconciler"},
            "spec": {"holderIdentity": "reconciler-0", "renewTime": "2026-11-21T03:09:58.000000Z"},
        })))),
        pods: Ok(vec![from(json!({
            "metadata": {"name": "reconciler-0"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }))]),
        namespace: Ok(Some(from(json!({"metadata": {"name": "stayput"}})))),
        keeps_pods: Ok(false),
        policies: Ok(vec![from(egress())]),
    }
}

fn cluster() -> Value {
    json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "search", "generation": 1},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"credentialsSecret": "logs-admin", "caSecret": "logs-ca"},
            "manager": {"caSecret": "manager-ca", "auth": {"serviceAccountToken": {}}},
        },
        "status": {"observedGeneration": 1, "phase": "Idle"},
    })
}

pub(crate) fn pod(number: u32) -> Value {
    json!({
        "metadata": {
            "name": format!("logs-{number}"), "namespace": "search", "uid": format!("uid-{number}"),
            "labels": {"app": "logs", "controller-revision-hash": "logs-1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": "s",
                "controller": true,
            }],
        },
        "spec": {
            "containers": [{
                "name": "opensearch", "image": "opensearchproject/opensearch:2.19.3",
                "command": ["/stayput/stayput", "run", "--", "./opensearch-docker-entrypoint.sh"],
                "env": [{"name": "STAYPUT_STATE_DIR", "value": "/stayput-state"}],
                "ports": [{"name": "stayput", "containerPort": 9199}],
                "livenessProbe": {"httpGet": {"path": "/livez", "port": "stayput"}},
                "volumeMounts": [{"name": "stayput-state", "mountPath": "/stayput-state"}],
            }],
            "volumes": [{"name": "stayput-state", "emptyDir": {}}],
        },
    })
}

fn set() -> Value {
    json!({
        "metadata": {"name": "logs", "namespace": "search", "uid": "s", "generation": 1},
        "spec": {
            "replicas": 3, "serviceName": "logs", "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {"spec": {"containers": [{"name": "opensearch"}]}},
        },
        "status": {"replicas": 3, "observedGeneration": 1, "updateRevision": "logs-1"},
    })
}

fn credentials() -> Value {
    json!({
        "metadata": {"name": "logs-admin", "annotations": {"stayput.dev/allow": "logs"}},
        "data": {"username": "YQ==", "password": "YQ=="},
    })
}

fn ca(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"ca.crt": encoded(&certificate(2027))}})
}

/// A certificate from 2025 on, as PEM.
pub(crate) fn certificate(until: i32) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 11, 25);
    params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}

/// As a Secret has it.
pub(crate) fn encoded(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// As in `deploy/`.
fn egress() -> Value {
    json!({
        "metadata": {"name": "stayput-reconciler"},
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "stayput-reconciler"}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": 8081}]}],
            "egress": [
                {"ports": [{"port": 443}, {"port": 6443}]},
                {"to": [{"namespaceSelector": {}}], "ports": [{"port": 9199}, {"port": 9200}]},
            ],
        },
    })
}

/// What the reconciler sees, with a change.
pub(crate) fn saved(change: impl FnOnce(&mut Value)) -> Saved {
    let sample = include_str!("../../../../proto/samples/snapshot.json");
    let mut saved: Value = serde_json::from_str(sample).unwrap();
    let template = saved["snapshot"]["pods"][0].clone();
    let pods = (0..3).map(|number| {
        let mut pod = template.clone();
        pod["name"] = json!(format!("logs-{number}"));
        pod["uid"] = json!(format!("uid-{number}"));
        pod["manager"]["known"]["podUid"] = pod["uid"].clone();
        pod["manager"]["known"]["version"] = json!(VERSION);
        pod
    });
    saved["snapshot"]["pods"] = pods.collect();
    saved["snapshot"]["now"] = json!(now().to_string());
    saved["stayput"] = json!(VERSION);
    change(&mut saved);
    Saved::parse(&saved.to_string()).unwrap()
}

impl Facts {
    /// What the reconciler sees is another thing.
    pub(crate) fn see(&mut self, change: impl FnOnce(&mut Value)) {
        self.snapshot = Ok(Taken { asked: now(), saved: saved(change), answered: now() });
    }

    /// Changes the first pod.
    pub(crate) fn change_pod(&mut self, change: impl FnOnce(&mut Value)) {
        let pods = self.pods.as_mut().unwrap();
        let mut changed = json!(pods[0]);
        change(&mut changed);
        pods[0] = from(changed);
    }

    /// Changes the StatefulSet.
    pub(crate) fn change_set(&mut self, change: impl FnOnce(&mut Value)) {
        let mut changed = json!(self.sets["logs"].as_ref().unwrap());
        change(&mut changed);
        self.sets.insert("logs".into(), Ok(Some(from(changed))));
    }

    /// Changes the SearchCluster.
    pub(crate) fn change_cluster(&mut self, change: impl FnOnce(&mut Value)) {
        let mut changed = json!(self.cluster);
        change(&mut changed);
        self.cluster = from(changed);
    }

    /// Adds or replaces a Secret.
    pub(crate) fn put_secret(&mut self, secret: Value) {
        let secret: k8s_openapi::api::core::v1::Secret = from(secret);
        self.secrets.insert(secret.name_any(), Ok(Some(secret)));
    }
}
