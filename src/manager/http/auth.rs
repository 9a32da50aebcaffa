//! Authentication: who the caller is, and which scopes they have. Denied by default.

mod bearer;
mod client_cert;
mod key;
mod rejection;
mod spki;
mod token;
mod token_cache;

use std::sync::Arc;

use hyper::header::HeaderMap;

use bearer::Bearer;
pub(crate) use client_cert::caller as certificate_caller;
pub(crate) use rejection::{RefusalLog, Rejection};
pub(crate) use token::{Rules, Tokens};

use stayput_http::jwt::Scopes;

/// Reads a shared key file, a PEM public key file or a key set, in this order; each may be absent.
pub(crate) mod read {
    pub(crate) use super::key::{Key, KeyError, key_set, public, shared};
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Shown in logs and in the status.
    pub(crate) subject: Arc<str>,
    pub(crate) scopes: Scopes,
}

/// Who the peer is, as far as the connection itself proves it.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// `--insecure-no-auth` on a loopback address: every program may do everything.
    AuthDisabled,
    /// An allowed uid.
    Known(Caller),
    /// A client certificate that the CA with this digest signed.
    Certified { caller: Caller, client_ca: [u8; 32] },
    /// No proof.
    Unknown,
}

/// Who sent a request with these headers, at `now` (seconds since the epoch).
///
/// A token, if there is one, decides alone: a wrong token is an error even where the connection
/// would have been enough.
///
/// # Errors
/// The check that failed, for the log only.
pub(crate) fn identify(
    peer: &Peer,
    headers: &HeaderMap,
    tokens: &Tokens,
    now: u64,
) -> Result<Caller, Rejection> {
    let known = match peer {
        Peer::AuthDisabled => {
            return Ok(Caller { subject: Arc::from("anybody"), scopes: Scopes::CONTROL });
        }
        Peer::Known(caller) | Peer::Certified { caller, .. } => Some(caller),
        Peer::Unknown => None,
    };
    match bearer::read(headers) {
        Bearer::Token(token) => tokens.verify(token, now),
        Bearer::Malformed => Err(Rejection::new(
            "not one bearer token",
            "the header must be `Authorization: Bearer TOKEN`, once".into(),
        )),
        Bearer::Absent => known.cloned().ok_or_else(|| {
            Rejection::new(
                "no credentials",
                "no token, and no client certificate with a name of --allow-client".into(),
            )
        }),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::keys as testing;
