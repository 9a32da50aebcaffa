//! Answers browsers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, SET_COOKIE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::access::{Access, Keys};
use super::answer::{Body, HTML, answer, redirect, text};
use super::clusters::Clusters;
use super::events::{self, events};
use super::page::document;
use super::route::{Route, route};
use crate::apiserver::ApiError;
use crate::runbook;
use stayput_kube_access::connections::Connections;

/// Maximum number of connections. A browser takes six for each tab group; more at the same time are
/// not needed.
const MAX_CONNECTIONS: usize = 64;
/// Timeout for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until the future is dropped.
pub(super) async fn serve(listener: TcpListener, keys: Keys, clusters: Arc<Clusters>) {
    let keys = Arc::new(keys);
    let mut connections = Connections::new(MAX_CONNECTIONS);
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(Duration::from_secs(1)).await;
            continue;
        };
        let (keys, clusters) = (Arc::clone(&keys), Arc::clone(&clusters));
        connections.serve(peer.ip(), async move {
            let service = service_fn(move |request| {
                let (keys, clusters) = (Arc::clone(&keys), Arc::clone(&clusters));
                async move { Ok::<_, Infallible>(respond(&request, &keys, &clusters).await) }
            });
            // An error of one connection concerns only its browser.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
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
                document::problem("This cannot be shown now", &error.to_string()),
            ),
        },
    }
}

async fn granted(
    request: &Request<Incoming>,
    clusters: &Clusters,
) -> Result<Response<Body>, ApiError> {
    Ok(match route(request.uri().path()) {
        Route::Style => text(StatusCode::OK, "text/css; charset=utf-8", document::STYLE),
        Route::Script => text(StatusCode::OK, "text/javascript; charset=utf-8", document::SCRIPT),
        Route::Runbook(code) => match runbook::about(code) {
            Some(own) => page(StatusCode::OK, document::runbook(code, own)),
            None => not_found("There is no such page of the runbook"),
        },
        Route::First => match clusters.first().await? {
            Some(name) => redirect(&format!("/clusters/{name}")),
            None => redirect("/clusters"),
        },
        Route::List => {
            let all = clusters.list().await?;
            page(StatusCode::OK, document::list(clusters.namespace(), &all))
        }
        Route::Cluster(name) => match clusters.pages(name).await? {
            Some(seen) => {
                let seen = seen.borrow().clone();
                page(StatusCode::OK, document::cluster(&seen.page, name, seen.version))
            }
            None => not_found("There is no such SearchCluster"),
        },
        Route::Events(name) => match clusters.pages(name).await? {
            Some(seen) => {
                let version = version(request.headers(), request.uri().query());
                answer(StatusCode::OK, events::KIND, events(seen, version))
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
    page(StatusCode::NOT_FOUND, document::problem(what, "Begin again at the first page."))
}
