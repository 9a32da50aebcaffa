//! The Secrets that a SearchCluster names, kept for a short time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use super::error::CredentialsError;
use crate::cluster::allows;
use crate::controller::apiserver::Apiserver;
use stayput_net::https::Pem;

/// How long a Secret is kept: a changed one is in use after that at the latest.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The least time between two reads of a Secret because its credentials were refused.
pub(super) const REFUSED_INTERVAL: Duration = Duration::from_secs(5);
/// The least time between two reads of a Secret because a certificate is not trusted.
pub(super) const UNTRUSTED_INTERVAL: Duration = Duration::from_secs(60);

/// Of one SearchCluster.
#[derive(Debug)]
pub(super) struct Secrets {
    api: Apiserver,
    namespace: String,
    cluster: String,
    kept: BTreeMap<String, (Instant, Arc<Secret>)>,
    /// When each was last dropped by [`Self::reread`].
    dropped: BTreeMap<String, Instant>,
}

impl Secrets {
    pub(super) fn new(api: Apiserver, namespace: &str, cluster: &str) -> Self {
        Self {
            api,
            namespace: namespace.to_owned(),
            cluster: cluster.to_owned(),
            kept: BTreeMap::new(),
            dropped: BTreeMap::new(),
        }
    }

    /// A Secret that is not confidential, such as one with a CA.
    pub(super) async fn get(&mut self, name: &str) -> Result<Arc<Secret>, CredentialsError> {
        if let Some((read, secret)) = self.kept.get(name)
            && read.elapsed() < MAX_AGE
        {
            return Ok(Arc::clone(secret));
        }
        let read = self.api.get::<Secret>(&self.namespace, name).await;
        let secret = Arc::new(read.map_err(|error| match error.is_not_found() {
            true => CredentialsError::SecretAbsent(name.to_owned()),
            false => error.into(),
        })?);
        self.kept.insert(name.to_owned(), (Instant::now(), Arc::clone(&secret)));
        Ok(secret)
    }

    /// A Secret with credentials: it must allow its use by this SearchCluster.
    pub(super) async fn get_allowed(
        &mut self,
        name: &str,
    ) -> Result<Arc<Secret>, CredentialsError> {
        let secret = self.get(name).await?;
        let none = BTreeMap::new();
        let annotations = secret.metadata.annotations.as_ref().unwrap_or(&none);
        if let Err(error) = allows(name, annotations, &self.cluster) {
            // Once it is allowed, it should be read at the next use.
            self.kept.remove(name);
            return Err(error.into());
        }
        Ok(secret)
    }

    /// Drops a Secret, so that the next use reads it again; at most once in `interval`, because the
    /// Secret may not be the cause.
    pub(super) fn reread(&mut self, name: &str, interval: Duration) {
        if self.dropped.get(name).is_none_or(|at| at.elapsed() >= interval) {
            self.dropped.insert(name.to_owned(), Instant::now());
            self.kept.remove(name);
        }
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.dropped.clear();
    }
}

/// Changes with every change of the Secret.
pub(super) fn version(secret: &Secret) -> &str {
    secret.metadata.resource_version.as_deref().unwrap_or_default()
}

pub(super) fn bytes<'a>(
    secret: &'a Secret,
    name: &str,
    key: &str,
) -> Result<&'a [u8], CredentialsError> {
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    value
        .map(|value| value.0.as_slice())
        .ok_or_else(|| CredentialsError::KeyAbsent { secret: name.to_owned(), key: key.to_owned() })
}

pub(super) fn pem(secret: &Secret, name: &str, key: &str) -> Result<Pem, CredentialsError> {
    Ok(Pem::new(format!("{key} of Secret {name}"), bytes(secret, name, key)?.to_vec()))
}
