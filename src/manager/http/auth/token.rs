//! Verifies bearer tokens.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;

use super::key::{Key, Source};
use super::token_cache::TokenCache;
use super::{Caller, Rejection};
use stayput_net::jwt::{MAX_AHEAD, Scopes, install_provider};

/// How far the clocks of issuer and manager may be apart, in seconds.
pub(super) const LEEWAY: u64 = 30;
/// In bytes. Longer subjects than the API server's would only fill the log.
const MAX_SUBJECT: usize = 256;

/// What is required of a token beside its signature.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rules {
    /// `stayput:<namespace>/<pod uid>`, if the pod is known.
    pub(crate) pod_audience: Option<String>,
    /// The configured audience.
    pub(crate) audience: Option<String>,
    /// The configured issuer of the key set's tokens.
    pub(crate) issuer: Option<String>,
    /// What the subjects of the key set's tokens may do.
    pub(crate) subjects: Vec<(String, Scopes)>,
}

impl Rules {
    /// The audience that tokens must have: bound to the pod where that is known, so that a token sent
    /// to one pod is refused by every other.
    pub(crate) fn required_audience(&self) -> Option<&str> {
        self.pod_audience.as_deref().or(self.audience.as_deref())
    }

    fn validation(&self, key: &Key) -> Validation {
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "aud"]);
        match key.source {
            Source::Shared | Source::Public => {}
            Source::Issuer => {
                validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
                // Settings without an issuer are refused; here the empty set matches nothing.
                validation.set_issuer(self.issuer.as_slice());
            }
        }
        validation.set_audience(self.required_audience().as_slice());
        validation
    }
}

/// Verifies tokens with one set of keys. When a key file changes, it is replaced as a whole,
/// together with its cache.
#[derive(Debug)]
pub(crate) struct Tokens {
    keys: Vec<(Key, Validation)>,
    subjects: Vec<(String, Scopes)>,
    cache: Mutex<TokenCache>,
}

#[derive(Deserialize)]
struct Claims {
    exp: f64,
    sub: Option<String>,
    scope: Option<Scope>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scope {
    Words(String),
    List(Vec<String>),
}

impl Tokens {
    /// Verifies with these keys under these rules.
    pub(crate) fn new(keys: Vec<Key>, rules: &Rules) -> Self {
        install_provider();
        let with_rules = |key| {
            let validation = rules.validation(&key);
            (key, validation)
        };
        Self {
            keys: keys.into_iter().map(with_rules).collect(),
            subjects: rules.subjects.clone(),
            cache: Mutex::default(),
        }
    }

    /// The caller with this token, at `now` (seconds since the epoch).
    ///
    /// # Errors
    /// The check that failed, for the debug log. The caller does not get it.
    pub(crate) fn verify(&self, token: &str, now: u64) -> Result<Caller, Rejection> {
        let fingerprint = TokenCache::fingerprint(token);
        let cached =
            self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&fingerprint, now);
        if let Some(caller) = cached {
            return Ok(caller);
        }
        let (caller, expires) = self.check(token, now)?;
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).put(
            fingerprint,
            caller.clone(),
            now..=expires,
        );
        Ok(caller)
    }

    #[cfg(test)]
    pub(super) fn cache_len(&self) -> usize {
        self.cache.lock().unwrap().len()
    }

    fn check(&self, token: &str, now: u64) -> Result<(Caller, u64), Rejection> {
        let header = decode_header(token).map_err(|_| Rejection("unreadable header"))?;
        if header.crit.is_some() {
            return Err(Rejection("critical extensions"));
        }
        let mut rejection = Rejection("no key of that id and algorithm");
        for (key, validation) in &self.keys {
            if key.algorithm != header.alg || key.id != header.kid {
                continue;
            }
            match decode::<Claims>(token, &key.key, validation) {
                Ok(data) => return self.caller(key.source, &data.claims, now),
                Err(error) => rejection = Rejection(failed_check(error.kind())),
            }
        }
        Err(rejection)
    }

    fn caller(
        &self,
        source: Source,
        claims: &Claims,
        now: u64,
    ) -> Result<(Caller, u64), Rejection> {
        // Compared as floats: nothing is lost below 2^53, and the sum cannot overflow.
        if claims.exp > (now + MAX_AHEAD + LEEWAY) as f64 {
            return Err(Rejection("valid for too long"));
        }
        #[allow(clippy::cast_possible_truncation)]
        // Between now − LEEWAY and now + MAX_AHEAD + LEEWAY, as was just checked.
        let expires = claims.exp as u64 + LEEWAY;
        let subject = claims.sub.as_deref();
        if subject.is_some_and(|name| {
            name.is_empty() || name.len() > MAX_SUBJECT || name.contains(char::is_control)
        }) {
            return Err(Rejection("unusable subject"));
        }
        let caller = match source {
            Source::Shared => own_caller(subject.unwrap_or("shared-key"), claims),
            Source::Public => own_caller(subject.unwrap_or("public-key"), claims),
            Source::Issuer => {
                let subject = subject.ok_or(Rejection("no subject"))?;
                let allowed = self.subjects.iter().find(|(name, _)| name == subject);
                let (name, scopes) = allowed.ok_or(Rejection("subject is not allowed"))?;
                Caller { subject: Arc::from(name.as_str()), scopes: *scopes }
            }
        };
        Ok((caller, expires))
    }
}

/// The holder of the shared key or a private key chooses subject and scopes. With the prefix, such
/// a subject is not confused with one that the API server signed.
fn own_caller(subject: &str, claims: &Claims) -> Caller {
    let scopes = match &claims.scope {
        None => Scopes::NONE,
        Some(Scope::Words(words)) => Scopes::of_claim(words.split(' ')),
        Some(Scope::List(words)) => Scopes::of_claim(words.iter().map(String::as_str)),
    };
    Caller { subject: Arc::from(format!("jwt:{subject}")), scopes }
}

/// The kind of the error without its content, which may contain the token.
const fn failed_check(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidSignature => "wrong signature",
        ErrorKind::ExpiredSignature => "expired",
        ErrorKind::ImmatureSignature => "not yet valid",
        ErrorKind::InvalidAudience => "another audience",
        ErrorKind::InvalidIssuer => "another issuer",
        ErrorKind::MissingRequiredClaim(_) => "a claim is missing",
        ErrorKind::InvalidClaimFormat(_) => "a claim of the wrong type",
        _ => "unreadable",
    }
}
