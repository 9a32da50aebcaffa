//! Authentication: who the caller is, and which scopes they have. Denied by default.

mod token;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::header::{AUTHORIZATION, HeaderMap};
use ring::digest::{SHA256, digest};
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use stayput_http::jwt::Scopes;
use stayput_http::terminal::plain;

#[cfg(test)]
pub(crate) use tests::keys as testing;
pub(crate) use token::{Key, KeyError, Rules, Tokens, read_key_set, read_public, read_shared};

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
    match read(headers) {
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

/// The caller with this verified client certificate: the first allowed name that is exactly one of
/// its DNS or URI names. The common name is ignored: it can be of any kind.
pub(crate) fn certificate_caller(
    certificate: &CertificateDer<'_>,
    allowed: &[(String, Scopes)],
) -> Option<Caller> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let presents = |name: &str| {
        certificate.valid_dns_names().any(|own| own == name)
            || certificate.valid_uri_names().any(|own| own == name)
    };
    let (name, scopes) = allowed.iter().find(|(name, _)| presents(name))?;
    Some(Caller { subject: Arc::from(format!("client:{name}")), scopes: *scopes })
}

/// Longest token in bytes. No issuer makes longer ones.
const MAX_TOKEN: usize = 8 * 1024;

/// Content of the `Authorization` header.
#[derive(Debug, PartialEq, Eq)]
enum Bearer<'a> {
    /// There is no such header.
    Absent,
    /// The header is not exactly one bearer token.
    Malformed,
    /// The token, not yet verified.
    Token(&'a str),
}

/// Reads the token from the headers.
fn read(headers: &HeaderMap) -> Bearer<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, further) = (values.next(), values.next());
    match (value, further) {
        (None, _) => Bearer::Absent,
        // Two headers: a proxy in between may have checked the other one.
        (Some(_), Some(_)) => Bearer::Malformed,
        (Some(value), None) => match value.to_str().ok().and_then(token) {
            Some(token) => Bearer::Token(token),
            None => Bearer::Malformed,
        },
    }
}

fn token(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_once(' ')?;
    let token = rest.trim_matches(' ');
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    let is_jwt = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (is_bearer && !token.is_empty() && token.len() <= MAX_TOKEN && token.bytes().all(is_jwt))
        .then_some(token)
}

/// How often one kind of refusal is logged: callers without credentials must not fill the log.
const LOG_PAUSE: Duration = Duration::from_secs(10);
/// Longest part of a token's header or claims in a message, in characters.
const MAX_SHOWN: usize = 200;

/// Why credentials were not accepted. It never holds the token or a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// The check that failed.
    pub(crate) check: &'static str,
    /// The value that was found and the one that was expected; empty if there is nothing to add.
    pub(crate) detail: String,
}

impl From<&'static str> for Rejection {
    fn from(check: &'static str) -> Self {
        Self { check, detail: String::new() }
    }
}

impl Rejection {
    fn new(check: &'static str, detail: String) -> Self {
        Self { check, detail }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.check)?;
        if self.detail.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.detail) }
    }
}

/// A part of a token, quoted and shortened.
fn shown(part: &str) -> String {
    // In single quotes: the log's own are double.
    short(&format!("'{part}'"))
}

/// A text that may hold parts of a token: on one line, and shortened.
fn short(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Refusals that were logged lately.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<BTreeMap<&'static str, Logged>>);

#[derive(Debug)]
struct Logged {
    at: Instant,
    /// Refusals of this kind since the one that was logged.
    more: u64,
}

impl RefusalLog {
    /// If a refusal by this check is to be logged at `now`: the number of refusals of its kind that
    /// were not logged since the last one that was.
    pub(crate) fn admit(&self, check: &'static str, now: Instant) -> Option<u64> {
        // Keys are the names of our checks: callers cannot add any.
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Logged { at: now, more: 0 };
        match kinds.get_mut(check) {
            Some(last) if now.duration_since(last.at) < LOG_PAUSE => {
                last.more += 1;
                None
            }
            Some(last) => Some(std::mem::replace(last, fresh).more),
            None => {
                kinds.insert(check, fresh);
                Some(0)
            }
        }
    }
}

// Tokens that were accepted recently, so that frequent requests do not each cost a verification.
//
// Measured over TLS, requests per second of the server's CPU time: HS256 40,000 without the cache
// and 75,000 with it, RS256 20,000 and 67,000.

/// Number of tokens in the cache: few clients call one manager.
const CAPACITY: usize = 8;

type Fingerprint = [u8; 32];

/// The last accepted tokens. It belongs to one set of keys and is dropped with it.
#[derive(Debug, Default)]
struct TokenCache(Vec<(Fingerprint, Caller, RangeInclusive<u64>)>);

impl TokenCache {
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.len()
    }

    /// The key of a token in the cache; the token itself is not kept.
    fn fingerprint(token: &str) -> Fingerprint {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        fingerprint
    }

    /// The caller, if the token was accepted and still is valid at `now` (seconds since the epoch).
    /// If the clock was set back to before the acceptance, the token is verified again.
    fn get(&self, fingerprint: &Fingerprint, now: u64) -> Option<Caller> {
        let (_, caller, _) =
            self.0.iter().find(|(known, _, valid)| known == fingerprint && valid.contains(&now))?;
        Some(caller.clone())
    }

    /// Adds an accepted token, which is `valid` from now on (seconds since the epoch).
    fn put(&mut self, fingerprint: Fingerprint, caller: Caller, valid: RangeInclusive<u64>) {
        let now = *valid.start();
        self.0.retain(|(known, _, valid)| *known != fingerprint && valid.contains(&now));
        if self.0.len() == CAPACITY {
            self.0.remove(0);
        }
        self.0.push((fingerprint, caller, valid));
    }
}

#[cfg(test)]
mod tests;
