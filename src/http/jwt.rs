//! Bearer tokens for managers: scopes, keys, minting. The manager's `http` module verifies them.

mod provider;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Serialize;

pub use provider::install as install_provider;

/// How far ahead `exp` may be, in seconds, so that a stolen token expires soon.
pub const MAX_AHEAD: u64 = 60 * 60;

/// Seconds by which the clocks of a token's maker and of the manager may differ.
pub const LEEWAY: u64 = 30;

/// The audience of tokens for the manager of one pod.
pub fn pod_audience(namespace: &str, uid: &str) -> String {
    format!("stayput:{namespace}/{uid}")
}

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
    pub fn check(&self) -> Result<(), String> {
        if self.audience.trim().is_empty() {
            return Err("the audience is empty: name the token's manager, \
                        stayput:NAMESPACE/POD-UID or its --jwt-audience"
                .to_owned());
        }
        if !(1..=MAX_AHEAD).contains(&self.ttl.as_secs()) {
            let ttl = "a token is valid for one second to one hour: managers refuse others";
            return Err(ttl.to_owned());
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

/// Makes a token that is valid from `now` on. The key file holds a shared key (HS256), or an Ed25519 or
/// P-256 private key in PKCS #8 PEM (EdDSA, ES256).
///
/// # Errors
/// Managers would refuse the token, or why the key cannot sign it. Messages about the key follow its
/// file's name, so they do not repeat it.
pub fn mint(key_file: &[u8], grant: &Grant, now: SystemTime) -> Result<String, String> {
    provider::install();
    grant.check()?;
    let now = now.duration_since(UNIX_EPOCH).map_err(|_| {
        "the clock is set before 1970: set it, or no manager accepts the token".to_owned()
    })?;
    let now = now.as_secs();
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
        let key = EncodingKey::from_secret(shared_key(file)?);
        return Ok((Algorithm::HS256, key));
    }
    let key = PrivatePkcs8KeyDer::from_pem_slice(file).map_err(|_| {
        "holds no PRIVATE KEY in PEM: give the private half, in PKCS #8 as `openssl pkcs8 -topk8 \
         -nodes` writes it"
            .to_owned()
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

/// Rights of a caller. `control` includes `read`: the answer to a stop contains the status anyway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scopes {
    read: bool,
    control: bool,
}

impl Scopes {
    /// No rights.
    pub const NONE: Self = Self { read: false, control: false };
    /// Reading the status and the metrics.
    pub const READ: Self = Self { read: true, control: false };
    /// Reading, stopping and starting.
    pub const CONTROL: Self = Self { read: true, control: true };

    /// True if the status may be read.
    pub const fn may_read(self) -> bool {
        self.read
    }

    /// True if the engine may be stopped and started.
    pub const fn may_control(self) -> bool {
        self.control
    }

    const fn and(self, other: Self) -> Self {
        Self { read: self.read || other.read, control: self.control || other.control }
    }

    /// The scopes in a token's `scope` claim. Unknown scopes are ignored: they are for other
    /// services.
    pub fn of_claim<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        words.into_iter().fold(Self::NONE, |scopes, word| match word {
            "es:read" => scopes.and(Self::READ),
            "es:control" => scopes.and(Self::CONTROL),
            _ => scopes,
        })
    }
}

impl FromStr for Scopes {
    type Err = String;

    /// Reads `read`, `control` or `read,control`; `es:`, as in the claim, is allowed before each.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split([',', ' ']).try_fold(Self::NONE, |scopes, word| {
            match word.strip_prefix("es:").unwrap_or(word) {
                "read" => Ok(scopes.and(Self::READ)),
                "control" => Ok(scopes.and(Self::CONTROL)),
                _ => Err(format!("{word:?} is not a scope; use read or control")),
            }
        })
    }
}

impl fmt::Display for Scopes {
    /// Text as in the `scope` claim of a token.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.read, self.control) {
            (_, true) => "es:read es:control",
            (true, false) => "es:read",
            (false, false) => "",
        })
    }
}

/// Shortest key in bytes. RFC 7518, section 3.2: a shared key is at least as long as the hash.
const MIN_LENGTH: usize = 32;

/// The bytes of the shared key in this file. If the key is text, white space around it is dropped:
/// editors and `echo` add a newline. A binary key is used as it is.
///
/// # Errors
/// Why the file holds no usable shared key. The messages follow the file's name, so they do not
/// repeat it.
pub fn shared_key(file: &[u8]) -> Result<&[u8], String> {
    if file.trim_ascii_start().starts_with(b"-----BEGIN") {
        // If it is a public key, any holder of it could sign tokens.
        let message = "holds a PEM document, not a shared key: give a public key with \
                       --jwt-public-key";
        return Err(message.to_owned());
    }
    let is_text = file.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let key = if is_text { file.trim_ascii() } else { file };
    if key.len() < MIN_LENGTH {
        return Err(format!(
            "holds a key of {} bytes, and HS256 needs at least {MIN_LENGTH}: make one with \
             `openssl rand -hex 32`",
            key.len()
        ));
    }
    Ok(key)
}
