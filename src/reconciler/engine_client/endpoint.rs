//! Where a cluster is reached, and what to show it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;

use super::EngineError;
use rustls::version::{TLS12, TLS13};
use stayput_net::https::{Identity, Pem, Target, Tls, Versions};

/// 1.2 as well: an engine on a Java 8 before 8u261 knows nothing newer.
pub const FROM_1_2: Versions = &[&TLS13, &TLS12];

/// One node's REST interface: a pod's address and port, or a Service's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port of its REST interface.
    pub port: u16,
}

/// How to reach every endpoint of a cluster.
#[derive(Debug, Clone)]
pub enum Access {
    /// Plain HTTP, nothing shown.
    Plain,
    /// Plain HTTP with credentials that everybody on the way can read.
    PlainWithCredentials(Credentials, AllowPlain),
    /// HTTP over TLS.
    Tls {
        /// Whom to trust, what certificate to show: see [`tls`].
        tls: Tls,
        /// The name that every endpoint's certificate is for; without one, each certificate has to
        /// be for the endpoint's own host or IP address.
        server_name: Option<String>,
        /// What to show beside the certificate.
        credentials: Option<Credentials>,
    },
}

/// Somebody said in as many words that credentials may go over plain HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowPlain;

/// Who we are to the engine.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// User and password.
    Basic {
        /// The user's name.
        user: String,
        /// Its password.
        password: String,
    },
    /// An API key, as the engine gave it (`encoded`) or as `id:api_key`. Elasticsearch only.
    ApiKey(String),
}

/// TLS of an engine, to be built once per cluster and shared by clones. TLS 1.2 is spoken as well:
/// an engine on an old Java knows nothing newer.
///
/// # Errors
/// [`EngineError::Unusable`] names the document that cannot be used and says what to do.
pub fn tls(ca: &Pem, identity: Option<&Identity>) -> Result<Tls, EngineError> {
    Tls::new(ca, identity, FROM_1_2).map_err(|error| EngineError::Unusable(error.to_string()))
}

impl Credentials {
    /// The value of `Authorization`, marked so that no log of headers shows it.
    fn header(&self) -> Result<HeaderValue, String> {
        let text = match self {
            Self::Basic { user, .. } if user.contains(':') => {
                return Err(format!("the user name {user:?} has a colon: no HTTP user may"));
            }
            Self::Basic { user, password } => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
            }
            Self::ApiKey(key) if key.contains(':') => format!("ApiKey {}", STANDARD.encode(key)),
            Self::ApiKey(key) => format!("ApiKey {key}"),
        };
        let mut header = HeaderValue::from_str(&text)
            .map_err(|_| "the API key has characters that no key has".to_owned())?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// How sentences name them.
    const fn name(&self) -> &'static str {
        match self {
            Self::Basic { .. } => "the user and password",
            Self::ApiKey(_) => "the API key",
        }
    }
}

/// Who, never the secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { user, .. } => write!(formatter, "Basic({user})"),
            Self::ApiKey(_) => formatter.write_str("ApiKey"),
        }
    }
}

impl Access {
    pub(super) fn target(&self, endpoint: &Endpoint) -> Result<Target, String> {
        let Endpoint { host, port } = endpoint;
        match self {
            Self::Plain | Self::PlainWithCredentials(..) => Target::http(host, *port),
            Self::Tls { tls, server_name, .. } => {
                Target::https(host, *port, tls, server_name.as_deref())
            }
        }
        .map_err(|error| error.to_string())
    }

    pub(super) fn header(&self) -> Result<Option<HeaderValue>, String> {
        self.credentials().map(Credentials::header).transpose()
    }

    /// How sentences name what is shown to the engine.
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
        assert!(colon.header().unwrap_err().contains("colon"));
        let torn = Credentials::ApiKey("hush\n".into()).header().unwrap_err();
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
