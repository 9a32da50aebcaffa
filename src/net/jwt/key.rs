//! The shared key, which both ends have to read alike.

/// RFC 7518, section 3.2: a shared key is at least as long as the hash.
const MIN_SHARED: usize = 32;

/// The bytes of a shared key. Keys that are text lose the newline an editor or `echo` adds, which
/// other JWT implementations are not given either; binary keys are taken as they are.
///
/// # Errors
/// A sentence without the file's name, if it is no shared key or one too short to be safe.
pub fn shared_bytes(file: &[u8]) -> Result<&[u8], String> {
    if file.trim_ascii_start().starts_with(b"-----BEGIN") {
        // Whoever knows the public half could sign with it.
        return Err("holds a PEM document, not a shared key: give a public key with \
                    --jwt-public-key"
            .to_owned());
    }
    let is_text = file.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let key = if is_text { file.trim_ascii() } else { file };
    if key.len() < MIN_SHARED {
        return Err(format!(
            "holds a key of {} bytes, and HS256 needs at least {MIN_SHARED}: \
             make one with `openssl rand -hex 32`",
            key.len()
        ));
    }
    Ok(key)
}
