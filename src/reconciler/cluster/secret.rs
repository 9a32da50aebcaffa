//! The annotation and the keys of the Secrets that a SearchCluster names.

use std::collections::BTreeMap;

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
    /// User of the engine.
    pub const USERNAME: &str = "username";
    /// Its password.
    pub const PASSWORD: &str = "password";
    /// Instead of the two: an API key of the engine, encoded as the engine gave it out.
    pub const API_KEY: &str = "apiKey";
    /// Client certificate, PEM.
    pub const TLS_CERT: &str = "tls.crt";
    /// Its key, PEM.
    pub const TLS_KEY: &str = "tls.key";
    /// What signs tokens for managers, in the form `stayput token --key` takes.
    pub const JWT: &str = "key";
}

/// The Secret has no annotation that allows its use; the message says how to allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Secret {secret} does not allow its use by SearchCluster {cluster}: kubectl annotate secret \
     {secret} {ALLOW}={cluster}"
)]
pub struct NotAllowed {
    /// Name of the Secret.
    pub secret: String,
    /// Name of the SearchCluster.
    pub cluster: String,
}

/// Whether the Secret may be used by the SearchCluster.
///
/// # Errors
/// If its annotation [`ALLOW`] does not name the SearchCluster.
pub fn allows(
    secret: &str,
    annotations: &BTreeMap<String, String>,
    cluster: &str,
) -> Result<(), NotAllowed> {
    let named = annotations
        .get(ALLOW)
        .is_some_and(|list| list.split(',').map(str::trim).any(|name| name == cluster));
    if named {
        return Ok(());
    }
    Err(NotAllowed { secret: secret.to_owned(), cluster: cluster.to_owned() })
}
