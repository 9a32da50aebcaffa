//! The address of a manager, and the credentials to present.

use std::path::PathBuf;

use hyper::Uri;
use hyper::http::uri::Scheme;
use thiserror::Error;

use super::Token;
use crate::https::{InvalidTarget, Target, Tls};

/// The address of a manager.
#[derive(Debug, Clone)]
pub enum Address {
    /// The manager's unix socket: the manager gets our uid from the kernel.
    Socket(PathBuf),
    /// `https://HOST:PORT`; `http://` only for a loopback address.
    Url {
        /// Scheme, host and port, nothing else.
        url: String,
        /// The name in the manager's certificate, where that is not the host of `url`: pods are
        /// reached by IP address, and their managers share one name.
        server_name: Option<String>,
        /// CA to trust, and certificate and token to present.
        credentials: Credentials,
    },
}

/// CA to trust over TLS, and certificate and token to present.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The CA, and our certificate if we have one. Build it once for all managers of a cluster.
    /// Required with `https://`.
    pub tls: Option<Tls>,
    /// The token of each request.
    pub token: Option<Token>,
}

/// Why an address cannot be used. Each message says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddressError {
    /// Not a URL at all.
    #[error("{0:?} is no URL: write https://HOST:PORT of the manager")]
    NotUrl(String),
    /// Another scheme, or none.
    #[error("{0:?} is no https URL: write https://HOST:PORT of the manager")]
    Scheme(String),
    /// The URL has more than host and port.
    #[error("{0:?} has a path: only https://HOST:PORT is wanted")]
    Path(String),
    /// User and password, which the message must not repeat.
    #[error("the manager takes no user and password in its URL: use a token file")]
    UserInfo,
    /// No port.
    #[error("{0:?} has no port: write https://HOST:PORT of the manager")]
    NoPort(String),
    /// `http://` with an address that is not loopback.
    #[error("{0:?} would send everything in the clear: use https (http is for loopback only)")]
    ClearText(String),
    /// A host or server name that cannot be one.
    #[error("{url:?}: {source}")]
    Target {
        /// The URL.
        url: String,
        /// The fault of the URL.
        source: InvalidTarget,
    },
    /// `https://` and no CA to trust.
    #[error(
        "{0:?}: an https URL needs the CA that signed the manager's certificate: give --ca FILE \
         (STAYPUT_CA)"
    )]
    NoCa(String),
}

impl Address {
    /// Where to connect, and the token to send.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub(super) fn into_parts(self) -> Result<(Target, Option<Token>), AddressError> {
        let (url, server_name, Credentials { tls, token }) = match self {
            Self::Socket(path) => return Ok((Target::socket(path), None)),
            Self::Url { url, server_name, credentials } => (url, server_name, credentials),
        };
        let Authority { host, port, tls: is_tls } = parse(&url)?;
        let target = match (is_tls, tls) {
            (false, _) => Target::http(&host, port),
            (true, Some(tls)) => Target::https(&host, port, &tls, server_name.as_deref()),
            (true, None) => return Err(AddressError::NoCa(url)),
        };
        match target {
            Ok(target) => Ok((target, token)),
            Err(source) => Err(AddressError::Target { url, source }),
        }
    }
}

/// A checked URL.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    host: String,
    port: u16,
    tls: bool,
}

/// The parts of a manager's URL.
fn parse(url: &str) -> Result<Authority, AddressError> {
    let own = || url.to_owned();
    let uri: Uri = url.parse().map_err(|_| AddressError::NotUrl(own()))?;
    let tls = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(_) | None => return Err(AddressError::Scheme(own())),
    };
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(AddressError::Path(own()));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(AddressError::UserInfo);
    }
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let Some(port) = uri.port_u16() else {
        return Err(AddressError::NoPort(own()));
    };
    if !tls && !is_loopback(&host) {
        return Err(AddressError::ClearText(own()));
    }
    Ok(Authority { host, port, tls })
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_host_and_port() {
        let tls = |host: &str, port| Authority { host: host.into(), port, tls: true };
        assert_eq!(parse("https://logs-2.search:9199"), Ok(tls("logs-2.search", 9199)));
        assert_eq!(parse("https://[::1]:9199/"), Ok(tls("::1", 9199)));
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        assert!(parse("http://127.0.0.1:9199").is_ok_and(|authority| !authority.tls));
        assert!(parse("http://[::1]:9199").is_ok());
        assert!(
            parse("http://10.0.0.7:9199")
                .is_err_and(|error| error.to_string().contains("in the clear"))
        );
    }

    #[test]
    fn refuses_what_it_would_not_use() {
        for (url, part) in [
            ("logs-2:9199", "https URL"),
            ("ftp://logs-2:9199", "https URL"),
            ("https://logs-2", "no port"),
            ("https://logs-2:9199/es/status", "a path"),
            ("https://logs-2:9199?x=1", "a path"),
            ("https://me:secret@logs-2:9199", "token file"),
            ("https://:9199 ", "no URL"),
        ] {
            let error = parse(url).expect_err(url).to_string();
            assert!(error.contains(part), "{url}: {error}");
            assert!(!error.contains("secret"), "a password must not be repeated: {error}");
        }
    }
}
