//! Refuses requests of web pages at a listener without authentication (`--insecure-no-auth`).
//!
//! Such a listener accepts every program on this machine, also the browser, and so every page it
//! shows: a page can send simple requests to any address (CSRF), and can let its own name resolve to
//! this machine (DNS rebinding). Both are recognized: a page cannot leave out `Origin`, nor choose
//! `Host`.

use std::net::IpAddr;

use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST, ORIGIN};

use stayput_api::Code;
use stayput_api::Refusal;

/// Accepts what a program on this machine sends.
///
/// # Errors
/// [`Code::Forbidden`] with the reason.
pub(super) fn refuse_web_pages<B>(request: &Request<B>) -> Result<(), Refusal> {
    let refuse = |message: &str| Err(Refusal::new(Code::Forbidden, message));
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    if header(ORIGIN).is_some() {
        return refuse(
            "web pages may not call a manager with --insecure-no-auth: leave out Origin",
        );
    }
    if !header(HOST).is_some_and(is_loopback) {
        return refuse(
            "with --insecure-no-auth, Host must be a loopback address or localhost: use one of them",
        );
    }
    let media_type = header(CONTENT_TYPE).map(|value| value.split(';').next().unwrap_or(value));
    if !media_type.is_none_or(|own| own.trim().eq_ignore_ascii_case("application/json")) {
        return refuse(
            "with --insecure-no-auth, a body must be sent as Content-Type: application/json",
        );
    }
    Ok(())
}

/// True if `host[:port]` is a loopback address or `localhost`, which no foreign name can be.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        refuse_web_pages(&request.body(()).unwrap()).is_ok()
    }

    #[test]
    fn programs_pass_and_pages_do_not() {
        for host in ["127.0.0.1:9199", "localhost", "LOCALHOST:1", "[::1]:9199", "127.8.8.8"] {
            assert!(passes(&[("host", host)]), "{host}");
        }
        for host in ["evil.example:9199", "localhost.evil.example", "10.0.0.1", "", "[::2]:1"] {
            assert!(!passes(&[("host", host)]), "{host}");
        }
        assert!(!passes(&[]));
        let local = ("host", "localhost");
        assert!(!passes(&[local, ("origin", "https://evil.example")]));
        assert!(!passes(&[local, ("origin", "null")]));
        assert!(passes(&[local, ("content-type", "application/json; charset=utf-8")]));
        for simple in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            assert!(!passes(&[local, ("content-type", simple)]), "{simple}");
        }
    }
}
