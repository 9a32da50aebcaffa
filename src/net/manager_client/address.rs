//! Where a manager listens, and what to show it.

use std::fmt;
use std::path::PathBuf;

use hyper::Uri;
use hyper::http::uri::Scheme;

use crate::https::{Target, Tls};

/// Where to reach a manager.
#[derive(Debug, Clone)]
pub enum Address {
    /// Its unix socket: the kernel tells the manager who we are.
    Socket(PathBuf),
    /// `https://HOST:PORT`; `http://` only for a loopback address.
    Url {
        /// Scheme, host and port, nothing else.
        url: String,
        /// The name its certificate carries, where that is not the host of `url`: pods are reached
        /// by IP address, and their managers share one name.
        server_name: Option<String>,
        /// What to trust and what to show.
        credentials: Credentials,
    },
}

/// What to trust and what to show over TLS.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Whom to trust, and our certificate if we have one. Build it once for all managers of a
    /// cluster. Needed with `https://`.
    pub tls: Option<Tls>,
    /// A JWT to show.
    pub token: Option<Token>,
}

/// A JWT, or where to find it.
#[derive(Clone, PartialEq, Eq)]
pub enum Token {
    /// A file that holds it; read at every call, because kubelet renews tokens in place.
    File(PathBuf),
    /// The token itself.
    Text(String),
}

/// Never the token itself.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Self::Text(_) => formatter.write_str("Text(…)"),
        }
    }
}

impl Address {
    /// Checks it.
    ///
    /// # Errors
    /// A sentence that says what to write instead.
    pub(super) fn into_parts(self) -> Result<(Target, Option<Token>), String> {
        let (url, server_name, Credentials { tls, token }) = match self {
            Self::Socket(path) => return Ok((Target::socket(path), None)),
            Self::Url { url, server_name, credentials } => (url, server_name, credentials),
        };
        let Authority { host, port, tls: is_tls } = parse(&url)?;
        let target = match (is_tls, tls) {
            (false, _) => Target::http(&host, port),
            (true, Some(tls)) => Target::https(&host, port, &tls, server_name.as_deref()),
            (true, None) => {
                Err("an https URL needs the CA that signed the manager's certificate: \
                                 give --ca FILE (STAYPUT_CA)"
                    .into())
            }
        };
        Ok((target.map_err(|error| format!("{url:?}: {error}"))?, token))
    }
}

/// A checked URL.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    host: String,
    port: u16,
    tls: bool,
}

/// Takes a manager's URL apart.
fn parse(url: &str) -> Result<Authority, String> {
    let uri: Uri = url
        .parse()
        .map_err(|_| format!("{url:?} is no URL: write https://HOST:PORT of the manager"))?;
    let tls = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(_) | None => {
            return Err(format!("{url:?} is no https URL: write https://HOST:PORT of the manager"));
        }
    };
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(format!("{url:?} has a path: only https://HOST:PORT is wanted"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("the manager takes no user and password in its URL: use a token file".into());
    }
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let Some(port) = uri.port_u16() else {
        return Err(format!("{url:?} has no port: write https://HOST:PORT of the manager"));
    };
    if !tls && !is_loopback(&host) {
        return Err(format!(
            "{url:?} would send everything in the clear: use https (http is for loopback only)"
        ));
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
        assert!(parse("http://10.0.0.7:9199").is_err_and(|error| error.contains("in the clear")));
    }

    #[test]
    fn refuses_what_it_would_not_use() {
        for (url, word) in [
            ("logs-2:9199", "https URL"),
            ("ftp://logs-2:9199", "https URL"),
            ("https://logs-2", "no port"),
            ("https://logs-2:9199/es/status", "a path"),
            ("https://logs-2:9199?x=1", "a path"),
            ("https://me:secret@logs-2:9199", "token file"),
            ("https://:9199 ", "no URL"),
        ] {
            let error = parse(url).expect_err(url);
            assert!(error.contains(word), "{url}: {error}");
            assert!(!error.contains("secret"), "a password must not be repeated: {error}");
        }
    }
}
