//! The address of a manager, and the credentials to present.

use std::path::PathBuf;

use hyper::Uri;
use hyper::http::uri::Scheme;

use super::Token;
use crate::https::{Target, Tls};

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

impl Address {
    /// Where to connect, and the token to send.
    ///
    /// # Errors
    /// Why the address cannot be used, and what to write instead.
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
                return Err(format!(
                    "{url:?}: an https URL needs the CA that signed the manager's certificate: give \
                     --ca FILE (STAYPUT_CA)"
                ));
            }
        };
        let target = target.map_err(|fault| format!("{url:?}: {fault}"))?;
        Ok((target, token))
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
fn parse(url: &str) -> Result<Authority, String> {
    let wanted = "write https://HOST:PORT of the manager";
    let uri: Uri = url.parse().map_err(|_| format!("{url:?} is no URL: {wanted}"))?;
    let tls = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(_) | None => return Err(format!("{url:?} is no https URL: {wanted}")),
    };
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(format!("{url:?} has a path: only https://HOST:PORT is wanted"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        // The message must not repeat the password.
        return Err("the manager takes no user and password in its URL: use a token file".into());
    }
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().ok_or_else(|| format!("{url:?} has no port: {wanted}"))?;
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
        for (url, part) in [
            ("logs-2:9199", "https URL"),
            ("ftp://logs-2:9199", "https URL"),
            ("https://logs-2", "no port"),
            ("https://logs-2:9199/es/status", "a path"),
            ("https://logs-2:9199?x=1", "a path"),
            ("https://me:secret@logs-2:9199", "token file"),
            ("https://:9199 ", "no URL"),
        ] {
            let error = parse(url).expect_err(url);
            assert!(error.contains(part), "{url}: {error}");
            assert!(!error.contains("secret"), "a password must not be repeated: {error}");
        }
    }
}
