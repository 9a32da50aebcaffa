//! The routes: path, method, access and handler, each on one line; nothing else is served. And the
//! parts of requests and answers that all routes share.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode, Version};

use super::auth::{Caller, Peer, identify};
use super::handlers::{self, ControlKind, ControlRequest};
use super::key_files::Keys;
use super::{Context, ListenerKind};
use stayput_api::{Code, Problem, Refusal, SEQUENCE_HEADER, Span, Status, TIMES_AHEAD_HEADER};
use stayput_http::server::OpenRequest;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// All callers: the answer has no details.
    Open,
    /// Callers that may read the status.
    Read,
    /// Callers that may read the status, or all callers with `--open-metrics`.
    Metrics,
    /// Callers that may stop and start the engine.
    Control,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The exact path.
    pub path: &'static str,
    /// `GET`, which includes `HEAD`, or `POST`.
    pub method: &'static str,
    /// Callers that may use the route.
    pub access: Access,
    handler: Handler,
}

#[derive(Debug, Clone, Copy)]
enum Handler {
    Status,
    Control(ControlKind),
    Livez,
    Readyz,
    Metrics,
}

/// Every route.
#[rustfmt::skip]
pub const ROUTES: [Route; 8] = [
    Route { path: "/es/status", method: "GET",  access: Access::Read,    handler: Handler::Status },
    Route { path: "/es/stop",   method: "POST", access: Access::Control, handler: Handler::Control(ControlKind::Stop) },
    Route { path: "/es/start",  method: "POST", access: Access::Control, handler: Handler::Control(ControlKind::Start) },
    Route { path: "/es/drain",  method: "POST", access: Access::Control, handler: Handler::Control(ControlKind::Drain) },
    Route { path: "/es/upgrade", method: "POST", access: Access::Control, handler: Handler::Control(ControlKind::Upgrade) },
    Route { path: "/livez",     method: "GET",  access: Access::Open,    handler: Handler::Livez },
    Route { path: "/readyz",    method: "GET",  access: Access::Open,    handler: Handler::Readyz },
    Route { path: "/metrics",   method: "GET",  access: Access::Metrics, handler: Handler::Metrics },
];

/// Answers a request that came over a connection of `peer`.
pub(super) async fn answer(
    context: &Arc<Context>,
    listener: ListenerKind,
    peer: &Peer,
    open: &OpenRequest<'_>,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    if !names_one_host(&request) {
        return Answer::bad_request().response;
    }
    // Labels are from this table, never from the request: callers cannot create series.
    let method = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "other",
    };
    let route = ROUTES.iter().find(|route| route.path == request.uri().path());
    let answer = match route {
        None => {
            let message = "the routes are /es/status, /es/stop, /es/start, /es/drain, /es/upgrade, \
                          /livez, /readyz and /metrics";
            Answer::problem(Refusal::new(Code::NotFound, message), None)
        }
        Some(route) if method != route.method && (route.method, method) != ("GET", "HEAD") => {
            Answer::method_not_allowed(if route.method == "GET" { "GET, HEAD" } else { "POST" })
        }
        Some(route) => {
            let by_key = matches!(peer, Peer::Certified { .. })
                || request.headers().contains_key(AUTHORIZATION);
            let keys = if by_key && !is_open(context, route) {
                context.keys.checked().await
            } else {
                context.keys.in_force()
            };
            match authorize(context, &keys, peer, route, &request) {
                Ok(caller) => {
                    if caller.is_some() {
                        open.has_credentials();
                    }
                    handle(context, listener, route.handler, caller, request).await
                }
                Err(refusal) => Answer::problem(refusal, None),
            }
        }
    };
    context.metrics.count_request(
        route.map_or("other", |route| route.path),
        method,
        answer.response.status().as_u16(),
        answer.code.map_or("", Code::as_str),
    );
    answer.response
}

/// True if the request names its host once, as HTTP/1.1 demands: with two, a proxy and this manager
/// may each mean another one.
fn names_one_host<B>(request: &Request<B>) -> bool {
    request.version() < Version::HTTP_11 || request.headers().get_all(HOST).iter().count() == 1
}

fn is_open(context: &Context, route: &Route) -> bool {
    match route.access {
        Access::Open => true,
        Access::Metrics => context.open_metrics,
        Access::Read | Access::Control => false,
    }
}

/// The caller; `None` on a route that needs no credentials.
fn authorize<B>(
    context: &Context,
    keys: &Keys,
    peer: &Peer,
    route: &Route,
    request: &Request<B>,
) -> Result<Option<Caller>, Refusal> {
    if is_open(context, route) {
        return Ok(None);
    }
    if matches!(peer, Peer::AuthDisabled) {
        refuse_web_pages(request)?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let peer = match peer {
        // The CA was replaced while the connection was open.
        Peer::Certified { client_ca, .. } if keys.client_ca != Some(*client_ca) => &Peer::Unknown,
        peer => peer,
    };
    let caller = identify(peer, request.headers(), &keys.tokens, now).map_err(|rejection| {
        if let Some(more) = context.refusals.admit(rejection.check, Instant::now()) {
            tracing::info!(route = route.path, reason = %rejection, more = (more > 0).then_some(more), "credentials refused");
        }
        // Always the same message: naming the failed check would help attackers. Who may read the
        // log learns it there.
        Refusal::new(
            Code::Unauthenticated,
            "send a bearer token made for this manager, or use an allowed client certificate; the \
             manager's log says what was wrong",
        )
    })?;
    let (may, needed) = match route.access {
        Access::Control => (caller.scopes.may_control(), "es:control"),
        Access::Open | Access::Read | Access::Metrics => (caller.scopes.may_read(), "es:read"),
    };
    if !may {
        tracing::debug!(route = route.path, by = %caller.subject, needed, "scope missing");
        let message = format!("{} needs the scope {needed}, which is not granted", route.path);
        return Err(Refusal::new(Code::Forbidden, message));
    }
    Ok(Some(caller))
}

async fn handle(
    context: &Arc<Context>,
    listener: ListenerKind,
    handler: Handler,
    caller: Option<Caller>,
    request: Request<Incoming>,
) -> Answer {
    let (parts, body) = request.into_parts();
    let query = parts.uri.query();
    let answer = match handler {
        Handler::Status => handlers::status(context, listener, query).await,
        Handler::Control(kind) => {
            let by = caller.as_ref().map_or_else(String::new, |caller| caller.subject.to_string());
            let sent = ControlRequest { kind, listener, by, query, body };
            handlers::control(context, sent).await
        }
        Handler::Livez => Ok(handlers::livez(context).await),
        Handler::Readyz => Ok(handlers::readyz(context).await),
        Handler::Metrics => Ok(handlers::metrics(context)),
    };
    // A caller of a route that needs credentials may read the status: control includes read.
    answer.unwrap_or_else(|refusal| {
        Answer::problem(refusal, caller.is_some().then(|| context.handle.status()).as_deref())
    })
}

/// The parameters of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of the URL after the question mark.
    ///
    /// # Errors
    /// Names the parameter that is unknown, doubled or not readable.
    pub(super) fn parse(raw: Option<&str>, known: &[&str]) -> Result<Self, Refusal> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(name), decode(value)) else {
                return Err(refuse(format!("the query part {pair:?} is not percent-encoded text")));
            };
            if !known.contains(&name.as_str()) {
                return Err(refuse(if known.is_empty() {
                    format!("{name:?} is not known: this route takes no query parameters")
                } else {
                    format!("{name:?} is not known: use {}", known.join(", "))
                }));
            }
            if parameters.iter().any(|(own, _)| *own == name) {
                return Err(refuse(format!("{name:?} is given twice: give it once")));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that is a length of time.
    ///
    /// # Errors
    /// Names the parameter and what would be accepted.
    pub(super) fn span(&self, name: &str) -> Result<Option<Duration>, Refusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let span = Span::parse(text).map_err(|error| refuse(format!("{name}: {error}")))?;
        Ok(Some(span.to_duration()))
    }

    /// The `wait` of a request. A longer one than `limit` is refused before anything is done: it
    /// could only be cut short, and the answer would look as if its time were over.
    ///
    /// # Errors
    /// The errors of [`Query::span`].
    pub(super) fn wait(&self, limit: Duration) -> Result<Option<Duration>, Refusal> {
        match self.span("wait")? {
            Some(wait) if wait > limit => Err(refuse(format!(
                "wait: {:?} is longer than {}, the longest that one request may wait, and nothing \
                 was done: write at most that; to wait on after a 202, send the same request with \
                 the `sequence` of the answer",
                self.text("wait").unwrap_or_default(),
                humantime::format_duration(limit),
            ))),
            wait => Ok(wait),
        }
    }
}

fn refuse(message: String) -> Refusal {
    // It repeats what was sent, so its length is limited.
    Refusal::new(Code::InvalidQuery, message.chars().take(300).collect::<String>())
}

/// Undoes percent-encoding and `+`; `None` if the result is not text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// An answer, and its problem code for the metrics.
pub(super) struct Answer {
    pub(super) response: Response<Full<Bytes>>,
    pub(super) code: Option<Code>,
}

impl Answer {
    fn new(status: StatusCode, media_type: &'static str, body: Bytes) -> Self {
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let answer = Self { response, code: None };
        let answer = answer.with(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if media_type.is_empty() {
            return answer;
        }
        answer.with(CONTENT_TYPE, HeaderValue::from_static(media_type))
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.response.headers_mut().insert(name, value);
        self
    }

    /// An answer with serialized JSON.
    pub(super) fn json(status: StatusCode, body: Bytes) -> Self {
        Self::new(status, "application/json", body)
    }

    pub(super) fn text(status: StatusCode, media_type: &'static str, body: String) -> Self {
        Self::new(status, media_type, Bytes::from(body))
    }

    /// The answer to a probe. No details, because the route needs no credentials.
    pub(super) fn probe(holds: bool) -> Self {
        let (status, word) = if holds {
            (StatusCode::OK, &b"ok\n"[..])
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, &b"no\n"[..])
        };
        Self::new(status, "text/plain; charset=utf-8", Bytes::from_static(word))
    }

    /// The answer that hyper gives to something that is not a request. The connection is closed.
    pub(super) fn bad_request() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "", Bytes::new())
            .with(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT, "", Bytes::new())
    }

    /// A problem document; `current` only for callers who may read the status.
    pub(super) fn problem(refusal: Refusal, current: Option<&Status>) -> Self {
        let mut problem = Problem::new(refusal.code, refusal.message);
        problem.current = current.cloned().map(Box::new);
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Strings, numbers and bools only: serializing them does not fail.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut answer = Self::new(status, "application/problem+json", Bytes::from(body));
        answer.code = Some(refusal.code);
        match refusal.code {
            Code::Unauthenticated => {
                answer.with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            // The rest of the body will not be read.
            Code::RequestTimeout | Code::BodyTooLarge => {
                answer.with(CONNECTION, HeaderValue::from_static("close"))
            }
            Code::TooManyWaiting => answer.with(RETRY_AFTER, HeaderValue::from_static("1")),
            _ => answer,
        }
    }

    /// Notes in headers that the caller waited for less than it asked for: 202 alone would mean
    /// that its time is over.
    pub(super) fn cut_short(self, why: &'static str) -> Self {
        self.with(HeaderName::from_static("stayput-wait-cut-short"), HeaderValue::from_static(why))
            .with(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Names the request of this answer in a header: the status may be about a later one.
    pub(super) fn of_request(self, sequence: u64) -> Self {
        self.with(HeaderName::from_static(SEQUENCE_HEADER), HeaderValue::from(sequence))
    }

    /// Adds the difference of clocks by which the times in a status are to be read, in milliseconds.
    pub(super) fn with_times_ahead(self, milliseconds: i64) -> Self {
        self.with(HeaderName::from_static(TIMES_AHEAD_HEADER), HeaderValue::from(milliseconds))
    }

    /// 405, with the methods of the route.
    pub(super) fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("this route takes {allow}");
        Self::problem(Refusal::new(Code::MethodNotAllowed, message), None)
            .with(ALLOW, HeaderValue::from_static(allow))
    }
}

// Refuses requests of web pages at a listener without authentication (`--insecure-no-auth`).
//
// Such a listener accepts every program on this machine, also the browser, and so every page it
// shows: a page can send simple requests to any address (CSRF), and can let its own name resolve to
// this machine (DNS rebinding). Both are recognized: a page cannot leave out `Origin`, nor choose
// `Host`.

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
mod tests;
