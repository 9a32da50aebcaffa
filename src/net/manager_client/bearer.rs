//! The header that carries our token.

use std::borrow::Cow;

use hyper::header::HeaderValue;

use super::Token;

/// The largest token taken.
const MAX_TOKEN: usize = 16 * 1024;

/// Makes the `Authorization` header. The token is in no message, and marked so that no log of
/// headers shows it.
///
/// # Errors
/// A sentence that names the token's file, if that is where it is from.
pub(super) fn header(token: &Token) -> Result<HeaderValue, String> {
    let (name, text) = match token {
        Token::Text(text) => ("the token".to_owned(), Cow::from(text)),
        Token::File(path) => {
            let name = format!("the token file {}", path.display());
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{name} cannot be read: {error}"))?;
            (name, Cow::from(text))
        }
    };
    let token = text.trim();
    if token.is_empty() {
        return Err(format!("{name} is empty"));
    }
    if token.len() > MAX_TOKEN || token.contains(char::is_whitespace) {
        return Err(format!("{name} does not hold one JWT and nothing else"));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| format!("{name} holds characters no token has"))?;
    header.set_sensitive(true);
    Ok(header)
}
