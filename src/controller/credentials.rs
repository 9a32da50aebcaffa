//! Our credentials for managers and engine, and their CAs: from the Secrets that a SearchCluster names. They
//! are read when needed, cached for a short time, and read again as soon as they are not accepted.

mod engine;
mod error;
mod managers;
mod secrets;
mod tokens;

use std::sync::Arc;

use super::apiserver::Apiserver;
use super::pods::PodFacts;
use super::settings::Account;
use engine::EngineAccess;
pub(super) use engine::Reach;
pub(super) use error::CredentialsError;
use managers::ManagerTls;
use secrets::{REFUSED_INTERVAL, Secrets, UNTRUSTED_INTERVAL};
use stayput_http::manager_client::ManagerClient;
use stayput_kube_access::cluster::{Auth, Engine, Manager};
use tokens::Tokens;

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
            managers::client(manager, pod, tls, token).map_err(Arc::new)
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
