//! Exactly one bearer token is read from the headers.

use hyper::header::HeaderValue;
use proptest::prelude::*;

use super::*;

fn with_values(values: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

#[test]
fn one_bearer_token_is_read_and_anything_else_is_not() {
    assert_eq!(read(&with_values(&[])), Bearer::Absent);
    assert_eq!(read(&with_values(&[b"Bearer a.b-c.d_e"])), Bearer::Token("a.b-c.d_e"));
    assert_eq!(read(&with_values(&[b"bEARER  a.b.c "])), Bearer::Token("a.b.c"));
    for bad in [&b"Bearer"[..], b"Bearer ", b"Basic a", b"a.b.c", b"Bearer a b", b"Bearer \xff"] {
        assert_eq!(read(&with_values(&[bad])), Bearer::Malformed, "{bad:?}");
    }
    assert_eq!(read(&with_values(&[b"Bearer a.b.c", b"Bearer a.b.c"])), Bearer::Malformed);
    let long = [b"Bearer ".as_slice(), &[b'a'; MAX_TOKEN + 1]].concat();
    assert_eq!(read(&with_values(&[&long])), Bearer::Malformed);
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
