//! The access to a cluster: endpoints, TLS and credentials.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;

use super::EngineError;
use crate::answer::Cause;
use stayput_http::https::{FROM_1_2, Identity, Pem, Target, Tls};

/// One node's REST interface: a pod's address and port, or a Service's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// Port of the REST interface.
    pub port: u16,
}

/// Access to every endpoint of a cluster.
#[derive(Debug, Clone)]
pub enum Access {
    /// Plain HTTP without credentials.
    Plain,
    /// Plain HTTP with credentials, which can be read on the network path.
    PlainWithCredentials(Credentials, AllowPlain),
    /// HTTP over TLS.
    Tls {
        /// The CA to trust, and the client certificate: see [`tls`].
        tls: Tls,
        /// The name that every endpoint's certificate is for; without one, each certificate has to
        /// be for the endpoint's own host or IP address.
        server_name: Option<String>,
        /// Credentials beside the client certificate.
        credentials: Option<Credentials>,
    },
}

/// The spec says explicitly that credentials may be sent over plain HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowPlain;

/// Our credentials for the engine.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// User and password.
    Basic {
        /// The user's name.
        user: String,
        /// Password of the user.
        password: String,
    },
    /// An API key, as the engine gave it (`encoded`) or as `id:api_key`. Elasticsearch only.
    ApiKey(String),
}

/// TLS of an engine, to be built once per cluster and shared by clones. TLS 1.2 is accepted:
/// an engine on a Java 8 before 8u261 has nothing newer.
///
/// # Errors
/// [`EngineError::Unusable`] names the PEM document that cannot be used and says what to do.
pub fn tls(ca: &Pem, identity: Option<&Identity>) -> Result<Tls, EngineError> {
    Tls::new(ca, identity, FROM_1_2).map_err(|error| EngineError::Unusable(error.into()))
}

/// Credentials that cannot be sent; the message does not repeat a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum CredentialsError {
    #[error("the user name {0:?} contains a colon, which HTTP does not allow")]
    ColonInUser(String),
    #[error("the API key contains characters that are not allowed in a header")]
    ApiKey,
}

impl Credentials {
    /// The value of `Authorization`, marked so that no log of headers shows it.
    fn header(&self) -> Result<HeaderValue, CredentialsError> {
        let text = match self {
            Self::Basic { user, .. } if user.contains(':') => {
                return Err(CredentialsError::ColonInUser(user.clone()));
            }
            Self::Basic { user, password } => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
            }
            Self::ApiKey(key) if key.contains(':') => format!("ApiKey {}", STANDARD.encode(key)),
            Self::ApiKey(key) => format!("ApiKey {key}"),
        };
        let mut header = HeaderValue::from_str(&text).map_err(|_| CredentialsError::ApiKey)?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// Name of the credentials in messages.
    const fn name(&self) -> &'static str {
        match self {
            Self::Basic { .. } => "the user and password",
            Self::ApiKey(_) => "the API key",
        }
    }
}

/// Shows the user, never the secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { user, .. } => write!(formatter, "Basic({user})"),
            Self::ApiKey(_) => formatter.write_str("ApiKey"),
        }
    }
}

impl Access {
    pub(super) fn target(&self, endpoint: &Endpoint) -> Result<Target, EngineError> {
        let Endpoint { host, port } = endpoint;
        let target = match self {
            Self::Plain | Self::PlainWithCredentials(..) => Target::http(host, *port),
            Self::Tls { tls, server_name, .. } => {
                Target::https(host, *port, tls, server_name.as_deref())
            }
        };
        target.map_err(|error| EngineError::Unusable(error.into()))
    }

    pub(super) fn header(&self) -> Result<Option<HeaderValue>, EngineError> {
        let header = self.credentials().map(Credentials::header).transpose();
        header.map_err(|error| EngineError::Unusable(Cause::of(error)))
    }

    /// The name of our credentials in messages.
    pub(super) fn shown(&self) -> &'static str {
        match (self.credentials(), self) {
            (Some(credentials), _) => credentials.name(),
            (None, Self::Tls { .. }) => "the client certificate, if any",
            (None, Self::Plain | Self::PlainWithCredentials(..)) => "no credentials at all",
        }
    }

    const fn credentials(&self) -> Option<&Credentials> {
        match self {
            Self::Plain => None,
            Self::PlainWithCredentials(credentials, AllowPlain) => Some(credentials),
            Self::Tls { credentials, .. } => credentials.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_written_as_the_engines_read_them() {
        let basic = Credentials::Basic { user: "elastic".into(), password: "a:b ü".into() };
        let header = basic.header().unwrap();
        assert_eq!(header.to_str().unwrap(), "Basic ZWxhc3RpYzphOmIgw7w=");
        assert!(header.is_sensitive());
        for key in ["aWQ6a2V5", "id:key"] {
            let header = Credentials::ApiKey(key.into()).header().unwrap();
            assert_eq!(header.to_str().unwrap(), "ApiKey aWQ6a2V5");
        }
    }

    #[test]
    fn what_cannot_be_shown_is_said_without_repeating_it() {
        let colon = Credentials::Basic { user: "a:b".into(), password: "hush".into() };
        assert!(colon.header().unwrap_err().to_string().contains("colon"));
        let torn = Credentials::ApiKey("hush\n".into()).header().unwrap_err().to_string();
        assert!(!torn.contains("hush"), "{torn}");
    }

    #[test]
    fn nothing_printed_holds_a_secret() {
        let access = Access::PlainWithCredentials(
            Credentials::Basic { user: "elastic".into(), password: "hush".into() },
            AllowPlain,
        );
        assert!(!format!("{access:?}").contains("hush"));
        assert!(!format!("{:?}", Credentials::ApiKey("hush".into())).contains("hush"));
    }
}
