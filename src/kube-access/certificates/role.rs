//! The rights that `init` gives to the reconciler. To renew: these objects alone. Kubernetes cannot limit
//! `create` to a name, so it gets no right to create them. To restart: what a ClusterRole of `deploy/` has.

use serde_json::{Value, json};
use stayput_certificates::names::{KEY_SET, SecretNames};

use super::metadata;

const GROUP: &str = "rbac.authorization.k8s.io";
/// Name of the account that `deploy/` gives to the reconciler.
const ACCOUNT: &str = "stayput-reconciler";
const NAMESPACE: &str = "stayput";

/// The Role. With `secrets`, the reconciler may renew the certificates, too.
pub fn role(names: &SecretNames, secrets: bool) -> Value {
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

pub fn role_binding(names: &SecretNames) -> Value {
    binding(&names.role(), "Role", &names.role())
}

/// Gives the reconciler the rights of a ClusterRole of `deploy/` in the namespace of the object.
pub fn cluster_role_binding(name: &str, cluster_role: &str) -> Value {
    binding(name, "ClusterRole", cluster_role)
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding",
        "metadata": metadata(name),
        "roleRef": { "apiGroup": GROUP, "kind": kind, "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }],
    })
}
