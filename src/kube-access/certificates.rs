//! The Secrets with the managers' certificates, and the ConfigMap with the apiserver's keys: how they are
//! read and written. `stayput_certificates` decides what to write. Nothing in here does I/O: `kubectl stayput
//! init` and the controller read and write.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use stayput_certificates::issue::{IssueError, Pair};
use stayput_certificates::key_set::KeySet;
use stayput_certificates::names::{KEY_SET, MANAGED_BY, SecretNames};
use stayput_certificates::{CertificateFacts, Existing, Step, issue};

use crate::cluster::key::{CA, TLS_CERT, TLS_KEY};
use crate::names::reconciler::{self, Rights};

/// True if stayput made the object, and so may change it.
pub fn is_ours(metadata: &ObjectMeta) -> bool {
    let (label, value) = MANAGED_BY;
    metadata.labels.as_ref().and_then(|labels| labels.get(label)).is_some_and(|is| is == value)
}

/// Metadata of a new object.
fn metadata(name: &str) -> Value {
    let (label, value) = MANAGED_BY;
    json!({ "name": name, "labels": { label: value } })
}

/// The part of a merge patch that ties it to the object as it was read: uid and version.
pub fn precondition(metadata: &ObjectMeta) -> Value {
    json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version })
}

/// Annotation: time of the last change of the trusted CAs, in seconds since the epoch.
const CHANGED: &str = "stayput.dev/changed";
/// Annotation: the SearchCluster that the Secret was made for. Another SearchCluster may name the Secret,
/// too, and must not change it.
const CLUSTER: &str = "stayput.dev/cluster";

/// The Secrets as they were read; `None` for each that is absent.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub authority: Option<Secret>,
    pub trusted: Option<Secret>,
    pub serving: Option<Secret>,
}

/// New data of one Secret.
#[derive(Debug)]
pub struct Change {
    pub name: String,
    kind: &'static str,
    data: BTreeMap<&'static str, ByteString>,
    annotations: BTreeMap<&'static str, String>,
}

impl Secrets {
    /// The facts for a decision, read from the Secrets.
    pub fn facts(&self, names: &SecretNames, server_name: &str, now: u64) -> CertificateFacts {
        let documents = self.authorities();
        let serving = |pem: &[u8]| issue::read_serving(pem, &documents, server_name);
        CertificateFacts {
            names: names.clone(),
            now,
            clock_differs: None,
            may_create: false,
            authority: found(self.authority.as_ref(), names, TLS_CERT, |pem| {
                let [only] = issue::read_authorities(pem)?
                    .try_into()
                    .map_err(|_| IssueError::Unreadable("it is not one CA"))?;
                Ok(only)
            }),
            trusted: found(self.trusted.as_ref(), names, CA, issue::read_authorities),
            trusted_since: self.trusted.as_ref().and_then(changed).unwrap_or_default(),
            serving: found(self.serving.as_ref(), names, TLS_CERT, serving),
        }
    }

    /// The change of a Secret that carries a step out.
    ///
    /// # Errors
    /// If the CA cannot sign.
    pub fn change(
        &self,
        step: &Step,
        names: &SecretNames,
        server_name: &str,
        now: u64,
    ) -> Result<Change, IssueError> {
        let pair = |name: &str, Pair { certificate, key }: Pair| Change {
            name: name.to_owned(),
            kind: "kubernetes.io/tls",
            data: BTreeMap::from([(TLS_CERT, bytes(certificate)), (TLS_KEY, bytes(key))]),
            annotations: BTreeMap::from([(CLUSTER, names.cluster.clone())]),
        };
        Ok(match step {
            Step::MakeAuthority => pair(&names.authority, issue::authority(&names.cluster, now)?),
            Step::Issue => {
                let ca = Pair {
                    certificate: text(self.authority.as_ref(), TLS_CERT),
                    key: text(self.authority.as_ref(), TLS_KEY),
                };
                pair(&names.serving, issue::serving(&ca, &names.cluster, server_name, now)?)
            }
            Step::Trust(ids) => Change {
                name: names.trusted.clone(),
                kind: "Opaque",
                data: BTreeMap::from([(CA, bytes(issue::select(&self.authorities(), ids)))]),
                annotations: BTreeMap::from([
                    (CHANGED, now.to_string()),
                    (CLUSTER, names.cluster.clone()),
                ]),
            },
        })
    }

    /// The Secret that a step writes to.
    pub fn of(&mut self, step: &Step) -> &mut Option<Secret> {
        match step {
            Step::MakeAuthority => &mut self.authority,
            Step::Trust(_) => &mut self.trusted,
            Step::Issue => &mut self.serving,
        }
    }

    /// The PEM documents with CAs: that of the signing CA and that of the trusted ones.
    fn authorities(&self) -> Vec<&[u8]> {
        let all = [data(self.authority.as_ref(), TLS_CERT), data(self.trusted.as_ref(), CA)];
        all.into_iter().flatten().collect()
    }
}

impl Change {
    /// Body of a new Secret.
    pub fn object(&self) -> Value {
        let mut metadata = metadata(&self.name);
        metadata["annotations"] = json!(self.annotations);
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": metadata, "type": self.kind, "data": self.data,
        })
    }

    /// Merge patch of the Secret as it was read.
    pub fn patch(&self, there: &Secret) -> Value {
        let mut metadata = precondition(&there.metadata);
        metadata["annotations"] = json!(self.annotations);
        json!({ "metadata": metadata, "data": self.data })
    }
}

fn found<T>(
    secret: Option<&Secret>,
    names: &SecretNames,
    key: &str,
    read: impl FnOnce(&[u8]) -> Result<T, IssueError>,
) -> Option<Existing<T>> {
    let secret = secret?;
    let content = match data(Some(secret), key) {
        Some(pem) => read(pem).map_err(|error| error.to_string()),
        None => Err(format!("it has no {key}")),
    };
    let is_ours = is_ours(&secret.metadata) && is_of_cluster(&secret.metadata, names);
    Some(Existing { is_ours, content })
}

/// True if the Secret was made for this cluster. A Secret without the annotation is recognized by the name
/// that `init` gives it.
fn is_of_cluster(metadata: &ObjectMeta, names: &SecretNames) -> bool {
    let annotations = metadata.annotations.as_ref();
    if let Some(cluster) = annotations.and_then(|all| all.get(CLUSTER)) {
        return *cluster == names.cluster;
    }
    let SecretNames { authority, trusted, serving, .. } =
        SecretNames::of(&names.namespace, &names.cluster);
    metadata.name.as_ref().is_some_and(|name| [authority, trusted, serving].contains(name))
}

fn changed(secret: &Secret) -> Option<u64> {
    secret.metadata.annotations.as_ref()?.get(CHANGED)?.parse().ok()
}

fn data<'a>(secret: Option<&'a Secret>, key: &str) -> Option<&'a [u8]> {
    Some(secret?.data.as_ref()?.get(key)?.0.as_slice())
}

fn text(secret: Option<&Secret>, key: &str) -> String {
    let data = data(secret, key).unwrap_or_default();
    String::from_utf8_lossy(data).into_owned()
}

fn bytes(text: String) -> ByteString {
    ByteString(text.into_bytes())
}

/// Path at which the apiserver names the issuer of its tokens.
pub const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";
/// Path at which the apiserver publishes its keys.
pub const KEY_SET_PATH: &str = "/openid/v1/jwks";

/// Key of the key set in the ConfigMap, and so the name of its file.
const KEYS: &str = "jwks.json";
const ISSUER: &str = "issuer";

/// The key set that managers have, from its ConfigMap.
pub fn held(map: &ConfigMap) -> Existing<KeySet> {
    let value = |key: &str| {
        let value = map.data.as_ref().and_then(|data| data.get(key));
        value.ok_or_else(|| format!("it has no {key}"))
    };
    let read = || {
        let (issuer, keys) = (value(ISSUER)?, value(KEYS)?);
        KeySet::read(issuer, keys).map_err(|error| error.to_string())
    };
    Existing { is_ours: is_ours(&map.metadata), content: read() }
}

/// The key set that the apiserver publishes, from its two answers.
///
/// # Errors
/// The answer that cannot be read, and why.
pub fn published(discovery: &str, keys: &str) -> Result<KeySet, String> {
    let discovery: Value = serde_json::from_str(discovery).unwrap_or_default();
    let issuer = discovery["issuer"].as_str();
    let issuer = issuer.ok_or_else(|| format!("{DISCOVERY_PATH} names no issuer"))?;
    KeySet::read(issuer, keys).map_err(|error| format!("what {KEY_SET_PATH} answers: {error}"))
}

/// Body of a new ConfigMap with these keys, or a merge patch of the one that was read.
pub fn key_set_object(set: &KeySet, there: Option<&ConfigMap>) -> Value {
    let data = json!({ KEYS: set.text(), ISSUER: set.issuer });
    match there {
        Some(there) => json!({ "metadata": precondition(&there.metadata), "data": data }),
        None => json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(KEY_SET), "data": data,
        }),
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";

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
pub fn cluster_role_binding(rights: Rights) -> Value {
    binding(rights.binding, "ClusterRole", rights.cluster_role)
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding",
        "metadata": metadata(name),
        "roleRef": { "apiGroup": GROUP, "kind": kind, "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": reconciler::NAME, "namespace": reconciler::NAMESPACE }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves OPERATE-24
    fn a_secret_of_another_cluster_is_not_ours_whoever_names_it() {
        let names = SecretNames {
            trusted: "metrics-manager-ca".to_owned(),
            ..SecretNames::of("search", "logs")
        };
        let secret = |name: &str, annotations: Value| -> Secret {
            let labels = json!({"app.kubernetes.io/managed-by": "stayput"});
            let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let is_ours = |name: &str, annotations: Value| {
            let trusted = Some(secret(name, annotations));
            let secrets = Secrets { trusted, ..Secrets::default() };
            secrets.facts(&names, "stayput", 0).trusted.unwrap().is_ours
        };
        assert!(is_ours("logs-manager-ca", json!({})), "as made before it said for whom");
        assert!(is_ours("shared", json!({CLUSTER: "logs"})));
        assert!(!is_ours("metrics-manager-ca", json!({})));
        assert!(!is_ours("metrics-manager-ca", json!({CLUSTER: "metrics"})));
    }
}
