//! Pods without an owner: the manager is the first process of a container and part of its image,
//! config is staged, and the keys are those of the apiserver.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stayput_standin::harness::pki::issue;

use super::fixture::{ACCOUNT, ENGINE, Fixture, HOME, MANAGER};

/// The reconciler, with its rights in the engines' namespace.
pub(super) fn install_reconciler(fixture: &Fixture) {
    fixture.people.run(
        "kubectl apply -k deploy/
         kubectl --namespace search create rolebinding stayput-clusters \
           --clusterrole=stayput-reconciler --serviceaccount=stayput:stayput-reconciler
         kubectl --namespace stayput rollout status deployment stayput-reconciler --timeout=2m",
    );
}

/// The reconciler, and the SearchCluster, whose config is in these Secrets.
pub(super) fn install(fixture: &Fixture, source: &str) {
    install_reconciler(fixture);
    fixture.admin().apply(&json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": {
            "pods": { "selector": { "matchLabels": { "app": "logs" } } },
            "engine": { "scheme": "http" },
            "manager": { "caSecret": "logs-manager-ca", "auth": { "serviceAccountToken": {} } },
            "config": { "sources": [{ "secret": source }] },
        },
    }));
    fixture.until_idle();
}

/// A CA, a certificate for the name `stayput`, and the keys of the apiserver's tokens.
pub(super) fn keys(fixture: &Fixture) {
    let (authority, certificate, key) = issue(&["stayput"]).expect("a certificate").pem();
    fixture.secret("logs-manager-ca", &[("ca.crt", &authority)]);
    fixture.secret("logs-manager-tls", &[("tls.crt", &certificate), ("tls.key", &key)]);
    let keys = fixture.cluster.api.raw("/openid/v1/jwks").to_string();
    fixture.admin().apply(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "cluster-jwks", "namespace": "search" },
        "data": { "jwks.json": keys, "issuer": fixture.cluster.api.url() },
    }));
}

/// A pod with everything that its manager needs; the engine is the stand-in.
pub(super) fn pod(fixture: &Fixture, name: &str) -> Value {
    let settings: BTreeMap<&str, String> = BTreeMap::from([
        ("STAYPUT_LISTEN", ":9199".to_owned()),
        ("STAYPUT_SOCKET", "/state/stayput.sock".to_owned()),
        ("STAYPUT_STATE_DIR", "/state".to_owned()),
        ("STAYPUT_TLS_CERT", "/tls/tls.crt".to_owned()),
        ("STAYPUT_TLS_KEY", "/tls/tls.key".to_owned()),
        ("STAYPUT_JWKS", "/jwks/jwks.json".to_owned()),
        ("STAYPUT_JWT_ISSUER", fixture.cluster.api.url().to_owned()),
        ("STAYPUT_ALLOW_SUBJECT", format!("system:serviceaccount:{ACCOUNT}=es:read es:control")),
        ("STAYPUT_CONFIG", "/mounted".to_owned()),
        ("STAYPUT_STAGE", "/mounted=/config".to_owned()),
        ("STAYPUT_KEEP_LAST_GOOD", "true".to_owned()),
        ("STAYPUT_READY", "tcp://127.0.0.1:9200".to_owned()),
        ("ES_PATH_CONF", "/config".to_owned()),
    ]);
    let mut env: Vec<Value> =
        settings.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    for (variable, field) in [
        ("STAYPUT_POD_NAMESPACE", "metadata.namespace"),
        ("STAYPUT_POD_NAME", "metadata.name"),
        ("STAYPUT_POD_UID", "metadata.uid"),
    ] {
        let from = json!({ "fieldRef": { "fieldPath": field } });
        env.push(json!({ "name": variable, "valueFrom": from }));
    }
    // As the examples have them. With a kubelet's own second for an answer, and three failures, a busy
    // machine loses a container that is well.
    let probe = |path: &str, period: u32, failures: u32| {
        json!({
            "httpGet": { "path": path, "port": 9199, "scheme": "HTTPS" },
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "search", "labels": { "app": "logs" } },
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 1000,
                "fsGroup": 1000,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "opensearch",
                "image": ENGINE,
                "imagePullPolicy": "Never",
                "command": [MANAGER, "run", "--",
                    format!("{HOME}/opensearch-docker-entrypoint.sh"), "opensearch"],
                "env": env,
                "livenessProbe": probe("/livez", 10, 6),
                "readinessProbe": probe("/readyz", 1, 1),
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
                "volumeMounts": [
                    { "name": "state", "mountPath": "/state" },
                    { "name": "config", "mountPath": "/config" },
                    { "name": "data", "mountPath": "/data" },
                    { "name": "mounted", "mountPath": "/mounted", "readOnly": true },
                    { "name": "tls", "mountPath": "/tls", "readOnly": true },
                    { "name": "jwks", "mountPath": "/jwks", "readOnly": true },
                ],
            }],
            "volumes": [
                { "name": "state", "emptyDir": {} },
                { "name": "config", "emptyDir": {} },
                { "name": "data", "emptyDir": {} },
                { "name": "mounted", "secret": { "secretName": format!("{name}-config") } },
                { "name": "tls", "secret": { "secretName": "logs-manager-tls" } },
                { "name": "jwks", "configMap": { "name": "cluster-jwks" } },
            ],
        },
    })
}
