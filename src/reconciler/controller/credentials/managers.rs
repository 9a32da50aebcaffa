//! How the managers are reached, and as whom: a token is good for the manager of one pod.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{Credentials, Token, bytes, pem, version};
use crate::cluster::{Auth, Manager, key};
use crate::controller::apiserver::{MANAGER, TOKEN_SECONDS};
use crate::controller::bounded::together;
use crate::controller::pods::Facts;
use stayput_net::https::{Identity, ONLY_1_3, Tls};
use stayput_net::jwt::{Grant, Scopes, mint, pod_audience};
use stayput_net::manager_client;
use stayput_net::manager_client::{Address, ManagerClient};

/// A token is renewed when this much of its life is over, in seconds.
const FRESH: u32 = TOKEN_SECONDS / 5 * 4;
/// How long after the first one another token is still asked for in the same look.
const TURN: Duration = Duration::from_secs(10);

impl Credentials {
    /// A client for each of the pods' managers, or why there is none.
    pub(in super::super) async fn managers(
        &mut self,
        manager: &Manager,
        auth: &Auth,
        pods: &[Arc<Facts>],
    ) -> Vec<(Arc<Facts>, Result<ManagerClient, String>)> {
        let tls = self.tls(manager, auth).await;
        let tokens = match &tls {
            Ok(_) => self.tokens(auth, pods).await,
            Err(_) => BTreeMap::new(),
        };
        let client = |pod: &Arc<Facts>| {
            let tls = tls.clone()?;
            if let Some(why) = tokens.get(&pod.uid) {
                return Err(why.clone());
            }
            let token = self.tokens.get(&pod.uid).map(|token| token.text.clone());
            client(manager, pod, tls, token)
        };
        pods.iter().map(|pod| (Arc::clone(pod), client(pod))).collect()
    }

    async fn tls(&mut self, manager: &Manager, auth: &Auth) -> Result<Tls, String> {
        let ca = self.secret(&manager.ca_secret, false).await?;
        let shown = match auth {
            Auth::ClientCertificate { secret } => Some((secret, self.secret(secret, true).await?)),
            Auth::ServiceAccountToken | Auth::JwtKey { .. } => None,
        };
        let own = shown.as_ref().map(|(_, secret)| version(secret));
        let made_from = format!("{manager:?} {} {own:?}", version(&ca));
        if let Some((from, tls)) = &self.tls
            && *from == made_from
        {
            return Ok(tls.clone());
        }
        let ca = pem(&ca, &manager.ca_secret, key::CA)?;
        let identity = match &shown {
            Some((name, secret)) => Some(Identity {
                certificate: pem(secret, name, key::TLS_CERT)?,
                key: pem(secret, name, key::TLS_KEY)?,
            }),
            None => None,
        };
        let tls = Tls::new(&ca, identity.as_ref(), ONLY_1_3).map_err(|error| error.to_string())?;
        self.tls = Some((made_from, tls.clone()));
        Ok(tls)
    }

    /// Makes or asks for the tokens that are missing or old; the pods that have none, and why.
    async fn tokens(&mut self, auth: &Auth, pods: &[Arc<Facts>]) -> BTreeMap<String, String> {
        let now = Instant::now();
        self.tokens.retain(|_, token| token.until > now);
        let missing: Vec<&Arc<Facts>> =
            pods.iter().filter(|pod| !self.tokens.contains_key(&pod.uid)).collect();
        if missing.is_empty() {
            return BTreeMap::new();
        }
        let made = match auth {
            Auth::ClientCertificate { .. } => return BTreeMap::new(),
            Auth::JwtKey { secret } => self.minted(secret, &missing).await,
            Auth::ServiceAccountToken => self.requested(&missing).await,
        };
        let until = now + Duration::from_secs(FRESH.into());
        let mut failed = BTreeMap::new();
        for (uid, result) in made {
            match result {
                Ok(text) => drop(self.tokens.insert(uid, Token { text, until })),
                Err(why) => drop(failed.insert(uid, why)),
            }
        }
        failed
    }

    async fn minted(
        &mut self,
        name: &str,
        pods: &[&Arc<Facts>],
    ) -> Vec<(String, Result<String, String>)> {
        let secret = self.secret(name, true).await;
        let token = |pod: &Arc<Facts>| {
            let secret = secret.as_ref().map_err(Clone::clone)?;
            let grant = Grant {
                subject: MANAGER.to_owned(),
                scopes: Scopes::CONTROL,
                audience: pod_audience(&pod.namespace, &pod.uid),
                ttl: Duration::from_secs(TOKEN_SECONDS.into()),
            };
            mint(bytes(secret, name, key::JWT)?, &grant, SystemTime::now())
                .map_err(|why| format!("{} of Secret {name} {why}", key::JWT))
        };
        pods.iter().map(|pod| (pod.uid.clone(), token(pod))).collect()
    }

    async fn requested(&self, pods: &[&Arc<Facts>]) -> Vec<(String, Result<String, String>)> {
        let over = Instant::now() + TURN;
        let ask = async |pod: &Arc<Facts>| {
            if Instant::now() >= over {
                let why = "not asked yet: the apiserver is slow to give out tokens";
                return (pod.uid.clone(), Err(why.to_owned()));
            }
            let Some(account) = &self.account else {
                return (pod.uid.clone(), Err(NO_ACCOUNT.to_owned()));
            };
            let audience = pod_audience(&pod.namespace, &pod.uid);
            let token = self.api.token(account, audience).await;
            (pod.uid.clone(), token.map_err(|failure| failure.to_string()))
        };
        together(pods.iter().map(|pod| ask(pod)).collect()).await
    }
}

const NO_ACCOUNT: &str = "spec.manager.auth.serviceAccountToken needs the reconciler's own service \
                          account: give it STAYPUT_SERVICE_ACCOUNT and STAYPUT_POD_NAMESPACE";

fn client(
    manager: &Manager,
    pod: &Facts,
    tls: Tls,
    token: Option<String>,
) -> Result<ManagerClient, String> {
    let Some(address) = &pod.address else {
        return Err(format!("{} has no address yet", pod.name));
    };
    let host = if address.contains(':') { format!("[{address}]") } else { address.clone() };
    let address = Address::Url {
        url: format!("https://{host}:{}", manager.port),
        server_name: Some(manager.server_name.clone()),
        credentials: manager_client::Credentials {
            tls: Some(tls),
            token: token.map(manager_client::Token::Text),
        },
    };
    let client = ManagerClient::new(address).map_err(|error| error.to_string())?;
    Ok(client.for_pod(&pod.uid))
}
