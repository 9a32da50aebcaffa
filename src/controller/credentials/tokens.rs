//! Tokens for the managers; each is valid for the manager of one pod.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::error::CredentialsError;
use super::secrets::{Secrets, bytes};
use crate::apiserver::{Apiserver, FIELD_MANAGER};
use crate::concurrency::join_limited;
use crate::pods::PodFacts;
use crate::settings::Account;
use stayput_http::jwt::{Grant, Scopes, mint, pod_audience};
use stayput_kube_access::cluster::{Auth, key};

/// Lifetime of the tokens that we sign ourselves: a new one costs nothing.
const SIGNED_LIFE: Duration = Duration::from_secs(600);
/// Time in one observation, from its first token request, in which further tokens are requested.
const REQUEST_WINDOW: Duration = Duration::from_secs(10);

/// Token and lifetime, or error, with the uid of the pod.
type Made = Vec<(String, Result<(String, Duration), Arc<CredentialsError>>)>;

/// The tokens of one SearchCluster, by uid of the pod.
#[derive(Debug)]
pub(super) struct Tokens {
    api: Apiserver,
    account: Option<Account>,
    valid: BTreeMap<String, Token>,
    /// Errors of the last renewal.
    failed: BTreeMap<String, Arc<CredentialsError>>,
}

struct Token {
    text: String,
    until: Instant,
}

/// Hides the token itself.
impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// Age at which a token is renewed: four fifths of its life.
fn renewed_after(life: Duration) -> Duration {
    life / 5 * 4
}

impl Tokens {
    pub(super) fn new(api: Apiserver, account: Option<Account>) -> Self {
        Self { api, account, valid: BTreeMap::new(), failed: BTreeMap::new() }
    }

    /// Makes or requests the tokens that are missing or due for renewal.
    pub(super) async fn renew(
        &mut self,
        secrets: &mut Secrets,
        auth: &Auth,
        pods: &[Arc<PodFacts>],
    ) {
        let now = Instant::now();
        self.failed.clear();
        self.valid.retain(|_, token| token.until > now);
        let missing: Vec<&Arc<PodFacts>> =
            pods.iter().filter(|pod| !self.valid.contains_key(&pod.uid)).collect();
        if missing.is_empty() {
            return;
        }
        let made = match auth {
            Auth::ClientCertificate { .. } => return,
            Auth::JwtKey { secret } => sign(secrets, secret, &missing).await,
            Auth::ServiceAccountToken => self.request(&missing).await,
        };
        for (uid, result) in made {
            match result {
                Ok((text, life)) => {
                    let until = now + renewed_after(life);
                    self.valid.insert(uid, Token { text, until });
                }
                Err(error) => drop(self.failed.insert(uid, error)),
            }
        }
    }

    /// The token for the manager of this pod; `None` with client certificates, which need no token.
    pub(super) fn of(&self, uid: &str) -> Result<Option<String>, Arc<CredentialsError>> {
        match self.failed.get(uid) {
            Some(error) => Err(Arc::clone(error)),
            None => Ok(self.valid.get(uid).map(|token| token.text.clone())),
        }
    }

    pub(super) fn forget(&mut self, uid: &str) {
        self.valid.remove(uid);
    }

    async fn request(&self, pods: &[&Arc<PodFacts>]) -> Made {
        let end = Instant::now() + REQUEST_WINDOW;
        let request = async |pod: &Arc<PodFacts>| {
            if Instant::now() >= end {
                return Err(CredentialsError::TokenNotRequested);
            }
            let account = self.account.as_ref().ok_or(CredentialsError::NoServiceAccount)?;
            let audience = pod_audience(&pod.namespace, &pod.uid);
            Ok(self.api.token(account, audience).await?)
        };
        let request =
            async |pod: &Arc<PodFacts>| (pod.uid.clone(), request(pod).await.map_err(Arc::new));
        join_limited(pods.iter().map(|pod| request(pod)).collect()).await
    }
}

/// Signs tokens with the key in a Secret.
async fn sign(secrets: &mut Secrets, name: &str, pods: &[&Arc<PodFacts>]) -> Made {
    let secret = secrets.get_allowed(name).await.map_err(Arc::new);
    let token = |pod: &Arc<PodFacts>| {
        let secret = secret.as_ref().map_err(Arc::clone)?;
        let grant = Grant {
            subject: FIELD_MANAGER.to_owned(),
            scopes: Scopes::CONTROL,
            audience: pod_audience(&pod.namespace, &pod.uid),
            ttl: SIGNED_LIFE,
        };
        let token = mint(bytes(secret, name, key::JWT)?, &grant, SystemTime::now());
        token.map(|token| (token, SIGNED_LIFE)).map_err(|error| {
            let secret = name.to_owned();
            let error =
                CredentialsError::SigningKey { secret, key: key::JWT, source: error.into() };
            Arc::new(error)
        })
    };
    pods.iter().map(|pod| (pod.uid.clone(), token(pod))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::TOKEN_SECONDS;
    use stayput_http::jwt::MAX_AHEAD;

    #[test] // proves RESTART-7
    fn a_thousand_pods_cost_less_than_one_token_request_in_two_seconds() {
        let life = Duration::from_secs(TOKEN_SECONDS.into());
        let a_second = 1_000.0 / renewed_after(life).as_secs_f64();
        assert!(a_second < 0.5, "{a_second}");
        // Managers accept it although their clocks are ten minutes behind.
        assert!(life + Duration::from_secs(600) <= Duration::from_secs(MAX_AHEAD));
    }
}
