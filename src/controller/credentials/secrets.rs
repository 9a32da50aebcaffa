//! Cache of the Secrets that a SearchCluster names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use crate::apiserver::Apiserver;
use crate::credentials::CredentialsError;
use stayput_http::https::Pem;
use stayput_kube_access::cluster::allows;

/// Maximum age of a cached Secret: a changed one is in use after that at the latest.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Least time between two reads of a Secret because its credentials were refused.
pub(super) const REFUSED_INTERVAL: Duration = Duration::from_secs(5);
/// Least time between two reads of a Secret because a certificate is not trusted.
pub(super) const UNTRUSTED_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum age of a Secret that cannot be read again because the apiserver gives no answer: even then engines
/// that we have stopped must be started.
const MAX_UNREAD: Duration = Duration::from_secs(600);
/// Least time between two attempts to read such a Secret.
const UNREAD_INTERVAL: Duration = Duration::from_secs(5);

/// A Secret as it was read last.
#[derive(Debug)]
struct Kept {
    secret: Arc<Secret>,
    read: Instant,
    /// Time of the next read.
    due: Instant,
}

/// Cache of the Secrets of one SearchCluster.
#[derive(Debug)]
pub(super) struct Secrets {
    api: Apiserver,
    namespace: String,
    cluster: String,
    kept: BTreeMap<String, Kept>,
    /// Time of the last [`Self::reread`] of each Secret.
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
        let began = Instant::now();
        if let Some(kept) = self.kept.get(name)
            && began < kept.due
        {
            return Ok(Arc::clone(&kept.secret));
        }
        let error = match self.api.objects::<Secret>(&self.namespace).get(name).await {
            Ok(secret) => {
                let secret = Arc::new(secret);
                let kept = Kept { secret: Arc::clone(&secret), read: began, due: began + MAX_AGE };
                self.kept.insert(name.to_owned(), kept);
                return Ok(secret);
            }
            Err(error) => error,
        };
        let is_known = |kept: &&mut Kept| kept.read.elapsed() < MAX_UNREAD;
        if (error.is_no_answer() || error.is_server_error())
            && let Some(kept) = self.kept.get_mut(name).filter(is_known)
        {
            tracing::warn!("using the last known content of Secret {name}: {error}");
            kept.due = Instant::now() + UNREAD_INTERVAL;
            return Ok(Arc::clone(&kept.secret));
        }
        self.kept.remove(name);
        Err(if error.is_not_found() {
            CredentialsError::SecretAbsent(name.to_owned())
        } else {
            error.into()
        })
    }

    /// A Secret with credentials: it must allow its use by this SearchCluster.
    pub(super) async fn get_allowed(
        &mut self,
        name: &str,
    ) -> Result<Arc<Secret>, CredentialsError> {
        let secret = self.get(name).await?;
        let none = BTreeMap::new();
        let annotations = secret.metadata.annotations.as_ref().unwrap_or(&none);
        if let Err(error) = allows(&self.namespace, name, annotations, &self.cluster) {
            // Once the Secret allows its use, the next use should read it.
            self.kept.remove(name);
            return Err(error.into());
        }
        Ok(secret)
    }

    /// Lets the next use read a Secret again; at most once in `interval`, because the Secret may not be
    /// the cause.
    pub(super) fn reread(&mut self, name: &str, interval: Duration) {
        if self.dropped.get(name).is_none_or(|at| at.elapsed() >= interval) {
            self.dropped.insert(name.to_owned(), Instant::now());
            if let Some(kept) = self.kept.get_mut(name) {
                kept.due = Instant::now();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.dropped.clear();
    }
}

/// Version of the Secret, which every change of it changes.
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

#[cfg(test)]
mod tests {
    use kube::Api;
    use kube::api::{DeleteParams, PostParams};
    use serde_json::json;
    use stayput_standin::apiserver::{ApiServer, Fault, How};
    use tokio::time::{advance, pause, resume};

    use super::*;
    use crate::metrics::Metrics;

    async fn secrets() -> (ApiServer, Secrets) {
        let server = ApiServer::start().await.expect("a stand-in apiserver");
        let secret = json!({"metadata": {"name": "ca"}, "stringData": {"ca.crt": "a"}});
        let secret = serde_json::from_value(secret).expect("a Secret");
        let api: Api<Secret> = Api::namespaced(server.client(), "default");
        api.create(&PostParams::default(), &secret).await.expect("it is created");
        let config = crate::apiserver::bounded(server.config());
        let client = kube::Client::try_from(config).expect("a client");
        let api = Apiserver::new(client, Arc::new(Metrics::new()));
        let mut secrets = Secrets::new(api, "default", "logs");
        assert!(secrets.get("ca").await.is_ok());
        (server, secrets)
    }

    fn reads(server: &ApiServer) -> u64 {
        server.counts().matching(|asked| asked.verb == "get" && asked.resource == "secrets")
    }

    /// A paused clock would go on by itself while the network is waited for.
    async fn let_time_pass(time: Duration) {
        pause();
        advance(time).await;
        resume();
    }

    #[tokio::test] // proves RESTART-33
    async fn without_an_answer_a_secret_counts_as_it_was_read_last_for_ten_minutes() {
        for how in [How::Refuse(500), How::Refuse(503), How::LoseRequest, How::Hang] {
            let (server, mut secrets) = secrets().await;
            let is_found = async |secrets: &mut Secrets| {
                // Here it is to go on by itself: there is no answer to wait for.
                let hangs = how == How::Hang;
                if hangs {
                    pause();
                }
                let found = secrets.get("ca").await;
                if hangs {
                    resume();
                }
                found.is_ok()
            };
            server.inject(Fault::new(how).resource("secrets").times(u32::MAX));
            secrets.reread("ca", UNTRUSTED_INTERVAL);
            assert!(is_found(&mut secrets).await, "{how:?}");
            let before = reads(&server);
            assert!(is_found(&mut secrets).await, "{how:?}");
            assert_eq!(reads(&server), before, "not at each use");
            let_time_pass(MAX_AGE * 2).await;
            assert!(is_found(&mut secrets).await, "{how:?}");
            let_time_pass(MAX_UNREAD).await;
            assert!(!is_found(&mut secrets).await, "{how:?}");
            server.clear_faults();
            assert!(secrets.get("ca").await.is_ok(), "{how:?}");
        }
    }

    #[tokio::test] // proves RESTART-33
    async fn one_that_is_gone_or_forbidden_is_not_used_any_more() {
        let (server, mut secrets) = secrets().await;
        server.inject(Fault::new(How::Refuse(403)).resource("secrets"));
        let_time_pass(MAX_AGE).await;
        assert!(matches!(secrets.get("ca").await, Err(CredentialsError::Apiserver(_))));
        assert!(secrets.get("ca").await.is_ok());
        let api: Api<Secret> = Api::namespaced(server.client(), "default");
        api.delete("ca", &DeleteParams::default()).await.expect("it is deleted");
        let_time_pass(MAX_AGE).await;
        assert!(matches!(secrets.get("ca").await, Err(CredentialsError::SecretAbsent(_))));
        server.inject(Fault::new(How::Refuse(500)).resource("secrets"));
        assert!(matches!(secrets.get("ca").await, Err(CredentialsError::Apiserver(_))));
    }
}
