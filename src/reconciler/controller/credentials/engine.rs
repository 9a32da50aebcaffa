//! How the engine is reached, and with which credentials.

use k8s_openapi::api::core::v1::Secret;

use super::error::CredentialsError;
use super::secrets::{Secrets, bytes, pem, version};
use crate::cluster::{self, Scheme, key};
use crate::engine_client::{self, Access, AllowPlain};
use stayput_net::https::Identity;

/// The last access, and what it was made from.
#[derive(Debug, Default)]
pub(super) struct EngineAccess(Option<(String, Access)>);

impl EngineAccess {
    /// How to reach the engine, and a text that changes whenever that does.
    pub(super) async fn get(
        &mut self,
        secrets: &mut Secrets,
        engine: &cluster::Engine,
    ) -> Result<(Access, String), CredentialsError> {
        let shown = match &engine.credentials_secret {
            Some(name) => Some((name, secrets.get_allowed(name).await?)),
            None => None,
        };
        let ca = match (&engine.ca_secret, engine.scheme) {
            (Some(name), Scheme::Https) => Some((name, secrets.get(name).await?)),
            (_, Scheme::Http) => None,
            (None, Scheme::Https) => {
                return Err(CredentialsError::NoEngineCa);
            }
        };
        let versions: Vec<&str> =
            [&shown, &ca].into_iter().flatten().map(|(_, secret)| version(secret)).collect();
        let made_from = format!("{engine:?} {versions:?}");
        if let Some((from, access)) = &self.0
            && *from == made_from
        {
            return Ok((access.clone(), made_from));
        }
        let credentials = match &shown {
            Some((name, secret)) => credentials(name, secret)?,
            None => None,
        };
        let access = match (&ca, credentials) {
            (Some((name, ca)), credentials) => {
                let ca = pem(ca, name, key::CA)?;
                let identity = match &shown {
                    Some((name, secret)) => identity(name, secret)?,
                    None => None,
                };
                let tls = engine_client::tls(&ca, identity.as_ref())?;
                Access::Tls { tls, server_name: engine.server_name.clone(), credentials }
            }
            // An invalid spec is still used to finish what was begun.
            (None, Some(_)) if !engine.allow_plain_credentials => {
                return Err(CredentialsError::PlainHttp);
            }
            (None, Some(credentials)) => Access::PlainWithCredentials(credentials, AllowPlain),
            (None, None) => Access::Plain,
        };
        self.0 = Some((made_from.clone(), access.clone()));
        Ok((access, made_from))
    }
}

fn has(secret: &Secret, key: &str) -> bool {
    secret.data.as_ref().is_some_and(|data| data.contains_key(key))
}

/// User and password, or the API key; none if the Secret has only a certificate.
fn credentials(
    name: &str,
    secret: &Secret,
) -> Result<Option<engine_client::Credentials>, CredentialsError> {
    let text = |key: &str| {
        let bytes = bytes(secret, name, key)?;
        let text = std::str::from_utf8(bytes).map_err(|source| CredentialsError::NotText {
            secret: name.to_owned(),
            key: key.to_owned(),
            source,
        })?;
        Ok::<_, CredentialsError>(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    if has(secret, key::API_KEY) {
        return Ok(Some(engine_client::Credentials::ApiKey(text(key::API_KEY)?)));
    }
    if !has(secret, key::USERNAME) && has(secret, key::TLS_CERT) {
        return Ok(None);
    }
    let (user, password) = (text(key::USERNAME)?, text(key::PASSWORD)?);
    Ok(Some(engine_client::Credentials::Basic { user, password }))
}

fn identity(name: &str, secret: &Secret) -> Result<Option<Identity>, CredentialsError> {
    if !has(secret, key::TLS_CERT) {
        return Ok(None);
    }
    let certificate = pem(secret, name, key::TLS_CERT)?;
    Ok(Some(Identity { certificate, key: pem(secret, name, key::TLS_KEY)? }))
}
