//! Keeps web pages away from a listener that lets everybody call (`--insecure-no-auth`).
//!
//! Everybody on this machine includes the browser, and with it every page it shows: a page may send
//! simple requests anywhere, and may give its own name the address of this machine. Neither passes
//! here: pages cannot leave out `Origin`, nor choose `Host`.

use std::net::IpAddr;

use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST, ORIGIN};

use stayput_api::Code;
use stayput_api::Refusal;

/// Lets through what a program on this machine sends.
///
/// # Errors
/// [`Code::Forbidden`] with what is wrong about it.
pub(super) fn keep_out<B>(request: &Request<B>) -> Result<(), Refusal> {
    let refuse = |detail: &str| Err(Refusal::new(Code::Forbidden, detail));
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    if header(ORIGIN).is_some() {
        return refuse(
            "web pages may not call a manager with --insecure-no-auth: leave Origin out",
        );
    }
    if !header(HOST).is_some_and(is_loopback) {
        return refuse(
            "with --insecure-no-auth, Host has to be a loopback address or localhost: call it so",
        );
    }
    let media_type = header(CONTENT_TYPE).map(|value| value.split(';').next().unwrap_or(value));
    if !media_type.is_none_or(|own| own.trim().eq_ignore_ascii_case("application/json")) {
        return refuse(
            "with --insecure-no-auth, a body has to be sent as Content-Type: application/json",
        );
    }
    Ok(())
}

/// Whether `host[:port]` names this machine by what no foreign name can stand for.
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
        keep_out(&request.body(()).unwrap()).is_ok()
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
