//! Keys and tokens made without the code under test, so that it is not checked against itself.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use ring::{digest, hmac};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

pub(crate) const SHARED: &[u8] = b"0123456789abcdef0123456789abcdef\n";
/// Made for these tests and used nowhere else.
pub(crate) const RSA_PRIVATE: &[u8] = include_bytes!("rsa.pem");
pub(crate) const RSA_PUBLIC: &[u8] = include_bytes!("rsa.pub.pem");

pub(crate) enum Signer {
    Shared(Vec<u8>),
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Unsigned,
}

impl Signer {
    pub(crate) fn shared() -> Self {
        Self::Shared(SHARED.trim_ascii().to_vec())
    }

    pub(crate) fn rsa() -> Self {
        let der = PrivatePkcs8KeyDer::from_pem_slice(RSA_PRIVATE).unwrap();
        Self::Rsa(RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap())
    }

    pub(crate) fn p256(key: &rcgen::KeyPair) -> Self {
        let der = key.serialize_der();
        let rng = SystemRandom::new();
        Self::P256(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &rng).unwrap())
    }

    pub(crate) fn ed25519(key: &rcgen::KeyPair) -> Self {
        Self::Ed25519(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key.serialize_der()).unwrap())
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let rng = SystemRandom::new();
        match self {
            Self::Shared(key) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
            }
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &rng, message, &mut signature).unwrap();
                signature
            }
            Self::P256(pair) => pair.sign(&rng, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Unsigned => Vec::new(),
        }
    }

    /// The token with this header and these claims.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", b64(header.to_string()), b64(claims.to_string()));
        let signature = b64(self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

pub(crate) fn rsa_jwk(kid: &str) -> Value {
    let Signer::Rsa(pair) = Signer::rsa() else { unreachable!() };
    let RsaPublicKeyComponents::<Vec<u8>> { n, e } = pair.public().into();
    json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid, "n": b64(n), "e": b64(e)})
}

pub(crate) fn p256_jwk(key: &rcgen::KeyPair, kid: &str) -> Value {
    let Signer::P256(pair) = Signer::p256(key) else { unreachable!() };
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    json!({"kty": "EC", "crv": "P-256", "kid": kid, "x": b64(x), "y": b64(y)})
}

pub(crate) fn ed25519_jwk(key: &rcgen::KeyPair, kid: &str) -> Value {
    let Signer::Ed25519(pair) = Signer::ed25519(key) else { unreachable!() };
    json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": b64(pair.public_key().as_ref())})
}

pub(crate) fn key_id() -> String {
    b64(digest::digest(&digest::SHA256, RSA_PUBLIC))
}

/// Base64url without padding.
pub(crate) fn b64(bytes: impl AsRef<[u8]>) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.as_ref().chunks(3) {
        let block = chunk.iter().fold(0_u32, |block, byte| block << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            let sextet = block >> (18 - 6 * index) & 0x3f;
            text.push(char::from(ALPHABET[sextet as usize]));
        }
    }
    text
}
