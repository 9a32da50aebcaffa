//! Makes tokens, for people with curl and for our own client.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Serialize;

use super::{MAX_AHEAD, Scopes, key, provider};

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who it speaks for, shown in logs and in `last_request`.
    pub subject: String,
    /// What its bearer may do.
    pub scopes: Scopes,
    /// Which manager it is for: `stayput:<namespace>/<pod uid>`, or the configured audience.
    pub audience: String,
    /// How long it is valid; at most an hour, or managers refuse it.
    pub ttl: Duration,
}

impl Grant {
    /// Whether managers would take a token that says this.
    ///
    /// # Errors
    /// A sentence that says what they would not take.
    pub fn check(&self) -> Result<(), String> {
        if self.audience.trim().is_empty() {
            return Err("the audience is empty: name the token's manager, \
                        stayput:NAMESPACE/POD-UID or its --jwt-audience"
                .into());
        }
        if !(1..=MAX_AHEAD).contains(&self.ttl.as_secs()) {
            return Err(
                "a token lives between one second and one hour: managers refuse others".into()
            );
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    aud: &'a str,
    scope: String,
    iat: u64,
    exp: u64,
}

/// Makes a token valid from `now` on. The key file holds a shared key (HS256), or an Ed25519 or
/// P-256 private key in PKCS #8 PEM (EdDSA, ES256).
///
/// # Errors
/// A sentence that says what is wrong with the grant or the key, without the file's name.
pub fn mint(key_file: &[u8], grant: &Grant, now: SystemTime) -> Result<String, String> {
    provider::install();
    grant.check()?;
    let now = now
        .duration_since(UNIX_EPOCH)
        .map_err(|_| "the clock is set before 1970: set it, or no manager takes the token")?
        .as_secs();
    let (algorithm, key) = signing_key(key_file)?;
    let claims = Claims {
        sub: &grant.subject,
        aud: &grant.audience,
        scope: grant.scopes.to_string(),
        iat: now,
        exp: now + grant.ttl.as_secs(),
    };
    encode(&Header::new(algorithm), &claims, &key)
        .map_err(|error| format!("the key cannot sign: {error}"))
}

fn signing_key(file: &[u8]) -> Result<(Algorithm, EncodingKey), String> {
    if !file.trim_ascii_start().starts_with(b"-----BEGIN") {
        let key = EncodingKey::from_secret(key::shared_bytes(file)?);
        return Ok((Algorithm::HS256, key));
    }
    let key = PrivatePkcs8KeyDer::from_pem_slice(file).map_err(|_| {
        "holds no PRIVATE KEY in PEM: give the private half, in PKCS #8 as `openssl pkcs8 -topk8 \
         -nodes` writes it"
    })?;
    let der = key.secret_pkcs8_der();
    if Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).is_ok() {
        return Ok((Algorithm::EdDSA, EncodingKey::from_ed_der(der)));
    }
    if EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new()).is_ok()
    {
        return Ok((Algorithm::ES256, EncodingKey::from_ec_der(der)));
    }
    Err("holds a private key of a kind that cannot sign here: use Ed25519 or P-256".to_owned())
}
