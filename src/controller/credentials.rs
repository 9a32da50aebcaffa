//! Our credentials for managers and engine, and their CAs: from the Secrets that a SearchCluster names. They
//! are read when needed, cached for a short time, and read again as soon as they are not accepted.

mod engine;
mod secrets;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use stayput_engine::EngineError;
use stayput_http::https::{Identity, ONLY_1_3, Tls};
use stayput_http::jwt::{Grant, Scopes, mint, pod_audience};
use stayput_http::manager_client;
use stayput_http::manager_client::{Address, ClientError, ManagerClient};
use stayput_kube_access::cluster::{Auth, Engine, Manager, NotAllowed, key};
use stayput_kube_access::names::reconciler;
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::credentials::engine::EngineAccess;
pub(super) use crate::credentials::engine::Reach;
use crate::credentials::secrets::{
    REFUSED_INTERVAL, Secrets, UNTRUSTED_INTERVAL, bytes, pem, version,
};
use crate::pods::PodFacts;
use crate::run::Account;

/// Requested lifetime of tokens, in seconds. Each is for one manager only. Managers refuse tokens that are
/// valid for more than an hour; their clocks may differ from the apiserver's.
const TOKEN_SECONDS: u32 = 50 * 60;

/// A client of the manager of a pod, or why there is none.
pub(super) type ClientOfPod = (Arc<PodFacts>, Result<ManagerClient, Arc<CredentialsError>>);

/// Credentials of one SearchCluster.
#[derive(Debug)]
pub(super) struct Credentials {
    secrets: Secrets,
    engine: EngineAccess,
    manager_tls: ManagerTls,
    tokens: Tokens,
}

impl Credentials {
    pub(super) fn new(
        api: Apiserver,
        account: Option<Account>,
        namespace: &str,
        cluster: &str,
    ) -> Self {
        Self {
            secrets: Secrets::new(api.clone(), namespace, cluster),
            engine: EngineAccess::default(),
            manager_tls: ManagerTls::default(),
            tokens: Tokens::new(api, account),
        }
    }

    /// The access to the engine.
    ///
    /// # Errors
    /// The Secret or field that is wrong, and how to correct it.
    pub(super) async fn engine(&mut self, engine: &Engine) -> Result<Reach, CredentialsError> {
        self.engine.get(&mut self.secrets, engine).await
    }

    /// A client for each of the pods' managers, or why there is none.
    pub(super) async fn managers(
        &mut self,
        manager: &Manager,
        auth: &Auth,
        pods: &[Arc<PodFacts>],
    ) -> Vec<ClientOfPod> {
        let tls = self.manager_tls.get(&mut self.secrets, manager, auth).await.map_err(Arc::new);
        if tls.is_ok() {
            self.tokens.renew(&mut self.secrets, auth, pods).await;
        }
        let client = |pod: &Arc<PodFacts>| {
            let tls = tls.clone()?;
            let token = self.tokens.of(&pod.uid)?;
            client(manager, pod, tls, token).map_err(Arc::new)
        };
        pods.iter().map(|pod| (Arc::clone(pod), client(pod))).collect()
    }

    /// Reads token or certificate again: the manager of this pod did not accept ours.
    pub(super) fn reread_token(&mut self, uid: &str, auth: &Auth) {
        self.tokens.forget(uid);
        match auth {
            Auth::JwtKey { secret } | Auth::ClientCertificate { secret } => {
                self.secrets.reread(secret, REFUSED_INTERVAL);
            }
            Auth::ServiceAccountToken => {}
        }
    }

    /// Reads CA and certificate again: a manager's certificate is not trusted, or ours cannot be used.
    pub(super) fn reread_trust(&mut self, manager: &Manager, auth: &Auth) {
        self.secrets.reread(&manager.ca_secret, UNTRUSTED_INTERVAL);
        if let Auth::ClientCertificate { secret } = auth {
            self.secrets.reread(secret, UNTRUSTED_INTERVAL);
        }
    }

    /// Reads credentials and CA again: the engine did not accept our credentials, or its certificate is not
    /// trusted.
    pub(super) fn reread_engine(&mut self, engine: &Engine) {
        if let Some(secret) = &engine.credentials_secret {
            self.secrets.reread(secret, REFUSED_INTERVAL);
        }
        if let Some(secret) = &engine.ca_secret {
            self.secrets.reread(secret, UNTRUSTED_INTERVAL);
        }
    }

    /// Switches between https and http: the engine did not answer in the scheme of the last request.
    pub(super) fn try_other_scheme(&mut self, engine: &Engine) {
        self.engine.try_other_scheme(engine);
    }

    /// Empties the cache: another spec may name other Secrets.
    pub(super) fn forget_secrets(&mut self) {
        self.secrets.clear();
    }
}

/// Reason why there are no usable credentials.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("Secret {0}, which the SearchCluster names, is absent: create it, or name another")]
    SecretAbsent(String),
    #[error(transparent)]
    Apiserver(#[from] ApiError),
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("Secret {secret} has no key {key}, which the spec of the SearchCluster requires")]
    KeyAbsent { secret: String, key: String },
    #[error("{key} of Secret {secret} is not UTF-8 text")]
    NotText {
        secret: String,
        key: String,
        #[source]
        source: std::str::Utf8Error,
    },
    #[error("spec.engine.caSecret is missing: https needs a CA")]
    NoEngineCa,
    #[error(
        "spec.engine.credentialsSecret would be sent over plain http: set \
         engine.allowPlainCredentials to true if that is intended"
    )]
    PlainHttp,
    #[error(transparent)]
    EngineTls(#[from] EngineError),
    #[error("{0}")]
    ManagerTls(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{key} of Secret {secret} {source}")]
    SigningKey {
        secret: String,
        key: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(
        "spec.manager.auth.serviceAccountToken needs the reconciler's own service account: give it \
         STAYPUT_SERVICE_ACCOUNT and STAYPUT_POD_NAMESPACE"
    )]
    NoServiceAccount,
    #[error("no token requested yet: the apiserver is slow to return tokens")]
    TokenNotRequested,
    #[error("{0} has no address yet")]
    NoAddress(String),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// The last TLS settings, and the text of all inputs that they were made from.
#[derive(Debug, Default)]
struct ManagerTls(Option<(String, Tls)>);

impl ManagerTls {
    /// TLS with the CA of the managers' certificates, and our client certificate, if there is one.
    async fn get(
        &mut self,
        secrets: &mut Secrets,
        manager: &Manager,
        auth: &Auth,
    ) -> Result<Tls, CredentialsError> {
        let ca = secrets.get(&manager.ca_secret).await?;
        let certificate = match auth {
            Auth::ClientCertificate { secret } => {
                Some((secret, secrets.get_allowed(secret).await?))
            }
            Auth::ServiceAccountToken | Auth::JwtKey { .. } => None,
        };
        let own = certificate.as_ref().map(|(_, secret)| version(secret));
        let made_from = format!("{manager:?} {} {own:?}", version(&ca));
        if let Some((from, tls)) = &self.0
            && *from == made_from
        {
            return Ok(tls.clone());
        }
        let ca = pem(&ca, &manager.ca_secret, key::CA)?;
        let identity = match &certificate {
            Some((name, secret)) => Some(Identity {
                certificate: pem(secret, name, key::TLS_CERT)?,
                key: pem(secret, name, key::TLS_KEY)?,
            }),
            None => None,
        };
        let tls = Tls::new(&ca, identity.as_ref(), ONLY_1_3)
            .map_err(|error| CredentialsError::ManagerTls(error.into()))?;
        self.0 = Some((made_from, tls.clone()));
        Ok(tls)
    }
}

/// A client of the manager of this pod.
fn client(
    manager: &Manager,
    pod: &PodFacts,
    tls: Tls,
    token: Option<String>,
) -> Result<ManagerClient, CredentialsError> {
    let address =
        pod.address.as_ref().ok_or_else(|| CredentialsError::NoAddress(pod.name.clone()))?;
    let host = if address.contains(':') { format!("[{address}]") } else { address.clone() };
    let address = Address::Url {
        url: format!("https://{host}:{}", manager.port),
        server_name: Some(manager.server_name.clone()),
        credentials: manager_client::Credentials {
            tls: Some(tls),
            token: token.map(manager_client::Token::Text),
        },
    };
    Ok(ManagerClient::new(address)?.for_pod(&pod.uid))
}

/// Lifetime of the tokens that we sign ourselves: a new one costs nothing.
const SIGNED_LIFE: Duration = Duration::from_secs(600);
/// Time in one observation, from its first token request, in which further tokens are requested.
const REQUEST_WINDOW: Duration = Duration::from_secs(10);

/// Token and lifetime, or error, with the uid of the pod.
type Made = Vec<(String, Result<(String, Duration), Arc<CredentialsError>>)>;

/// The tokens of one SearchCluster, by uid of the pod.
#[derive(Debug)]
struct Tokens {
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
    fn new(api: Apiserver, account: Option<Account>) -> Self {
        Self { api, account, valid: BTreeMap::new(), failed: BTreeMap::new() }
    }

    /// Makes or requests the tokens that are missing or due for renewal.
    async fn renew(&mut self, secrets: &mut Secrets, auth: &Auth, pods: &[Arc<PodFacts>]) {
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
    fn of(&self, uid: &str) -> Result<Option<String>, Arc<CredentialsError>> {
        match self.failed.get(uid) {
            Some(error) => Err(Arc::clone(error)),
            None => Ok(self.valid.get(uid).map(|token| token.text.clone())),
        }
    }

    fn forget(&mut self, uid: &str) {
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
            Ok(token_of(&self.api, account, audience).await?)
        };
        let request =
            async |pod: &Arc<PodFacts>| (pod.uid.clone(), request(pod).await.map_err(Arc::new));
        join_limited(pods.iter().map(|pod| request(pod)).collect()).await
    }
}

/// A token of `account` for `audience` alone, and its lifetime.
async fn token_of(
    api: &Apiserver,
    account: &Account,
    audience: String,
) -> Result<(String, Duration), ApiError> {
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: vec![audience],
            expiration_seconds: Some(i64::from(TOKEN_SECONDS)),
            bound_object_ref: None,
        },
        ..TokenRequest::default()
    };
    let accounts = api.objects::<ServiceAccount>(&account.namespace);
    let call = accounts.about("create").subresource("token").named(&account.name);
    let post = PostParams::default();
    let answer = accounts.api().create_token_request(&account.name, &post, &request);
    let answer = accounts.call(call, answer).await?;
    // The apiserver may give less than it is asked for.
    let seconds = answer.spec.expiration_seconds.and_then(|all| u64::try_from(all).ok());
    let life = Duration::from_secs(seconds.unwrap_or(u64::from(TOKEN_SECONDS)));
    let token = answer.status.map(|status| status.token).unwrap_or_default();
    if token.is_empty() {
        let Account { namespace, name } = account;
        return Err(ApiError::Incomplete(format!("token of ServiceAccount {namespace}/{name}")));
    }
    Ok((token, life))
}

/// Signs tokens with the key in a Secret.
async fn sign(secrets: &mut Secrets, name: &str, pods: &[&Arc<PodFacts>]) -> Made {
    let secret = secrets.get_allowed(name).await.map_err(Arc::new);
    let token = |pod: &Arc<PodFacts>| {
        let secret = secret.as_ref().map_err(Arc::clone)?;
        let grant = Grant {
            subject: reconciler::NAME.to_owned(),
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
mod tests;
