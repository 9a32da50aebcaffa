//! How the engine is reached, and as whom.

use k8s_openapi::api::core::v1::Secret;

use super::{Credentials, bytes, pem, version};
use crate::cluster::{self, Scheme, key};
use crate::engine_client::{self, Access, AllowPlain};
use stayput_net::https::Identity;

impl Credentials {
    /// How to reach the engine, and a text that changes whenever that does.
    ///
    /// # Errors
    /// A sentence that names the Secret, and what is wrong with it.
    pub(in super::super) async fn engine(
        &mut self,
        engine: &cluster::Engine,
    ) -> Result<(Access, String), String> {
        let shown = match &engine.credentials_secret {
            Some(name) => Some((name, self.secret(name, true).await?)),
            None => None,
        };
        let ca = match (&engine.ca_secret, engine.scheme) {
            (Some(name), Scheme::Https) => Some((name, self.secret(name, false).await?)),
            (_, Scheme::Http) => None,
            (None, Scheme::Https) => {
                return Err("spec.engine.caSecret is missing: https needs a CA".to_owned());
            }
        };
        let versions: Vec<&str> =
            [&shown, &ca].into_iter().flatten().map(|(_, secret)| version(secret)).collect();
        let made_from = format!("{engine:?} {versions:?}");
        if let Some((from, access)) = &self.access
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
                let tls = engine_client::tls(&ca, identity.as_ref());
                let tls = tls.map_err(|error| error.to_string())?;
                Access::Tls { tls, server_name: engine.server_name.clone(), credentials }
            }
            // An invalid spec is still used to end what was begun.
            (None, Some(_)) if !engine.allow_plain_credentials => {
                return Err("spec.engine.credentialsSecret would be sent over plain http: set \
                            engine.allowPlainCredentials to true if that is meant"
                    .to_owned());
            }
            (None, Some(credentials)) => Access::PlainWithCredentials(credentials, AllowPlain),
            (None, None) => Access::Plain,
        };
        self.access = Some((made_from.clone(), access.clone()));
        Ok((access, made_from))
    }
}

fn has(secret: &Secret, key: &str) -> bool {
    secret.data.as_ref().is_some_and(|data| data.contains_key(key))
}

/// User and password, or the API key; none if there is a certificate in their place.
fn credentials(name: &str, secret: &Secret) -> Result<Option<engine_client::Credentials>, String> {
    let text = |key: &str| {
        let bytes = bytes(secret, name, key)?;
        let text =
            std::str::from_utf8(bytes).map_err(|_| format!("{key} of Secret {name} is no text"))?;
        Ok::<_, String>(text.trim_end_matches(['\r', '\n']).to_owned())
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

fn identity(name: &str, secret: &Secret) -> Result<Option<Identity>, String> {
    if !has(secret, key::TLS_CERT) {
        return Ok(None);
    }
    let certificate = pem(secret, name, key::TLS_CERT)?;
    Ok(Some(Identity { certificate, key: pem(secret, name, key::TLS_KEY)? }))
}
