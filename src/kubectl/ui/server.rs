//! Answers browsers: who may read, which page an address means, and the events that change it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::unfold;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use ring::digest::{SHA256, digest};
use stayput_http::server::{self, Limits};
use stayput_kube_access::names::is_object_name;
use tokio::net::TcpListener;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use crate::apiserver::ApiError;
use crate::html::{Change, Page, changes};
use crate::ui::feed::{Clusters, Seen};
use crate::{html, runbook};

/// A browser takes six connections for each tab group; more at the same time are not needed.
const LIMITS: Limits = Limits { connections: 64, head: Duration::from_secs(10), whole: None };

/// Serves until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, keys: Keys, clusters: Arc<Clusters>) {
    let keys = Arc::new(keys);
    let answer = move |request| {
        let (keys, clusters) = (Arc::clone(&keys), Arc::clone(&clusters));
        async move { respond(&request, &keys, &clusters).await }
    };
    server::serve(listener, LIMITS, answer).await;
}

async fn respond(request: &Request<Incoming>, keys: &Keys, clusters: &Clusters) -> Response<Body> {
    match keys.access(request.method(), request.uri(), request.headers()) {
        Access::Denied(code, why) => text(code, "text/plain; charset=utf-8", format!("{why}\n")),
        Access::Enter => {
            let mut response = redirect(request.uri().path());
            if let Ok(cookie) = HeaderValue::from_str(&keys.set_cookie()) {
                response.headers_mut().insert(SET_COOKIE, cookie);
            }
            response
        }
        Access::Granted => match granted(request, clusters).await {
            Ok(response) => response,
            Err(error) => page(
                StatusCode::BAD_GATEWAY,
                html::problem("This cannot be shown now", &error.to_string()),
            ),
        },
    }
}

async fn granted(
    request: &Request<Incoming>,
    clusters: &Clusters,
) -> Result<Response<Body>, ApiError> {
    Ok(match route(request.uri().path()) {
        Route::Style => text(StatusCode::OK, "text/css; charset=utf-8", html::STYLE),
        Route::Script => text(StatusCode::OK, "text/javascript; charset=utf-8", html::SCRIPT),
        Route::Runbook(code) => match runbook::about(code) {
            Some(own) => page(StatusCode::OK, html::runbook(code, own)),
            None => not_found("There is no such page of the runbook"),
        },
        Route::First => match clusters.first().await? {
            Some(name) => redirect(&format!("/clusters/{name}")),
            None => redirect("/clusters"),
        },
        Route::List => {
            let all = clusters.list().await?;
            page(StatusCode::OK, html::list(clusters.namespace(), &all))
        }
        Route::Cluster(name) => match clusters.pages(name).await? {
            Some(seen) => {
                let seen = seen.borrow().clone();
                page(StatusCode::OK, html::cluster(&seen.page, name, seen.version))
            }
            None => not_found("There is no such SearchCluster"),
        },
        Route::Events(name) => match clusters.pages(name).await? {
            Some(seen) => {
                let version = version(request.headers(), request.uri().query());
                answer(StatusCode::OK, KIND, events(seen, version))
            }
            None => not_found("There is no such SearchCluster"),
        },
        Route::Unknown => not_found("There is no such page"),
    })
}

/// The version that the browser has: of the last event, or else of the page.
fn version(headers: &HeaderMap, query: Option<&str>) -> Option<u64> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    last.or_else(|| query?.strip_prefix("since="))?.parse().ok()
}

fn page(code: StatusCode, document: String) -> Response<Body> {
    text(code, HTML, document)
}

fn not_found(what: &str) -> Response<Body> {
    page(StatusCode::NOT_FOUND, html::problem(what, "Begin again at the first page."))
}

/// The requested page.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Route<'a> {
    /// The only cluster, or the list.
    First,
    List,
    Cluster(&'a str),
    /// Events with the changes on the page of a cluster.
    Events(&'a str),
    Runbook(&'a str),
    Style,
    Script,
    Unknown,
}

fn route(path: &str) -> Route<'_> {
    match path {
        "/" => return Route::First,
        "/clusters" => return Route::List,
        "/style.css" => return Route::Style,
        "/live.js" => return Route::Script,
        _ => {}
    }
    if let Some(code) = path.strip_prefix("/runbook/") {
        return Route::Runbook(code);
    }
    let Some(rest) = path.strip_prefix("/clusters/") else { return Route::Unknown };
    match rest.strip_suffix("/events") {
        Some(name) if is_object_name(name) => Route::Events(name),
        None if is_object_name(rest) => Route::Cluster(rest),
        _ => Route::Unknown,
    }
}

/// Port and token that a request must show.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) port: u16,
    /// Token in the printed address, and then in a cookie.
    pub(crate) token: String,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Granted,
    /// The request has the token in its address: set the cookie, and redirect to the address without it.
    Enter,
    Denied(StatusCode, &'static str),
}

impl Keys {
    /// The address to open.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Name of the cookie, with the port, because cookies do not tell ports apart.
    fn cookie_name(&self) -> String {
        format!("stayput-{}", self.port)
    }

    /// The value of `Set-Cookie`.
    fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.token)
    }

    fn access(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Access {
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

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

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

const HTML: &str = "text/html; charset=utf-8";

fn answer(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in PROTECTION {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn text(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    answer(status, kind, Full::new(body.into()).boxed_unsync())
}

/// Redirects to another address of ours.
fn redirect(to: &str) -> Response<Body> {
    let mut response = text(StatusCode::SEE_OTHER, HTML, "");
    // Paths that we have made are valid values.
    if let Ok(value) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

const KIND: &str = "text/event-stream";

/// Interval of a comment while nothing changes, so that a reader that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// All events from now on. `version` is the version that the reader has.
pub(crate) fn events(seen: Receiver<Seen>, version: Option<u64>) -> Body {
    let has = |seen: &Seen| version == Some(seen.version);
    let sent = Some(seen.borrow().clone()).filter(has).map(|seen| seen.page);
    let stream = unfold((seen, sent, false), |(mut seen, sent, waits)| async move {
        if waits {
            match timeout(KEEP_ALIVE, seen.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some((frame(":\n\n".into()), (seen, sent, true))),
            }
        }
        let now = seen.borrow_and_update().clone();
        let text = event(sent.as_deref(), &now);
        Some((frame(text), (seen, Some(Arc::clone(&now.page)), true)))
    });
    StreamBody::new(stream).boxed_unsync()
}

fn frame(text: String) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(text.into()))
}

/// One event; a comment if nothing has changed.
fn event(before: Option<&Page>, now: &Seen) -> String {
    let changed: Vec<Change<'_>> = changes(before, &now.page);
    match serde_json::to_string(&changed) {
        Ok(json) if !changed.is_empty() => format!("id: {}\ndata: {json}\n\n", now.version),
        Ok(_) | Err(_) => ":\n\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves PAGE-2
    fn nothing_but_names_gets_to_the_apiserver() {
        assert_eq!(route("/"), Route::First);
        assert_eq!(route("/clusters/logs"), Route::Cluster("logs"));
        assert_eq!(route("/clusters/logs.eu-1/events"), Route::Events("logs.eu-1"));
        assert_eq!(route("/runbook/quorum"), Route::Runbook("quorum"));
        for path in [
            "/clusters/",
            "/clusters/..",
            "/clusters/../secrets",
            "/clusters/logs/status",
            "/clusters/a%2Fb",
            "/clusters/logs?x",
            "/clusters/..%2f/events",
            "/clusters//events",
            "/clusters/-a",
            "/clusters/A",
            "//",
            "/live.js/",
        ] {
            assert_eq!(route(path), Route::Unknown, "{path}");
        }
    }

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
