//! Verifies bearer tokens.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Caller;
use super::key::{Key, Source};
use super::rejection::{Rejection, short, shown};
use super::token_cache::TokenCache;
use stayput_http::jwt::{LEEWAY, MAX_AHEAD, Scopes, install_provider};

/// Longest subject of a token, in bytes. Longer subjects than the API server's would only fill the log.
const MAX_SUBJECT: usize = 256;

/// Requirements of a token beside its signature.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rules {
    /// `stayput:<namespace>/<pod uid>`, if the pod is known.
    pub(crate) pod_audience: Option<String>,
    /// The configured audience.
    pub(crate) audience: Option<String>,
    /// The configured issuer of the key set's tokens.
    pub(crate) issuer: Option<String>,
    /// Scopes of the subjects of the key set's tokens.
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
    rules: Rules,
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
            rules: rules.clone(),
            cache: Mutex::default(),
        }
    }

    /// The caller with this token, at `now` (seconds since the epoch).
    ///
    /// # Errors
    /// The check that failed, for the log. The caller does not get it.
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
        let header = decode_header(token).map_err(|_| Rejection::from("unreadable header"))?;
        if header.crit.is_some() {
            return Err("critical extensions".into());
        }
        let mut rejection = None;
        for (key, validation) in self.keys.iter().filter(|(key, _)| may_verify(key, &header)) {
            match decode::<Claims>(token, &key.key, validation) {
                Ok(data) => return self.caller(key.source, &data.claims, now),
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {
                    rejection.get_or_insert(Rejection::from("wrong signature"));
                }
                // The signature is checked first, so the token is by the holder of this key.
                Err(error) => rejection = Some(self.explain(error.kind(), token, key, now)),
            }
        }
        Err(rejection.unwrap_or_else(|| {
            let id = header.kid.as_ref().map_or("no id".into(), |id| format!("id {}", shown(id)));
            Rejection::new("no key of that id and algorithm", format!("{id}, {:?}", header.alg))
        }))
    }

    /// The rejection for a failed check of a token by the holder of this key: the value found and
    /// the value expected.
    fn explain(&self, kind: &ErrorKind, token: &str, key: &Key, now: u64) -> Rejection {
        let mut only_signature = Validation::new(key.algorithm);
        only_signature.required_spec_claims.clear();
        only_signature.validate_exp = false;
        only_signature.validate_aud = false;
        let claims = decode::<Map<String, Value>>(token, &key.key, &only_signature);
        let claims = claims.map(|data| data.claims).unwrap_or_default();
        let claim = |name: &str| claims.get(name).map_or_else(|| "absent".into(), value);
        let seconds = |name: &str| claims.get(name).and_then(Value::as_f64).unwrap_or_default();
        #[allow(clippy::cast_possible_truncation)] // For people: a conversion of floats saturates.
        let away = |name: &str| (seconds(name) - now as f64).abs() as u64;
        let expected = |value: Option<&str>| shown(value.unwrap_or("none, as none is configured"));
        let (check, detail) = match kind {
            ErrorKind::ExpiredSignature => ("expired", format!("{} s ago", away("exp"))),
            ErrorKind::ImmatureSignature => ("not yet valid", format!("for {} s", away("nbf"))),
            ErrorKind::InvalidAudience => {
                let expected = expected(self.rules.required_audience());
                ("another audience", format!("{}, expected {expected}", claim("aud")))
            }
            ErrorKind::InvalidIssuer => {
                let expected = expected(self.rules.issuer.as_deref());
                ("another issuer", format!("{}, expected {expected}", claim("iss")))
            }
            ErrorKind::MissingRequiredClaim(name) => ("a claim is missing", name.clone()),
            ErrorKind::InvalidClaimFormat(name) => ("a claim of the wrong type", name.clone()),
            ErrorKind::Json(error) => ("unreadable", short(&error.to_string())),
            _ => ("unreadable", String::new()),
        };
        Rejection::new(check, detail)
    }

    fn caller(
        &self,
        source: Source,
        claims: &Claims,
        now: u64,
    ) -> Result<(Caller, u64), Rejection> {
        // Compared as floats: nothing is lost below 2^53, and the sum cannot overflow.
        if claims.exp > (now + MAX_AHEAD + LEEWAY) as f64 {
            let ahead = claims.exp - now as f64;
            let detail = format!("for {ahead:.0} s, and at most {MAX_AHEAD} s are accepted");
            return Err(Rejection::new("valid for too long", detail));
        }
        #[allow(clippy::cast_possible_truncation)]
        // Between now − LEEWAY and now + MAX_AHEAD + LEEWAY, as was just checked.
        let expires = claims.exp as u64 + LEEWAY;
        let subject = claims.sub.as_deref();
        if let Some(name) = subject
            && (name.is_empty() || name.len() > MAX_SUBJECT || name.contains(char::is_control))
        {
            return Err(Rejection::new("unusable subject", shown(name)));
        }
        let caller = match source {
            Source::Shared => own_caller(subject.unwrap_or("shared-key"), claims),
            Source::Public => own_caller(subject.unwrap_or("public-key"), claims),
            Source::Issuer => {
                let subject = subject.ok_or(Rejection::from("no subject"))?;
                let allowed = self.rules.subjects.iter().find(|(name, _)| name == subject);
                let (name, scopes) = allowed.ok_or_else(|| {
                    let detail = format!("{} is not in --allow-subject", shown(subject));
                    Rejection::new("subject is not allowed", detail)
                })?;
                Caller { subject: Arc::from(name.as_str()), scopes: *scopes }
            }
        };
        Ok((caller, expires))
    }
}

/// A claim's value: a text, a list of texts, or whatever it is.
fn value(claim: &Value) -> String {
    match claim {
        Value::String(text) => shown(text),
        Value::Array(list) => {
            short(&format!("[{}]", list.iter().map(value).collect::<Vec<_>>().join(", ")))
        }
        other => short(&other.to_string()),
    }
}

/// True if a token with this header may be signed with this key. The id is a hint that selects
/// among keys, and not a check: PEM files have none, many issuers send one, and some key sets and
/// tokens leave it out. The proof of a token is the signature, by the key's own algorithm.
fn may_verify(key: &Key, header: &Header) -> bool {
    let same_id = match (&key.id, &header.kid) {
        (Some(own), Some(named)) => own == named,
        (None, _) | (_, None) => true,
    };
    key.algorithm == header.alg && same_id
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
