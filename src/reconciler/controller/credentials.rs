//! What we show and whom we trust: from the Secrets that a SearchCluster names, read when needed,
//! kept for a short time, forgotten as soon as somebody does not accept them.

mod engine;
mod managers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use super::Account;
use super::apiserver::{Apiserver, Failure};
use crate::cluster::{Auth, Engine, Manager, allows};
use crate::engine_client::Access;
use stayput_net::https::{Pem, Tls};

/// How long a Secret is kept: a changed one is in use after that at the latest.
const LIFE: Duration = Duration::from_secs(60);

/// No sooner than this is a Secret read again because we were not accepted.
const SHUNNED: Duration = Duration::from_secs(5);
/// No sooner than this is one read again because somebody else is not trusted.
const UNTRUSTED: Duration = Duration::from_secs(60);

/// Of one SearchCluster.
#[derive(Debug)]
pub(super) struct Credentials {
    api: Apiserver,
    account: Option<Account>,
    namespace: String,
    cluster: String,
    secrets: BTreeMap<String, (Instant, Arc<Secret>)>,
    /// With the versions of the Secrets it was made from.
    tls: Option<(String, Tls)>,
    access: Option<(String, Access)>,
    tokens: BTreeMap<String, Token>,
    /// When each Secret was doubted last.
    doubted: BTreeMap<String, Instant>,
}

/// A token for the manager of one pod.
struct Token {
    text: String,
    until: Instant,
}

/// Never the token itself.
impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

impl Credentials {
    pub(super) fn new(
        api: Apiserver,
        account: Option<Account>,
        namespace: &str,
        cluster: &str,
    ) -> Self {
        Self {
            api,
            account,
            namespace: namespace.to_owned(),
            cluster: cluster.to_owned(),
            secrets: BTreeMap::new(),
            tls: None,
            access: None,
            tokens: BTreeMap::new(),
            doubted: BTreeMap::new(),
        }
    }

    /// What may be the cause of a refusal is read again at the next use. Not every time, because it
    /// may be none of it.
    fn doubt(&mut self, secret: &str, gap: Duration) {
        if self.doubted.get(secret).is_none_or(|at| at.elapsed() >= gap) {
            self.doubted.insert(secret.to_owned(), Instant::now());
            self.secrets.remove(secret);
        }
    }

    /// The manager of this pod did not accept what it was shown.
    pub(super) fn doubt_token(&mut self, uid: &str, auth: &Auth) {
        self.tokens.remove(uid);
        match auth {
            Auth::JwtKey { secret } | Auth::ClientCertificate { secret } => {
                self.doubt(secret, SHUNNED);
            }
            Auth::ServiceAccountToken => {}
        }
    }

    /// The certificate of a manager is not trusted, or ours cannot be used.
    pub(super) fn doubt_trust(&mut self, manager: &Manager, auth: &Auth) {
        self.doubt(&manager.ca_secret, UNTRUSTED);
        if let Auth::ClientCertificate { secret } = auth {
            self.doubt(secret, UNTRUSTED);
        }
    }

    /// The engine did not accept us, or we not it.
    pub(super) fn doubt_engine(&mut self, engine: &Engine) {
        if let Some(secret) = &engine.credentials_secret {
            self.doubt(secret, SHUNNED);
        }
        if let Some(secret) = &engine.ca_secret {
            self.doubt(secret, UNTRUSTED);
        }
    }

    /// Another spec may name others.
    pub(super) fn forget_secrets(&mut self) {
        self.secrets.clear();
        self.doubted.clear();
    }

    /// A Secret; one that holds what is secret has to allow its use by this SearchCluster.
    async fn secret(&mut self, name: &str, must_allow: bool) -> Result<Arc<Secret>, String> {
        let kept = self.secrets.get(name).filter(|(read, _)| read.elapsed() < LIFE);
        let secret = match kept {
            Some((_, secret)) => Arc::clone(secret),
            None => {
                let read = self.api.secret(&self.namespace, name).await;
                let secret = Arc::new(read.map_err(|failure| match failure {
                    Failure::NotFound(_) => format!(
                        "Secret {name}, which the SearchCluster names, is absent: create it, or \
                         name another"
                    ),
                    Failure::Conflict(why) | Failure::Failed(why) => why,
                })?);
                self.secrets.insert(name.to_owned(), (Instant::now(), Arc::clone(&secret)));
                secret
            }
        };
        if must_allow {
            let none = BTreeMap::new();
            let annotations = secret.metadata.annotations.as_ref().unwrap_or(&none);
            // One that is allowed a moment later should not be kept out for the Secret's life.
            allows(name, annotations, &self.cluster).inspect_err(|_| {
                self.secrets.remove(name);
            })?;
        }
        Ok(secret)
    }
}

fn version(secret: &Secret) -> &str {
    secret.metadata.resource_version.as_deref().unwrap_or_default()
}

fn bytes<'a>(secret: &'a Secret, name: &str, key: &str) -> Result<&'a [u8], String> {
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    value.map(|value| value.0.as_slice()).ok_or_else(|| {
        format!("Secret {name} has no key {key}, which is needed for what the SearchCluster says")
    })
}

fn pem(secret: &Secret, name: &str, key: &str) -> Result<Pem, String> {
    Ok(Pem::new(format!("{key} of Secret {name}"), bytes(secret, name, key)?.to_vec()))
}
