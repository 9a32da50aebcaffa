//! Keys that tokens are verified with. The algorithm belongs to the key, never to the token.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::{self, PemObject};
use thiserror::Error;

use super::spki;
use stayput_http::jwt::{SharedKeyError, shared_key};

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

/// Why a file holds no key to verify with. The messages follow the file's name, so they do not
/// repeat it.
#[derive(Debug, Error)]
pub(crate) enum KeyError {
    #[error(transparent)]
    Shared(#[from] SharedKeyError),
    #[error("is not PEM: {0}")]
    Pem(#[source] pem::Error),
    #[error("holds a public key of a kind that cannot be used: use Ed25519, P-256 or RSA")]
    UnsupportedPublicKey,
    #[error(
        "holds no PUBLIC KEY in PEM: give the public half of the signing key, as `openssl pkey \
         -pubout` writes it"
    )]
    NoPublicKey,
    #[error("is not a JSON Web Key Set: {0}")]
    NotKeySet(#[source] serde_json::Error),
    #[error(
        "holds no signing key of a kind that can be used: RSA (RS256), P-256 (ES256) or Ed25519 \
         (EdDSA)"
    )]
    NoSigningKey,
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
pub(crate) fn shared(file: &[u8]) -> Result<Vec<Key>, KeyError> {
    let key = DecodingKey::from_secret(shared_key(file)?);
    Ok(vec![Key { source: Source::Shared, algorithm: Algorithm::HS256, id: None, key }])
}

/// Reads public keys in PEM; several are allowed, so that keys can be rotated.
///
/// # Errors
/// See [`KeyError`].
pub(crate) fn public(file: &[u8]) -> Result<Vec<Key>, KeyError> {
    let mut keys = Vec::new();
    for document in SubjectPublicKeyInfoDer::pem_slice_iter(file) {
        let document = document.map_err(KeyError::Pem)?;
        let (algorithm, key) = spki::read(&document).ok_or(KeyError::UnsupportedPublicKey)?;
        keys.push(Key { source: Source::Public, algorithm, id: None, key });
    }
    if keys.is_empty() {
        return Err(KeyError::NoPublicKey);
    }
    Ok(keys)
}

/// Reads an issuer's JSON Web Key Set. Keys for other purposes or of other kinds are left out, as
/// RFC 7517 asks; a set without any key for us is an error.
///
/// # Errors
/// See [`KeyError`].
pub(crate) fn key_set(file: &[u8]) -> Result<Vec<Key>, KeyError> {
    let set: JwkSet = serde_json::from_slice(file).map_err(KeyError::NotKeySet)?;
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
