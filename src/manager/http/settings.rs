//! How the API may be reached. An API without authentication is refused.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use super::auth::Rules;
use super::tls::TlsMin;
use stayput_api::Pod;
use stayput_http::jwt::{self, Scopes};

/// How the API may be reached, and by which callers.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// `--listen`: address of the TLS listener.
    pub listen: Option<SocketAddr>,
    /// `--socket`: path of the unix socket.
    pub socket: Option<PathBuf>,
    /// `--tls-cert`: certificate chain in PEM.
    pub tls_cert: Option<PathBuf>,
    /// `--tls-key`: its private key in PEM.
    pub tls_key: Option<PathBuf>,
    /// `--tls-min`: the oldest TLS version that is accepted.
    pub tls_min: Option<TlsMin>,
    /// `--client-ca`: the CA of client certificates, in PEM.
    pub client_ca: Option<PathBuf>,
    /// `--allow-client`: DNS or URI names of client certificates, and their scopes.
    pub allow_client: Vec<(String, Scopes)>,
    /// `--jwt-key`: shared key for HS256.
    pub jwt_key: Option<PathBuf>,
    /// `--jwt-public-key`: public keys in PEM.
    pub jwt_public_key: Option<PathBuf>,
    /// `--jwks`: key set of a token issuer.
    pub jwks: Option<PathBuf>,
    /// `--jwt-issuer`: `iss` of the key set's tokens.
    pub jwt_issuer: Option<String>,
    /// `--jwt-audience`: `aud` of tokens that cannot be bound to the pod.
    pub jwt_audience: Option<String>,
    /// `--allow-subject`: `sub` of the key set's tokens, and their scopes.
    pub allow_subject: Vec<(String, Scopes)>,
    /// `--allow-uid`: uids that may use the unix socket, besides root and the manager's own uid.
    pub allow_uid: Vec<u32>,
    /// `--insecure-no-auth`: every caller may do everything, on a loopback address only.
    pub insecure_no_auth: bool,
    /// `--open-metrics`: `/metrics` without credentials.
    pub open_metrics: bool,
    /// The pod, as far as it is known from the downward API.
    pub pod: Pod,
}

impl HttpSettings {
    /// Faults in the combination of these settings, and what to do: everything that would leave the
    /// API open or could not work.
    pub fn validate(&self) -> Vec<&'static str> {
        let faults = self.listener_faults().into_iter().chain(self.token_faults());
        faults.filter_map(|(is_wrong, message)| is_wrong.then_some(message)).collect()
    }

    /// Faults in the settings of listener, TLS and client certificates, each with true if these settings have it.
    fn listener_faults(&self) -> [(bool, &'static str); 9] {
        let (has_cert, has_key) = (self.tls_cert.is_some(), self.tls_key.is_some());
        let (has_tls, has_client_ca) = (has_cert && has_key, self.client_ca.is_some());
        let has_auth = self.accepts_tokens() || has_client_ca;
        let is_loopback = self.listen.is_none_or(|address| address.ip().is_loopback());
        let checks_callers = self.listen.is_some() && !self.insecure_no_auth;
        [
            (has_cert != has_key, "--tls-cert and --tls-key belong together: give both or neither"),
            (
                self.insecure_no_auth && !is_loopback,
                "--insecure-no-auth is only for a loopback address: listen on 127.0.0.1, or remove \
                 it and give --jwt-key, --jwt-public-key, --jwks or --client-ca",
            ),
            (
                self.insecure_no_auth && has_auth,
                "--insecure-no-auth would make the keys pointless: remove it, or remove --jwt-key, \
                 --jwt-public-key, --jwks and --client-ca",
            ),
            (
                self.tls_min.is_some() && !has_tls,
                "--tls-min needs --tls-cert and --tls-key: without them there is no TLS",
            ),
            (
                // With one of the two, the message above says enough.
                checks_callers && !has_cert && !has_key,
                "--listen needs --tls-cert and --tls-key: tokens do not travel in clear text (for a \
                 trial on a loopback address there is --insecure-no-auth)",
            ),
            (
                checks_callers && !has_auth,
                "--listen needs authentication, so that the manager knows who calls: give \
                 --jwt-key, --jwt-public-key, --jwks or --client-ca",
            ),
            (
                has_client_ca && self.allow_client.is_empty(),
                "--client-ca needs at least one --allow-client NAME=SCOPES: without one no client \
                 may call",
            ),
            (
                !has_client_ca && !self.allow_client.is_empty(),
                "--allow-client needs --client-ca: no certificate can be checked without it",
            ),
            (
                has_client_ca && !has_tls && self.listen.is_none(),
                "--client-ca needs --tls-cert and --tls-key: client certificates exist only with TLS",
            ),
        ]
    }

    /// Faults in the keys of tokens, each with true if these settings have it.
    fn token_faults(&self) -> [(bool, &'static str); 5] {
        let has_jwks = self.jwks.is_some();
        let has_audience = self.rules().required_audience().is_some();
        [
            (
                (self.jwt_key.is_some() || self.jwt_public_key.is_some()) && !has_audience,
                "tokens must have an audience: give --jwt-audience, or the pod's namespace and uid \
                 from the downward API",
            ),
            (
                has_jwks && self.jwt_issuer.is_none(),
                "--jwks needs --jwt-issuer: the `iss` of the tokens its keys sign",
            ),
            (
                has_jwks && !has_audience,
                "--jwks needs --jwt-audience, or the pod's namespace and uid from the downward API: \
                 otherwise a token for any other service would be accepted",
            ),
            (
                has_jwks && self.allow_subject.is_empty(),
                "--jwks needs at least one --allow-subject NAME=SCOPES: without one no client may \
                 call",
            ),
            (
                !has_jwks && (self.jwt_issuer.is_some() || !self.allow_subject.is_empty()),
                "--jwt-issuer and --allow-subject are about the tokens of an issuer: give its keys \
                 with --jwks",
            ),
        ]
    }

    /// True if callers may authenticate by a token.
    pub(super) fn accepts_tokens(&self) -> bool {
        self.jwt_key.is_some() || self.jwt_public_key.is_some() || self.jwks.is_some()
    }

    /// Requirements of tokens.
    pub(super) fn rules(&self) -> Rules {
        let pod_audience = match (&self.pod.namespace, &self.pod.uid) {
            (Some(namespace), Some(uid)) => Some(jwt::pod_audience(namespace, uid)),
            _ => None,
        };
        Rules {
            pod_audience,
            audience: self.jwt_audience.clone(),
            issuer: self.jwt_issuer.clone(),
            subjects: self.allow_subject.clone(),
        }
    }
}

/// Reads a listen address: `127.0.0.1:9199`, `[::1]:9199`, or `:9199` for all interfaces.
///
/// # Errors
/// The text is no such address.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let on_all_interfaces = text
        .strip_prefix(':')
        .and_then(|port| port.parse().ok())
        // The unspecified IPv6 address accepts IPv4 connections too.
        .map(|port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port));
    let address = on_all_interfaces.or_else(|| text.parse().ok());
    address.ok_or_else(|| {
        format!(
            "{text:?} is not an address such as \":9199\", \"127.0.0.1:9199\" or \"[::1]:9199\""
        )
    })
}

#[cfg(test)]
mod tests;
