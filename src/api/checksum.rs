//! One checksum over a set of files, the same for manager and reconciler.
//!
//! Every file is a line `<sha256 of its content>  <its path>\n`, as coreutils' `sha256sum` writes
//! it; the lines are sorted by the bytes of the path; the checksum is `sha256:` and the SHA-256 of
//! that listing. So a person can check it: `cd DIR && LC_ALL=C sha256sum * | sha256sum`.
//! `proto/checksum-vectors.json` holds examples that must never change.
#![deny(clippy::disallowed_methods, clippy::disallowed_macros, clippy::wildcard_enum_match_arm)]

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// Prefix of a checksum.
const PREFIX: &str = "sha256:";
/// Digits of a SHA-256 in hexadecimal.
const HEX_DIGITS: usize = 64;

/// How many digits people need to distinguish two configs.
const SHORT: usize = 12;

/// The first digits of a checksum, enough for people to compare; of any other text its beginning.
pub fn short(checksum: &str) -> &str {
    let digits = checksum.strip_prefix(PREFIX).unwrap_or(checksum);
    digits.char_indices().nth(SHORT).map_or(digits, |(end, _)| &digits[..end])
}

/// The SHA-256 of a content. Shown in lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentDigest(pub [u8; 32]);

impl ContentDigest {
    /// The digest of this content.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }
}

impl FromStr for ContentDigest {
    type Err = String;

    /// Reads the text that `Display` writes.
    fn from_str(hex: &str) -> Result<Self, Self::Err> {
        let invalid = || format!("{:?} is not a SHA-256 in hexadecimal", shortened(hex));
        let mut digest = [0; 32];
        if hex.len() != HEX_DIGITS || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        for (byte, at) in digest.iter_mut().zip((0..HEX_DIGITS).step_by(2)) {
            *byte = u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| invalid())?;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One file of the set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDigest {
    /// Path below the config directory, `NAME/…` with named directories. Bytes, because a file's
    /// name need not be UTF-8.
    pub path: Vec<u8>,
    /// SHA-256 of the content.
    pub sha256: ContentDigest,
}

impl FileDigest {
    /// A file with this content.
    pub fn of(path: impl Into<Vec<u8>>, content: &[u8]) -> Self {
        Self { path: path.into(), sha256: ContentDigest::of(content) }
    }

    /// The file's line as `sha256sum` writes it: a name with a backslash, a newline or a carriage
    /// return is escaped, and the line then begins with a backslash.
    fn append_line(&self, listing: &mut Vec<u8>) {
        if self.path.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r')) {
            listing.push(b'\\');
        }
        listing.extend_from_slice(self.sha256.to_string().as_bytes());
        listing.extend_from_slice(b"  ");
        for byte in &self.path {
            match byte {
                b'\\' => listing.extend_from_slice(b"\\\\"),
                b'\n' => listing.extend_from_slice(b"\\n"),
                b'\r' => listing.extend_from_slice(b"\\r"),
                byte => listing.push(*byte),
            }
        }
        listing.push(b'\n');
    }
}

/// The listing that is hashed, in `sha256sum`'s format, sorted by path bytes.
pub fn listing<'a>(files: impl IntoIterator<Item = &'a FileDigest>) -> Vec<u8> {
    let mut files: Vec<&FileDigest> = files.into_iter().collect();
    files.sort();
    let mut listing = Vec::new();
    for file in files {
        file.append_line(&mut listing);
    }
    listing
}

/// The checksum of a set of files: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum(String);

impl Checksum {
    /// The checksum of files whose digests are known. The order does not matter.
    pub fn of_files<'a>(files: impl IntoIterator<Item = &'a FileDigest>) -> Self {
        let mut text = String::with_capacity(PREFIX.len() + HEX_DIGITS);
        text.push_str(PREFIX);
        // Writing to a String cannot fail.
        let _ = write!(text, "{}", ContentDigest::of(&listing(files)));
        Self(text)
    }

    /// The checksum of (path, content) pairs, such as the data of a Secret. The order does not matter.
    pub fn of_contents<P, C>(files: impl IntoIterator<Item = (P, C)>) -> Self
    where
        P: Into<Vec<u8>>,
        C: AsRef<[u8]>,
    {
        let digests: Vec<FileDigest> = files
            .into_iter()
            .map(|(path, content)| FileDigest::of(path, content.as_ref()))
            .collect();
        Self::of_files(&digests)
    }

    /// Reads a checksum from a request or an option.
    ///
    /// # Errors
    /// The message says what is wrong, and what a checksum must look like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |fault: &str| {
            format!(
                "{:?} is not a config checksum: {fault}; it must be \"sha256:\" and 64 lower-case \
                 hexadecimal digits, as in config.checksum of the status",
                shortened(text)
            )
        };
        let Some(hex) = text.strip_prefix(PREFIX) else {
            return Err(wrong("it does not begin with \"sha256:\""));
        };
        if let Some(odd) = hex.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
            return Err(wrong(&format!("{odd:?} is not a lower-case hexadecimal digit")));
        }
        if hex.len() != HEX_DIGITS {
            return Err(wrong(&format!("it has {} digits", hex.len())));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text as it stands in the status.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Cuts a long text: it comes from a caller and goes into an error message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
