//! TLS settings and clients for the managers.

use super::error::CredentialsError;
use super::secrets::{Secrets, pem, version};
use crate::pods::PodFacts;
use stayput_http::https::{Identity, ONLY_1_3, Tls};
use stayput_http::manager_client::{self, Address, ManagerClient};
use stayput_kube_access::cluster::{Auth, Manager, key};

/// The last TLS settings, and the text of all inputs that they were made from.
#[derive(Debug, Default)]
pub(super) struct ManagerTls(Option<(String, Tls)>);

impl ManagerTls {
    /// TLS with the CA of the managers' certificates, and our client certificate, if there is one.
    pub(super) async fn get(
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
pub(super) fn client(
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
