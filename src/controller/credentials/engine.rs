//! How the engine is reached, and with which credentials.

use k8s_openapi::api::core::v1::Secret;

use super::secrets::{Secrets, bytes, pem, version};
use crate::credentials::CredentialsError;
use stayput_engine::{self, Access, AllowPlain};
use stayput_http::https::Identity;
use stayput_kube_access::cluster::{self, EngineKeys, Scheme, engine_keys, key};

/// The access to the engine, and its version.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    pub(crate) access: Access,
    /// Text of all inputs of the access: a different text is a different access.
    pub(crate) version: String,
}

/// The last access to the engine.
#[derive(Debug, Default)]
pub(super) struct EngineAccess {
    made: Option<Reach>,
    /// Ask with TLS, in a cluster whose engine may have it or not.
    with_tls: bool,
}

impl EngineAccess {
    /// Switches the scheme of the next request where the engine may have got TLS, or not have it yet: it did
    /// not answer in the current one. Never goes from TLS to plain http where the spec says https.
    pub(super) fn try_other_scheme(&mut self, engine: &cluster::Engine) {
        self.with_tls = !self.with_tls && may_have_tls(engine);
    }

    /// The access to the engine, made anew if spec or Secrets have changed.
    pub(super) async fn get(
        &mut self,
        secrets: &mut Secrets,
        engine: &cluster::Engine,
    ) -> Result<Reach, CredentialsError> {
        let shown = match &engine.credentials_secret {
            Some(name) => Some((name, secrets.get_allowed(name).await?)),
            None => None,
        };
        let ca = match (&engine.ca_secret, engine.scheme) {
            (Some(name), Scheme::Https) => Some((name, secrets.get(name).await?)),
            (Some(name), Scheme::Http) if self.with_tls => Some((name, secrets.get(name).await?)),
            (_, Scheme::Http) => None,
            (None, Scheme::Https) => {
                return Err(CredentialsError::NoEngineCa);
            }
        };
        let versions: Vec<&str> =
            [&shown, &ca].into_iter().flatten().map(|(_, secret)| version(secret)).collect();
        let version = format!("{engine:?} {versions:?}, {}", ca.is_some());
        if let Some(made) = self.made.as_ref().filter(|made| made.version == version) {
            return Ok(made.clone());
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
                let tls = stayput_engine::tls(&ca, identity.as_ref())?;
                Access::Tls { tls, server_name: engine.server_name.clone(), credentials }
            }
            (None, Some(_)) if may_have_tls(engine) && !engine.allow_plain_credentials => {
                Access::Plain
            }
            // An invalid spec is still used to finish restarts under way.
            (None, Some(_)) if !engine.allow_plain_credentials => {
                return Err(CredentialsError::PlainHttp);
            }
            (None, Some(credentials)) => Access::PlainWithCredentials(credentials, AllowPlain),
            (None, None) => Access::Plain,
        };
        Ok(self.made.insert(Reach { access, version }).clone())
    }
}

/// True for an engine that is asked without TLS now, and with TLS as soon as it has it.
fn may_have_tls(engine: &cluster::Engine) -> bool {
    engine.scheme == Scheme::Http && engine.ca_secret.is_some()
}

fn has(secret: &Secret, key: &str) -> bool {
    secret.data.as_ref().is_some_and(|data| data.contains_key(key))
}

/// User and password, or the API key; `None` for a Secret that has only a certificate.
fn credentials(
    name: &str,
    secret: &Secret,
) -> Result<Option<stayput_engine::Credentials>, CredentialsError> {
    let text = |key: &str| {
        let bytes = bytes(secret, name, key)?;
        let text = std::str::from_utf8(bytes).map_err(|source| CredentialsError::NotText {
            secret: name.to_owned(),
            key: key.to_owned(),
            source,
        })?;
        Ok::<_, CredentialsError>(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    let basic = |user: String, password: &str| {
        Ok(Some(stayput_engine::Credentials::Basic { user, password: text(password)? }))
    };
    match engine_keys(|key| has(secret, key)) {
        EngineKeys::ApiKey => Ok(Some(stayput_engine::Credentials::ApiKey(text(key::API_KEY)?))),
        EngineKeys::Certificate => Ok(None),
        EngineKeys::UserAndPassword => basic(text(key::USERNAME)?, key::PASSWORD),
        EngineKeys::Elastic => basic(key::ELASTIC.to_owned(), key::ELASTIC),
    }
}

fn identity(name: &str, secret: &Secret) -> Result<Option<Identity>, CredentialsError> {
    if !has(secret, key::TLS_CERT) {
        return Ok(None);
    }
    let certificate = pem(secret, name, key::TLS_CERT)?;
    Ok(Some(Identity { certificate, key: pem(secret, name, key::TLS_KEY)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(scheme: Scheme, ca: Option<&str>) -> cluster::Engine {
        let engine = serde_json::json!({"caSecret": ca, "port": 9200});
        let engine: cluster::Engine = serde_json::from_value(engine).unwrap();
        cluster::Engine { scheme, ..engine }
    }

    #[test] // proves UPDATE-80
    fn only_where_the_spec_says_http_and_has_a_ca_the_other_scheme_is_tried() {
        let tried = |scheme, ca| {
            let mut access = EngineAccess::default();
            let engine = engine(scheme, ca);
            [(); 3].map(|()| {
                access.try_other_scheme(&engine);
                access.with_tls
            })
        };
        assert_eq!(tried(Scheme::Http, Some("ca")), [true, false, true]);
        assert_eq!(tried(Scheme::Http, None), [false; 3]);
        // The spec's TLS does not depend on this, and is never left.
        assert_eq!(tried(Scheme::Https, Some("ca")), [false; 3]);
    }

    /// As ECK keeps it in the Secret NAME-es-elastic-user.
    #[test] // proves DOCTOR-13
    fn a_password_under_the_name_elastic_is_that_of_the_user_elastic() {
        let read = |data: serde_json::Value| {
            let secret = serde_json::from_value(serde_json::json!({ "data": data })).unwrap();
            match credentials("s", &secret) {
                Ok(Some(stayput_engine::Credentials::Basic { user, password })) => {
                    format!("{user}:{password}")
                }
                Ok(Some(stayput_engine::Credentials::ApiKey(key))) => key,
                Ok(None) => "a certificate".into(),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(read(serde_json::json!({"elastic": "c2VjcmV0"})), "elastic:secret");
        let both = serde_json::json!({"elastic": "eA==", "username": "YQ==", "password": "Yg=="});
        assert_eq!(read(both), "a:b", "what is named in full wins");
        let beside = serde_json::json!({"elastic": "eA==", "tls.crt": "eA=="});
        assert_eq!(read(beside), "a certificate");
        let nothing = read(serde_json::json!({"other": "eA=="}));
        assert!(nothing.contains("no key username"), "{nothing}");
    }
}
