//! Access to the pages: for whoever has the token, by a browser that was given our own address. Pure.

use hyper::header::{COOKIE, HOST};
use hyper::{HeaderMap, Method, StatusCode, Uri};
use ring::digest::{SHA256, digest};

/// Port and token that a request must show.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pub(super) port: u16,
    /// Token in the printed address, and then in a cookie.
    pub(super) token: String,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Granted,
    /// The request has the token in its address: set the cookie, and redirect to the address without it.
    Enter,
    Denied(StatusCode, &'static str),
}

impl Keys {
    /// The address to open.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Name of the cookie, with the port, because cookies do not tell ports apart.
    fn cookie_name(&self) -> String {
        format!("stayput-{}", self.port)
    }

    /// The value of `Set-Cookie`.
    pub(super) fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.token)
    }

    pub(super) fn access(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Access {
        if !self.is_our_address(headers) {
            return Access::Denied(
                StatusCode::MISDIRECTED_REQUEST,
                "this is not the address that was printed: open that one",
            );
        }
        if method != Method::GET && method != Method::HEAD {
            return Access::Denied(StatusCode::METHOD_NOT_ALLOWED, "nothing can be changed here");
        }
        if token_in(uri).is_some_and(|token| self.is_token(token)) {
            return Access::Enter;
        }
        if self.cookies(headers).any(|token| self.is_token(token)) {
            return Access::Granted;
        }
        Access::Denied(
            StatusCode::FORBIDDEN,
            "open the address that kubectl stayput ui has printed, with the token in it",
        )
    }

    /// True if the request names our own address. A page of another site, whose name was made to lead
    /// here, sends that name.
    fn is_our_address(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        ["127.0.0.1", "localhost"]
            .iter()
            .any(|name| format!("{name}:{}", self.port).as_bytes() == host.as_bytes())
    }

    fn cookies<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let name = self.cookie_name();
        let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|value| value.split(';')).filter_map(move |pair| {
            let (own, value) = pair.trim().split_once('=')?;
            (own == name).then_some(value)
        })
    }

    /// True if the token is right. Compares digests, so that the time tells nothing about the token.
    fn is_token(&self, given: &str) -> bool {
        let of = |text: &str| digest(&SHA256, text.as_bytes());
        of(given).as_ref() == of(&self.token).as_ref()
    }
}

fn token_in(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderName;

    fn access(method: Method, uri: &str, headers: &[(HeaderName, &'static str)]) -> Access {
        let keys = Keys { port: 4711, token: "secret".into() };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        keys.access(&method, &uri.parse().unwrap(), &map)
    }

    fn code(access: Access) -> u16 {
        match access {
            Access::Denied(code, _) => code.as_u16(),
            Access::Granted => 200,
            Access::Enter => 303,
        }
    }

    #[test] // proves PAGE-2
    fn only_with_the_token_and_by_our_own_address() {
        const OURS: (HeaderName, &str) = (HOST, "127.0.0.1:4711");
        const RIGHT: (HeaderName, &str) = (COOKIE, "other=1; stayput-4711=secret");
        let get = |uri: &str, headers: &[_]| code(access(Method::GET, uri, headers));
        assert_eq!(get("/", &[OURS, RIGHT]), 200);
        assert_eq!(get("/", &[(HOST, "localhost:4711"), RIGHT]), 200);
        assert_eq!(get("/?token=secret", &[OURS]), 303);
        for host in ["evil.example:4711", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:4711.evil", ""] {
            assert_eq!(get("/?token=secret", &[(HOST, host), RIGHT]), 421, "{host}");
        }
        assert_eq!(get("/", &[RIGHT]), 421);
        assert_eq!(get("/", &[OURS, (HOST, "evil.example"), RIGHT]), 421);
        assert_eq!(get("/", &[OURS]), 403);
        for cookie in ["stayput-4711=", "stayput-4711=secre", "stayput-1=secret", "secret"] {
            assert_eq!(get("/?token=", &[OURS, (COOKIE, cookie)]), 403, "{cookie}");
        }
        assert_eq!(code(access(Method::HEAD, "/", &[OURS, RIGHT])), 200);
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            assert_eq!(code(access(method, "/?token=secret", &[OURS, RIGHT])), 405);
        }
    }
}
