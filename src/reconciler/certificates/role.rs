//! The Role that lets the reconciler renew these objects alone. Kubernetes cannot limit `create` to a name,
//! so the reconciler gets no right to create them.

use serde_json::{Value, json};
use stayput_certificates::names::{KEY_SET, Names};

use super::metadata;

const GROUP: &str = "rbac.authorization.k8s.io";
/// Name of the account that `deploy/` gives to the reconciler.
const ACCOUNT: &str = "stayput-reconciler";
const NAMESPACE: &str = "stayput";

/// The Role. With `secrets`, the reconciler may renew the certificates, too.
pub(crate) fn role(names: &Names, secrets: bool) -> Value {
    let verbs = ["get", "patch"];
    let mut rules = vec![json!({
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [KEY_SET], "verbs": verbs,
    })];
    if secrets {
        rules.push(json!({
            "apiGroups": [""], "resources": ["secrets"],
            "resourceNames": [names.authority, names.trusted, names.serving], "verbs": verbs,
        }));
    }
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Role",
        "metadata": metadata(&names.role()), "rules": rules,
    })
}

pub(crate) fn role_binding(names: &Names) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding",
        "metadata": metadata(&names.role()),
        "roleRef": { "apiGroup": GROUP, "kind": "Role", "name": names.role() },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }],
    })
}
