//! Answers, all with the same protection: no site but ours may use them, and no browser keeps them.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Policy for browsers: scripts and styles are files of ours; texts of the cluster are neither.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PROTECTION: [(&str, &str); 6] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

pub(super) const HTML: &str = "text/html; charset=utf-8";

pub(super) fn answer(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in PROTECTION {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

pub(super) fn text(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    answer(status, kind, Full::new(body.into()).boxed_unsync())
}

/// Redirects to another address of ours.
pub(super) fn redirect(to: &str) -> Response<Body> {
    let mut response = text(StatusCode::SEE_OTHER, HTML, "");
    // Paths that we have made are valid values.
    if let Ok(value) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}
