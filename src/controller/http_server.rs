//! The HTTP servers: `/livez`, `/readyz` and `/metrics` for any address, and `GET
//! /snapshots/{namespace}/{name}`, the snapshot that the next decision would be made from, on the loopback
//! address alone: its clients are on this machine, or may forward a port of this pod. The task of the
//! SearchCluster makes it, as in a reconcile, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use stayput_http::server::{self, Limits};
use stayput_kube_access::names::{NoRandomNumbers, random_id};
use stayput_restart::Saved;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::clusters::Key;
use crate::context::Context;
use crate::effective_spec::EffectiveSpec;
use crate::metrics;
use crate::metrics::Metrics;
use crate::observe::Scope;

/// Time limit of sending a request and reading its answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits of a server that makes an answer within this time. One request for each connection: probes,
/// Prometheus and `kubectl stayput` need no more.
const fn limits(answer: Duration) -> Limits {
    let whole = Some(CONNECTION_TIMEOUT.saturating_add(answer));
    Limits { connections: 32, head: CONNECTION_TIMEOUT, whole }
}

/// Serves health and metrics until the future is dropped.
pub(super) async fn serve_probes(
    listener: TcpListener,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
) {
    let answer = move |request: Request<_>| ready(answer(&request, &health, &metrics));
    server::serve(listener, limits(Duration::ZERO), answer).await;
}

/// Serves snapshots until the future is dropped.
pub(super) async fn serve_snapshots(listener: TcpListener, queues: SnapshotQueues) {
    let answer = move |request| answer_snapshot(request, queues.clone());
    server::serve(listener, limits(SNAPSHOT_TIMEOUT), answer).await;
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

fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_owned())));
    *response.status_mut() = status;
    let plain = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Readiness, set by the tasks and read by the HTTP server.
#[derive(Debug, Default)]
pub(super) struct Health(AtomicBool);

impl Health {
    /// Sets the readiness: the watches have shown everything once, or another replica is the leader.
    pub(super) fn set_ready(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

const PREFIX: &str = "/snapshots/";

/// Answers one request.
async fn answer_snapshot(
    request: Request<Incoming>,
    queues: SnapshotQueues,
) -> Response<Full<Bytes>> {
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    if !is_local(&request) {
        let message = "only for requests to localhost by name\n";
        return text(StatusCode::FORBIDDEN, message);
    }
    let path = request.uri().path().strip_prefix(PREFIX).and_then(|path| path.split_once('/'));
    let Some((namespace, name)) = path.filter(|(_, name)| !name.contains('/')) else {
        return text(
            StatusCode::NOT_FOUND,
            "not found: the path is /snapshots/{namespace}/{name}\n",
        );
    };
    match queues.request(namespace, name).await {
        Ok(saved) => json(&saved),
        Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n")),
    }
}

/// True if the request names the loopback address as its host. A web page may make a browser send requests
/// here, but under the name of its own host.
fn is_local(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = host.and_then(|host| host.parse::<http::uri::Authority>().ok()) else {
        return false;
    };
    let host = authority.host().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn json(saved: &impl Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_vec(saved) {
        Ok(body) => {
            let mut response = Response::new(Full::new(Bytes::from(body)));
            let content_type = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        }
        Err(error) => {
            let message = format!("cannot encode the snapshot: {error}\n");
            text(StatusCode::INTERNAL_SERVER_ERROR, &message)
        }
    }
}

/// Limit of the requests that wait for the same SearchCluster.
const QUEUE: usize = 4;
/// Time limit of the reconcile under way and the observation after it.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(60);

/// A snapshot, or the reason why there is none.
pub(super) type Answer = Result<Box<Saved>, SnapshotError>;
/// Sender of the answer to one request.
pub(super) type Requester = oneshot::Sender<Answer>;

/// Reason why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    #[error(
        "SearchCluster {0} is not reconciled here: it does not exist, or it is in a namespace that \
         this reconciler does not watch, or another replica is the leader, or the watches are not \
         in sync yet"
    )]
    NotReconciledHere(String),
    #[error("{QUEUE} other requests wait for a snapshot of {0}: try again")]
    QueueFull(String),
    #[error("the task of {0} ended just now: try again")]
    TaskEnded(String),
    #[error("no snapshot of {0} within {seconds} s: try again", seconds = SNAPSHOT_TIMEOUT.as_secs())]
    Timeout(String),
    #[error("the SearchCluster is deleted")]
    Deleted,
    #[error("its spec is invalid: {0}")]
    InvalidSpec(String),
    #[error("{0}")]
    PodsUnlisted(String),
    #[error(transparent)]
    NoRandomNumbers(#[from] NoRandomNumbers),
}

type Open = Mutex<BTreeMap<Key, mpsc::Sender<Requester>>>;

/// The queues of all SearchClusters that are reconciled here.
#[derive(Debug, Default, Clone)]
pub(super) struct SnapshotQueues(Arc<Open>);

/// The queue of one SearchCluster; it closes when dropped.
#[derive(Debug)]
pub(super) struct SnapshotQueue {
    key: Key,
    requests: mpsc::Receiver<Requester>,
    queues: SnapshotQueues,
}

impl SnapshotQueues {
    /// Opens the queue of a SearchCluster.
    pub(super) fn open(&self, key: Key) -> SnapshotQueue {
        let (sender, requests) = mpsc::channel(QUEUE);
        self.lock().insert(key.clone(), sender);
        SnapshotQueue { key, requests, queues: self.clone() }
    }

    /// Asks the task of a SearchCluster for a snapshot.
    pub(super) async fn request(&self, namespace: &str, name: &str) -> Answer {
        let key = (namespace.to_owned(), name.to_owned());
        let cluster = format!("{namespace}/{name}");
        let Some(queue) = self.lock().get(&key).cloned() else {
            return Err(SnapshotError::NotReconciledHere(cluster));
        };
        let (requester, answer) = oneshot::channel();
        if queue.try_send(requester).is_err() {
            return Err(SnapshotError::QueueFull(cluster));
        }
        match timeout(SNAPSHOT_TIMEOUT, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(SnapshotError::TaskEnded(cluster)),
            Err(_) => Err(SnapshotError::Timeout(cluster)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, mpsc::Sender<Requester>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SnapshotQueue {
    /// The next request. Never completes while there is none.
    pub(super) async fn next(&mut self) -> Requester {
        match self.requests.recv().await {
            Some(requester) => requester,
            None => std::future::pending().await,
        }
    }
}

impl Drop for SnapshotQueue {
    fn drop(&mut self) {
        // A new task of the same SearchCluster may have opened its own queue already.
        let is_closed = |queue: &mut mpsc::Sender<Requester>| queue.is_closed();
        self.requests.close();
        let mut queues = self.queues.lock();
        if queues.get_mut(&self.key).is_some_and(is_closed) {
            queues.remove(&self.key);
        }
    }
}

/// Observes everything now. Reads the managers and the engine, and of the apiserver the Secrets, ConfigMaps
/// and owners.
pub(super) async fn snapshot(cx: &mut Context) -> Answer {
    let cluster = cx.cluster.newest().ok_or(SnapshotError::Deleted)?;
    // Fields that the apiserver drops do not matter here: nothing is written.
    let spec = EffectiveSpec::resolve(&cluster, cx.memory.last_valid.as_ref(), None)
        .map_err(|refusal| SnapshotError::InvalidSpec(refusal.message))?;
    if !cx.observer.pods.is_complete() {
        let error = cx.pod_watch.error().unwrap_or("its pods are not listed yet: try again");
        return Err(SnapshotError::PodsUnlisted(error.to_owned()));
    }
    let others = cx.cluster.others();
    let scope = Scope {
        cluster: &cluster,
        spec: &spec.spec,
        checked: &spec.checked,
        others: &others,
        must_read: &BTreeSet::new(),
        with_engine: true,
    };
    let snapshot = Box::pin(cx.observer.observe(&scope, random_id()?)).await;
    Ok(Box::new(Saved::new(snapshot, spec.checked.policy.clone())))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_snapshot_may_take_its_whole_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let queues = SnapshotQueues::default();
        let mut queue = queues.open(("search".into(), "logs".into()));
        let server = tokio::spawn(serve_snapshots(listener, queues));
        let mut client = TcpStream::connect(address).await.expect("a connection");
        let request = b"GET /snapshots/search/logs HTTP/1.1\r\nhost: localhost\r\n\r\n";
        client.write_all(request).await.expect("it is sent");
        let requester = queue.next().await;
        tokio::time::pause();
        tokio::time::sleep(SNAPSHOT_TIMEOUT - Duration::from_secs(1)).await;
        requester.send(Err(SnapshotError::Deleted)).expect("it is waited for");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.ends_with("the SearchCluster is deleted\n"), "{answer}");
        server.abort();
    }
}
