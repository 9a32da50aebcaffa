//! Makes tokens, for people with curl and for our own client.

use std::time::{Duration, SystemTime, SystemTimeError, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::{self, PemObject};
use serde::Serialize;
use thiserror::Error;

use super::{MAX_AHEAD, Scopes, SharedKeyError, provider, shared_key};

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The user or program that sends requests with the token; shown in logs and in `last_request`.
    pub subject: String,
    /// Scopes of the token's bearer.
    pub scopes: Scopes,
    /// The manager that the token is for: `stayput:<namespace>/<pod uid>`, or the configured audience.
    pub audience: String,
    /// How long the token is valid; at most an hour, or managers refuse it.
    pub ttl: Duration,
}

impl Grant {
    /// Checks that managers would accept a token with these claims.
    ///
    /// # Errors
    /// The claim that they would refuse.
    pub fn check(&self) -> Result<(), GrantError> {
        if self.audience.trim().is_empty() {
            return Err(GrantError::NoAudience);
        }
        if !(1..=MAX_AHEAD).contains(&self.ttl.as_secs()) {
            return Err(GrantError::Ttl);
        }
        Ok(())
    }
}

/// Why managers would refuse a token with these claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GrantError {
    /// The audience is empty.
    #[error(
        "the audience is empty: name the token's manager, stayput:NAMESPACE/POD-UID or its \
         --jwt-audience"
    )]
    NoAudience,
    /// Valid for too long, or for no time at all.
    #[error("a token is valid for one second to one hour: managers refuse others")]
    Ttl,
}

/// Why no token was made. Messages about the key follow its file's name, so they do not repeat it.
#[derive(Debug, Error)]
pub enum MintError {
    /// Managers would refuse the token.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The clock is wrong.
    #[error("the clock is set before 1970: set it, or no manager accepts the token")]
    Clock(#[source] SystemTimeError),
    /// The file holds no usable shared key.
    #[error(transparent)]
    SharedKey(#[from] SharedKeyError),
    /// The file is PEM, but holds no private key.
    #[error(
        "holds no PRIVATE KEY in PEM: give the private half, in PKCS #8 as `openssl pkcs8 -topk8 \
         -nodes` writes it"
    )]
    NoPrivateKey(#[source] pem::Error),
    /// A private key of a kind that is not supported.
    #[error("holds a private key of a kind that cannot sign here: use Ed25519 or P-256")]
    UnsupportedKey,
    /// Signing failed.
    #[error("the key cannot sign: {0}")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    aud: &'a str,
    scope: String,
    iat: u64,
    exp: u64,
}

/// Makes a token that is valid from `now` on. The key file holds a shared key (HS256), or an Ed25519 or
/// P-256 private key in PKCS #8 PEM (EdDSA, ES256).
///
/// # Errors
/// See [`MintError`].
pub fn mint(key_file: &[u8], grant: &Grant, now: SystemTime) -> Result<String, MintError> {
    provider::install();
    grant.check()?;
    let now = now.duration_since(UNIX_EPOCH).map_err(MintError::Clock)?.as_secs();
    let (algorithm, key) = signing_key(key_file)?;
    let claims = Claims {
        sub: &grant.subject,
        aud: &grant.audience,
        scope: grant.scopes.to_string(),
        iat: now,
        exp: now + grant.ttl.as_secs(),
    };
    encode(&Header::new(algorithm), &claims, &key).map_err(MintError::Sign)
}

fn signing_key(file: &[u8]) -> Result<(Algorithm, EncodingKey), MintError> {
    if !file.trim_ascii_start().starts_with(b"-----BEGIN") {
        let key = EncodingKey::from_secret(shared_key(file)?);
        return Ok((Algorithm::HS256, key));
    }
    let key = PrivatePkcs8KeyDer::from_pem_slice(file).map_err(MintError::NoPrivateKey)?;
    let der = key.secret_pkcs8_der();
    if Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).is_ok() {
        return Ok((Algorithm::EdDSA, EncodingKey::from_ed_der(der)));
    }
    if EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new()).is_ok()
    {
        return Ok((Algorithm::ES256, EncodingKey::from_ec_der(der)));
    }
    Err(MintError::UnsupportedKey)
}
