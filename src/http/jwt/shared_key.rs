//! The shared key of HS256 tokens: signer and verifier must read its file in the same way.

/// Shortest key in bytes. RFC 7518, section 3.2: a shared key is at least as long as the hash.
const MIN_LENGTH: usize = 32;

/// Why a file holds no usable shared key. The messages follow the file's name, so they do not
/// repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SharedKeyError {
    /// A PEM document: if it is a public key, any holder of it could sign tokens.
    #[error("holds a PEM document, not a shared key: give a public key with --jwt-public-key")]
    Pem,
    /// The key is shorter than HS256 allows.
    #[error(
        "holds a key of {length} bytes, and HS256 needs at least {MIN_LENGTH}: \
         make one with `openssl rand -hex 32`"
    )]
    TooShort {
        /// Length of the key in bytes.
        length: usize,
    },
}

/// The bytes of the shared key in this file. If the key is text, white space around it is dropped:
/// editors and `echo` add a newline. A binary key is used as it is.
///
/// # Errors
/// See [`SharedKeyError`].
pub fn shared_key(file: &[u8]) -> Result<&[u8], SharedKeyError> {
    if file.trim_ascii_start().starts_with(b"-----BEGIN") {
        return Err(SharedKeyError::Pem);
    }
    let is_text = file.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let key = if is_text { file.trim_ascii() } else { file };
    if key.len() < MIN_LENGTH {
        return Err(SharedKeyError::TooShort { length: key.len() });
    }
    Ok(key)
}
