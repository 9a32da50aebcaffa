//! Where a manager listens, and what to show it.

use std::path::PathBuf;

use hyper::Uri;
use hyper::http::uri::Scheme;

/// Where to reach a manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Its unix socket: the kernel tells the manager who we are.
    Socket(PathBuf),
    /// `https://HOST:PORT`; `http://` only for a loopback address.
    Url {
        /// Scheme, host and port, nothing else.
        url: String,
        /// What to trust and what to show.
        credentials: Credentials,
    },
}

/// What to trust and what to show over TLS. All are PEM files, but for the token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The CA that signed the manager's certificate.
    pub ca: Option<PathBuf>,
    /// A file that holds a JWT; read at every call.
    pub token: Option<PathBuf>,
    /// Our certificate chain.
    pub certificate: Option<PathBuf>,
    /// The key of our certificate.
    pub key: Option<PathBuf>,
}

/// A checked URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: bool,
}

/// Takes a manager's URL apart.
pub(super) fn parse(url: &str) -> Result<Authority, String> {
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
