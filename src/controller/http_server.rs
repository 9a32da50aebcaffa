//! The HTTP server for any address, and the answers of `/livez`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::health::Health;
use super::metrics::{self, Metrics};
use stayput_kube_access::connections::Connections;

/// Limit of the connections at the same time; more are not needed.
const MAX_CONNECTIONS: usize = 32;
/// Time limit of a connection, from its beginning until its answer has been read.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves health and metrics until the future is dropped.
pub(super) async fn serve_probes(
    listener: TcpListener,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
) {
    serve(listener, move |request| ready(answer(&request, &health, &metrics))).await;
}

/// Serves until the future is dropped.
pub(super) async fn serve<F>(
    listener: TcpListener,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let mut connections = Connections::new(MAX_CONNECTIONS);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let answer = answer.clone();
        connections.serve(peer.ip(), async move {
            let answer = service_fn(move |request| answer(request).map(Ok::<_, Infallible>));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                // One request each: probes and Prometheus need no more.
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // An error of one connection concerns only its client.
            let _ = timeout(CONNECTION_TIMEOUT, connection).await;
        });
    }
}

fn answer(
    request: &Request<Incoming>,
    health: &Health,
    metrics: &Metrics,
) -> Response<Full<Bytes>> {
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    match request.uri().path() {
        // An answer shows that the only thread works. A reconcile that hangs is given up by its own task.
        "/livez" => text(StatusCode::OK, "ok\n"),
        "/readyz" if health.is_ready() => text(StatusCode::OK, "ok\n"),
        "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "the watches are not in sync yet\n"),
        "/metrics" => {
            let mut response = text(StatusCode::OK, &metrics.scrape());
            let content_type = hyper::header::HeaderValue::from_static(metrics::CONTENT_TYPE);
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        }
        _ => text(StatusCode::NOT_FOUND, "not found: the paths are /livez, /readyz and /metrics\n"),
    }
}

pub(super) fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_owned())));
    *response.status_mut() = status;
    let plain = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
