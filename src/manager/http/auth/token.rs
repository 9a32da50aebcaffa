//! Reads keys, and verifies bearer tokens with them.

use std::sync::{Arc, Mutex, PoisonError};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Caller, Rejection, TokenCache, short, shown};
use stayput_http::jwt::{LEEWAY, MAX_AHEAD, Scopes, install_provider, shared_key};

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

/// Origin of a key, which decides which claims its tokens need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The shared key of `--jwt-key`.
    Shared,
    /// The public key of `--jwt-public-key`.
    Public,
    /// The issuer's key set of `--jwks`.
    Issuer,
}

/// Why files of keys and certificates cannot be used. The messages follow the file's name, so they do not
/// repeat it.
#[derive(Debug, Error)]
pub(crate) enum KeyError {
    #[error("{0}")]
    Unusable(String),
    /// A whole key set, which says that no key is valid.
    #[error(
        "holds no signing key of a kind that can be used: RSA (RS256), P-256 (ES256) or Ed25519 \
         (EdDSA)"
    )]
    NoSigningKey,
}

impl From<String> for KeyError {
    fn from(message: String) -> Self {
        Self::Unusable(message)
    }
}

/// A key, the one algorithm it is used with, and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(super) source: Source,
    pub(super) algorithm: Algorithm,
    pub(super) id: Option<String>,
    pub(super) key: DecodingKey,
}

/// Reads the shared key.
///
/// # Errors
/// See [`KeyError`].
pub(crate) fn read_shared(file: &[u8]) -> Result<Vec<Key>, KeyError> {
    let key = DecodingKey::from_secret(shared_key(file)?);
    Ok(vec![Key { source: Source::Shared, algorithm: Algorithm::HS256, id: None, key }])
}

/// Reads public keys in PEM; several are allowed, so that keys can be rotated.
///
/// # Errors
/// See [`KeyError`].
pub(crate) fn read_public(file: &[u8]) -> Result<Vec<Key>, KeyError> {
    let mut keys = Vec::new();
    for document in SubjectPublicKeyInfoDer::pem_slice_iter(file) {
        let document = document.map_err(|error| format!("is not PEM: {error}"))?;
        let (algorithm, key) = read_public_key(&document).ok_or_else(|| {
            "holds a public key of a kind that cannot be used: use Ed25519, P-256 or RSA".to_owned()
        })?;
        keys.push(Key { source: Source::Public, algorithm, id: None, key });
    }
    if keys.is_empty() {
        let message = "holds no PUBLIC KEY in PEM: give the public half of the signing key, as \
                       `openssl pkey -pubout` writes it";
        return Err(message.to_owned().into());
    }
    Ok(keys)
}

/// Reads an issuer's JSON Web Key Set. Keys for other purposes or of other kinds are left out, as
/// RFC 7517 asks; a set without any key for us is an error.
///
/// # Errors
/// See [`KeyError`].
pub(crate) fn read_key_set(file: &[u8]) -> Result<Vec<Key>, KeyError> {
    let set: JwkSet = serde_json::from_slice(file)
        .map_err(|error| format!("is not a JSON Web Key Set: {error}"))?;
    let keys: Vec<Key> = set.keys.iter().filter_map(issuer_key).collect();
    if keys.is_empty() {
        return Err(KeyError::NoSigningKey);
    }
    Ok(keys)
}

fn issuer_key(jwk: &Jwk) -> Option<Key> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        // A public document must not contain symmetric keys.
        _ => return None,
    };
    let for_signing = !matches!(
        &jwk.common.public_key_use,
        Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_))
    );
    let same_algorithm = jwk.common.key_algorithm.is_none_or(|own| own == algorithm.into());
    let key = DecodingKey::from_jwk(jwk).ok()?;
    let length_fits = match algorithm {
        Algorithm::ES256 => key.try_get_as_bytes().is_ok_and(|key| key.len() == 65),
        Algorithm::EdDSA => key.try_get_as_bytes().is_ok_and(|key| key.len() == 32),
        _ => true,
    };
    (for_signing && same_algorithm && length_fits).then(|| Key {
        source: Source::Issuer,
        algorithm,
        id: jwk.common.key_id.clone(),
        key,
    })
}

/// The bytes before the 65 bytes of an uncompressed P-256 point.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The bytes before the 32 bytes of an Ed25519 key.
const ED25519: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The algorithm of an RSA key, with its header.
const RSA: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// The key and the one algorithm it is used with, or `None` if it is of another kind.
pub(super) fn read_public_key(der: &[u8]) -> Option<(Algorithm, DecodingKey)> {
    if let Some(point) = der.strip_prefix(&P256) {
        return (point.len() == 65).then(|| (Algorithm::ES256, DecodingKey::from_ec_der(point)));
    }
    if let Some(key) = der.strip_prefix(&ED25519) {
        return (key.len() == 32).then(|| (Algorithm::EdDSA, DecodingKey::from_ed_der(key)));
    }
    let bits = der_value(SEQUENCE, der)?.strip_prefix(&RSA)?;
    let key = der_value(BIT_STRING, bits)?.strip_prefix(&[0])?;
    Some((Algorithm::RS256, DecodingKey::from_rsa_der(key)))
}

/// The value of the one DER element that fills `der`.
fn der_value(tag: u8, der: &[u8]) -> Option<&[u8]> {
    let rest = der.strip_prefix(&[tag])?;
    let (&first, rest) = rest.split_first()?;
    let (length, value) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
        _ => return None,
    };
    (value.len() == length).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let rsa = [&[SEQUENCE, 0x82, 0x01][..], &bytes].concat();
            read_public_key(&bytes);
            read_public_key(&rsa);
            read_public_key(&[&P256[..], &bytes].concat());
        }
    }
}
