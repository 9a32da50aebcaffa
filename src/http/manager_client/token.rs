//! A JWT, and the request header that carries it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use hyper::header::HeaderValue;
use thiserror::Error;

/// The largest token accepted, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// A JWT, or the file that contains it.
#[derive(Clone, PartialEq, Eq)]
pub enum Token {
    /// The file that contains the token; read at every call, because the kubelet renews tokens in place.
    File(PathBuf),
    /// The token itself.
    Text(String),
}

/// Never shows the token.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Self::Text(_) => formatter.write_str("Text(…)"),
        }
    }
}

/// Why a token cannot be sent. No message contains the token; `name` is its file, if it has one.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("{name} cannot be read: {source}")]
    Unreadable {
        /// The token file.
        name: String,
        /// Error of the file system.
        source: io::Error,
    },
    /// Nothing but white space.
    #[error("{0} is empty")]
    Empty(String),
    /// Too long, or with white space inside.
    #[error("{0} does not hold one JWT and nothing else")]
    NotOneToken(String),
    /// The token has characters that a header must not contain.
    #[error("{0} holds characters no token has")]
    InvalidCharacter(String),
}

/// Makes the `Authorization` header, marked so that no log of headers shows it.
///
/// # Errors
/// See [`TokenError`].
pub(super) fn header(token: &Token) -> Result<HeaderValue, TokenError> {
    let (name, text) = match token {
        Token::Text(text) => ("the token".to_owned(), Cow::from(text)),
        Token::File(path) => {
            let name = format!("the token file {}", path.display());
            match std::fs::read_to_string(path) {
                Ok(text) => (name, Cow::from(text)),
                Err(source) => return Err(TokenError::Unreadable { name, source }),
            }
        }
    };
    let token = text.trim();
    if token.is_empty() {
        return Err(TokenError::Empty(name));
    }
    if token.len() > MAX_TOKEN || token.contains(char::is_whitespace) {
        return Err(TokenError::NotOneToken(name));
    }
    let Ok(mut header) = HeaderValue::from_str(&format!("Bearer {token}")) else {
        return Err(TokenError::InvalidCharacter(name));
    };
    header.set_sensitive(true);
    Ok(header)
}
