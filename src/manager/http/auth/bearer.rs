//! Reads the bearer token of a request (RFC 6750, section 2.1).

use hyper::header::{AUTHORIZATION, HeaderMap};

/// Longest token in bytes. No issuer makes longer ones.
const MAX_TOKEN: usize = 8 * 1024;

/// Content of the `Authorization` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bearer<'a> {
    /// There is no such header.
    Absent,
    /// The header is not exactly one bearer token.
    Malformed,
    /// The token, not yet verified.
    Token(&'a str),
}

/// Reads the token from the headers.
pub(super) fn read(headers: &HeaderMap) -> Bearer<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, further) = (values.next(), values.next());
    match (value, further) {
        (None, _) => Bearer::Absent,
        // Two headers: a proxy in between may have checked the other one.
        (Some(_), Some(_)) => Bearer::Malformed,
        (Some(value), None) => match value.to_str().ok().and_then(token) {
            Some(token) => Bearer::Token(token),
            None => Bearer::Malformed,
        },
    }
}

fn token(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_once(' ')?;
    let token = rest.trim_matches(' ');
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    let is_jwt = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (is_bearer && !token.is_empty() && token.len() <= MAX_TOKEN && token.bytes().all(is_jwt))
        .then_some(token)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn with(values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_token_is_read_and_anything_else_is_not() {
        assert_eq!(read(&with(&[])), Bearer::Absent);
        assert_eq!(read(&with(&[b"Bearer a.b-c.d_e"])), Bearer::Token("a.b-c.d_e"));
        assert_eq!(read(&with(&[b"bEARER  a.b.c "])), Bearer::Token("a.b.c"));
        for bad in [&b"Bearer"[..], b"Bearer ", b"Basic a", b"a.b.c", b"Bearer a b", b"Bearer \xff"]
        {
            assert_eq!(read(&with(&[bad])), Bearer::Malformed, "{bad:?}");
        }
        assert_eq!(read(&with(&[b"Bearer a.b.c", b"Bearer a.b.c"])), Bearer::Malformed);
        let long = [b"Bearer ".as_slice(), &[b'a'; MAX_TOKEN + 1]].concat();
        assert_eq!(read(&with(&[&long])), Bearer::Malformed);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn no_header_makes_it_panic_or_yield_what_a_token_cannot_hold(value: Vec<u8>) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut headers = HeaderMap::new();
                headers.insert(AUTHORIZATION, value);
                if let Bearer::Token(token) = read(&headers) {
                    prop_assert!(!token.contains([' ', '\t', ',', '"']));
                }
            }
        }
    }
}
