//! Checks the Secrets that the spec names: they must exist, have the needed keys, and allow their use.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use stayput_kube_access::cluster::{SearchClusterSpec, allows, engine_keys, key};

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;

/// A Secret that the spec names.
struct Named<'a> {
    field: &'static str,
    name: &'a str,
    use_: Use,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Ca,
    Engine,
    JwtKey,
    Certificate,
}

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let spec = facts.cluster.completed_spec();
    named(&spec).iter().flat_map(|named| of_secret(facts, named)).collect()
}

fn named(spec: &SearchClusterSpec) -> Vec<Named<'_>> {
    let auth = &spec.manager.auth;
    let all = [
        ("spec.engine.credentialsSecret", spec.engine.credentials_secret.as_deref(), Use::Engine),
        ("spec.engine.caSecret", spec.engine.ca_secret.as_deref(), Use::Ca),
        ("spec.manager.caSecret", Some(spec.manager.ca_secret.as_str()), Use::Ca),
        ("spec.manager.auth.jwtKeySecret", auth.jwt_key_secret.as_deref(), Use::JwtKey),
        (
            "spec.manager.auth.clientCertificateSecret",
            auth.client_certificate_secret.as_deref(),
            Use::Certificate,
        ),
    ];
    all.into_iter()
        .filter_map(|(field, name, use_)| {
            let name = name.filter(|name| !name.is_empty())?;
            Some(Named { field, name, use_ })
        })
        .collect()
}

fn of_secret(facts: &Facts, named: &Named<'_>) -> Vec<Finding> {
    let (namespace, cluster) = (facts.namespace(), facts.name());
    let Named { field, name, use_ } = *named;
    let object = format!("Secret/{name}");
    let secret = match facts.secrets.get(name) {
        None => return Vec::new(),
        Some(Err(unknown)) => {
            let remedy = format!("kubectl -n {namespace} auth can-i get secret/{name}");
            let finding = Finding::error("secret", object, &unknown.message, remedy);
            return vec![finding.into_unknown()];
        }
        Some(Ok(None)) => {
            let message = format!("{field} names it, and it is not there");
            let remedy = format!("kubectl -n {namespace} get secrets");
            return vec![Finding::error("secret_absent", object, message, remedy)];
        }
        Some(Ok(Some(secret))) => secret,
    };
    let mut found = Vec::new();
    let missing = missing(secret, use_);
    if !missing.is_empty() {
        let message = format!("{field} needs the key {} in it", missing.join(" and "));
        let remedy = format!("kubectl -n {namespace} describe secret {name}");
        found.push(Finding::error("secret_key", &object, message, remedy));
    }
    let none = BTreeMap::new();
    let annotations = secret.metadata.annotations.as_ref().unwrap_or(&none);
    if use_ != Use::Ca
        && let Err(refused) = allows(namespace, name, annotations, cluster)
    {
        let message = format!("it does not allow its use by SearchCluster {cluster}");
        found.push(Finding::error("not_allowed", &object, message, refused.command));
    }
    found
}

/// The needed keys that are missing.
fn missing(secret: &Secret, use_: Use) -> Vec<&'static str> {
    let has = |key: &str| secret.data.as_ref().is_some_and(|data| data.contains_key(key));
    let needed: &[&str] = match use_ {
        Use::Ca => &[key::CA],
        Use::Engine => engine_keys(has).names(),
        Use::JwtKey => &[key::JWT],
        Use::Certificate => &[key::TLS_CERT, key::TLS_KEY],
    };
    needed.iter().copied().filter(|key| !has(key)).collect()
}
