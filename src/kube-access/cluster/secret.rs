//! The annotation and the keys of the Secrets that a SearchCluster names.

use std::collections::BTreeMap;

use stayput_restart::shell_word;

/// Annotation of a Secret that holds credentials: the SearchClusters of its namespace that may use
/// it, separated by commas. A user who may write a SearchCluster may not always read Secrets.
/// Without this annotation such a user could have any Secret sent to an address of their choice.
///
/// An annotation and no label: names of SearchClusters may be longer than a label's value, and one
/// Secret may serve several.
pub const ALLOW: &str = "stayput.dev/allow";

/// Keys in the Secrets.
pub mod key {
    /// CA certificates, PEM.
    pub const CA: &str = "ca.crt";
    /// User name at the engine.
    pub const USERNAME: &str = "username";
    /// Password of the user.
    pub const PASSWORD: &str = "password";
    /// API key of the engine, encoded as the engine gave it out: instead of user and password.
    pub const API_KEY: &str = "apiKey";
    /// Password of the user `elastic`, as ECK keeps it: instead of the keys above.
    pub const ELASTIC: &str = "elastic";
    /// Client certificate, PEM.
    pub const TLS_CERT: &str = "tls.crt";
    /// Private key of the client certificate, PEM.
    pub const TLS_KEY: &str = "tls.key";
    /// Key that signs tokens for managers, in the form that `stayput token --key` takes.
    pub const JWT: &str = "key";
}

/// Kind of the engine's credentials that a Secret holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKeys {
    /// An API key.
    ApiKey,
    /// User and password.
    UserAndPassword,
    /// The password of the user `elastic`.
    Elastic,
    /// A client certificate and nothing else.
    Certificate,
}

/// The kind of the engine's credentials, by the keys that the Secret has.
pub fn engine_keys(has: impl Fn(&str) -> bool) -> EngineKeys {
    if has(key::API_KEY) {
        EngineKeys::ApiKey
    } else if has(key::USERNAME) {
        EngineKeys::UserAndPassword
    } else if has(key::TLS_CERT) {
        EngineKeys::Certificate
    } else if has(key::ELASTIC) {
        EngineKeys::Elastic
    } else {
        EngineKeys::UserAndPassword
    }
}

impl EngineKeys {
    /// The keys that the Secret must have.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::ApiKey => &[key::API_KEY],
            Self::UserAndPassword => &[key::USERNAME, key::PASSWORD],
            Self::Elastic => &[key::ELASTIC],
            Self::Certificate => &[key::TLS_CERT, key::TLS_KEY],
        }
    }
}

/// The Secret has no annotation that allows its use; the message says how to allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Secret {secret} does not allow its use by SearchCluster {cluster}: {command}")]
pub struct NotAllowed {
    /// Name of the Secret.
    pub secret: String,
    /// Name of the SearchCluster.
    pub cluster: String,
    /// The command that allows it.
    pub command: String,
}

/// Checks that the SearchCluster may use the Secret.
///
/// # Errors
/// If the annotation [`ALLOW`] of the Secret does not name the SearchCluster.
pub fn allows(
    namespace: &str,
    secret: &str,
    annotations: &BTreeMap<String, String>,
    cluster: &str,
) -> Result<(), NotAllowed> {
    let mut named = named(annotations);
    if named.contains(&cluster) {
        return Ok(());
    }
    // The other SearchClusters keep their right to use it.
    named.push(cluster);
    Err(NotAllowed {
        secret: secret.to_owned(),
        cluster: cluster.to_owned(),
        command: allow_command(namespace, secret, &named),
    })
}

/// The other SearchClusters that the annotation [`ALLOW`] names, if it names this one.
pub fn others<'a>(
    annotations: &'a BTreeMap<String, String>,
    cluster: &str,
) -> Option<Vec<&'a str>> {
    let named = named(annotations);
    let others: Vec<&str> = named.iter().copied().filter(|name| *name != cluster).collect();
    (others.len() < named.len()).then_some(others)
}

/// The command that lets exactly these SearchClusters use a Secret.
pub fn allow_command(namespace: &str, secret: &str, clusters: &[&str]) -> String {
    let (overwrite, value) = match clusters {
        [] => ("", "-".to_owned()),
        _ => ("--overwrite ", format!("={}", shell_word(&clusters.join(",")))),
    };
    format!("kubectl -n {namespace} annotate {overwrite}secret {secret} {ALLOW}{value}")
}

/// The SearchClusters that the annotation [`ALLOW`] names.
fn named(annotations: &BTreeMap<String, String>) -> Vec<&str> {
    let list = annotations.get(ALLOW).map(String::as_str).unwrap_or_default();
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}
