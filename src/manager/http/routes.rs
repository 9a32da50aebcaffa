//! The routes: path, method, access and handler, each on one line. Nothing else is served.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, Response, Version};

use super::auth::{Caller, Peer, identify};
use super::context::{Context, ListenerKind};
use super::csrf;
use super::handlers::{self, ControlKind, ControlRequest};
use super::key_files::Keys;
use super::places::OpenRequest;
use super::respond::Answer;
use stayput_api::Code;
use stayput_api::Refusal;

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
pub(super) async fn answer<B>(
    context: &Arc<Context>,
    listener: ListenerKind,
    peer: &Peer,
    open: &OpenRequest<'_>,
    request: Request<B>,
) -> Response<Full<Bytes>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
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
        csrf::refuse_web_pages(request)?;
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

async fn handle<B>(
    context: &Arc<Context>,
    listener: ListenerKind,
    handler: Handler,
    caller: Option<Caller>,
    request: Request<B>,
) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
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
