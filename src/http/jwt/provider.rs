//! The cryptography of jsonwebtoken, done by ring: the library rustls uses already.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
    Ed25519KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use ring::{error::Unspecified, hmac};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Only used to make key sets, which we never do.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes ring the cryptography of jsonwebtoken in this process; without one jsonwebtoken panics at
/// its first use. Later calls change nothing.
pub fn install() {
    // Fails only if one is installed already, and no other code installs one.
    let _ = RING.install_default();
}

/// The trait object has to be `'static`, so the verifier owns its key.
struct Verify(Algorithm, DecodingKey);

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    match algorithm {
        Algorithm::HS256 | Algorithm::ES256 | Algorithm::RS256 | Algorithm::EdDSA => {
            Ok(Box::new(Verify(*algorithm, key.clone())))
        }
        _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
    }
}

impl Verify {
    fn check(&self, message: &[u8], sent: &[u8]) -> Result<(), Unspecified> {
        let Self(algorithm, key) = self;
        let bytes = match key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                return RsaPublicKeyComponents { n, e }.verify(
                    &RSA_PKCS1_2048_8192_SHA256,
                    message,
                    sent,
                );
            }
            DecodingKeyKind::SecretOrDer(bytes) => bytes,
        };
        match algorithm {
            // Compares in constant time.
            Algorithm::HS256 => {
                hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, bytes), message, sent)
            }
            Algorithm::ES256 => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes).verify(message, sent)
            }
            Algorithm::RS256 => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, bytes).verify(message, sent)
            }
            Algorithm::EdDSA => UnparsedPublicKey::new(&ED25519, bytes).verify(message, sent),
            _ => Err(Unspecified),
        }
    }
}

impl Verifier<Vec<u8>> for Verify {
    fn verify(&self, message: &[u8], sent: &Vec<u8>) -> Result<(), signature::Error> {
        self.check(message, sent).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Verify {
    fn algorithm(&self) -> Algorithm {
        self.0
    }
}

enum Sign {
    Hmac(hmac::Key),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    let bytes = key.as_bytes();
    Ok(Box::new(match algorithm {
        Algorithm::HS256 => Sign::Hmac(hmac::Key::new(hmac::HMAC_SHA256, bytes)),
        Algorithm::ES256 => Sign::Ecdsa(
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new())
                .map_err(|_| ErrorKind::InvalidEcdsaKey)?,
        ),
        Algorithm::EdDSA => Sign::Ed25519(
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes)
                .map_err(|_| ErrorKind::InvalidEddsaKey)?,
        ),
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    }))
}

impl Signer<Vec<u8>> for Sign {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        match self {
            Self::Hmac(key) => Ok(hmac::sign(key, message).as_ref().to_vec()),
            Self::Ecdsa(pair) => pair
                .sign(&SystemRandom::new(), message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| signature::Error::new()),
            Self::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

impl JwtSigner for Sign {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Hmac(_) => Algorithm::HS256,
            Self::Ecdsa(_) => Algorithm::ES256,
            Self::Ed25519(_) => Algorithm::EdDSA,
        }
    }
}
