//! A fake manager: it answers from a script, on a thread of its own.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use stayput_api::{
    ConfigChoice, Cursor, Desired, Exit, ExitReason, LastRequest, Manager, Pod, RequestKind, Run,
    State, Status,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::wait::DEADLINE;

/// What to answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
    /// The sequence of the request that it answers.
    pub(crate) sequence: Option<u64>,
}

impl Reply {
    pub(crate) fn json(code: u16, body: impl serde::Serialize) -> Self {
        let body = serde_json::to_string(&body).expect("JSON");
        let content_type = if code < 400 { "application/json" } else { "application/problem+json" };
        Self { code, content_type, body, sequence: None }
    }

    pub(crate) fn of_request(self, sequence: u64) -> Self {
        Self { sequence: Some(sequence), ..self }
    }
}

/// The effect of one POST: statuses one after the other, then its answer.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) statuses: Vec<Status>,
    pub(crate) reply: Reply,
}

/// The whole script.
#[derive(Debug)]
pub(crate) enum Script {
    /// The same answer to everything.
    Always(Reply),
    /// An answer to each path.
    ByPath(fn(&str) -> Reply),
    /// Accepts requests and never answers.
    Silence,
    /// A status that changes with each act. A later status is only sent to a client that has seen
    /// the earlier one and waits for a change, so that a follower sees each.
    Story { first: Box<Status>, acts: VecDeque<Act> },
}

/// A running fake; ends when dropped.
#[derive(Debug)]
pub(crate) struct FakeManager {
    stage: Arc<Stage>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A request as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Method, path and query.
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

#[derive(Debug)]
struct Stage {
    script: Mutex<Script>,
    /// All statuses so far, and how many of them were sent.
    statuses: watch::Sender<(Vec<Status>, usize)>,
    seen: Mutex<Vec<Seen>>,
    /// The number of connections that have ended.
    ended: watch::Sender<usize>,
}

impl FakeManager {
    /// On a unix socket in `dir`.
    pub(crate) fn on_socket(dir: &Path, script: Script) -> (Self, PathBuf) {
        let path = dir.join("stayput.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a free path");
        listener.set_nonblocking(true).expect("a setting");
        let fake = Self::run(script, async move |stage| {
            let listener = UnixListener::from_std(listener).expect("a listener");
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                tokio::spawn(serve(stream, stage.clone()));
            }
        });
        (fake, path)
    }

    /// On a loopback port, with TLS if there is an acceptor.
    pub(crate) fn on_port(tls: Option<TlsAcceptor>, script: Script) -> (Self, u16) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a setting");
        let port = listener.local_addr().expect("an address").port();
        let fake = Self::run(script, async move |stage| {
            let listener = TcpListener::from_std(listener).expect("a listener");
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                stream.set_nodelay(true).expect("a setting");
                let (stage, tls) = (stage.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, stage).await,
                        // A client that does not trust the certificate closes the connection.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, stage).await;
                            }
                        }
                    }
                });
            }
        });
        (fake, port)
    }

    fn run(script: Script, accept: impl AsyncFnOnce(Arc<Stage>) + Send + 'static) -> Self {
        let first = match &script {
            Script::Story { first, .. } => vec![Status::clone(first)],
            Script::Always(_) | Script::ByPath(_) | Script::Silence => vec![],
        };
        let stage = Arc::new(Stage {
            script: Mutex::new(script),
            statuses: watch::Sender::new((first, 1)),
            seen: Mutex::default(),
            ended: watch::Sender::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let on_stage = stage.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    () = accept(on_stage) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { stage, stop: Some(stop), thread: Some(thread) }
    }

    /// Completes when this many connections have ended.
    pub(crate) async fn ended(&self, count: usize) {
        let mut ended = self.stage.ended.subscribe();
        let enough = ended.wait_for(|ended| *ended >= count);
        timeout(DEADLINE, enough).await.expect("in time").expect("a stage");
    }

    /// The script continues without a request.
    pub(crate) fn goes_on(&self, status: Status) {
        self.stage.statuses.send_modify(|(all, _)| all.push(status));
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.stage.seen.lock().expect("a lock").clone()
    }

    /// Requests for a change: their paths and bodies.
    pub(crate) fn posts(&self) -> Vec<(String, String)> {
        let posts = self
            .seen()
            .into_iter()
            .filter_map(|seen| Some((seen.line.strip_prefix("POST ")?.to_owned(), seen.body)));
        posts.collect()
    }
}

impl Drop for FakeManager {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the fake manager panicked");
        }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, stage: Arc<Stage>) {
    let on_stage = stage.clone();
    let service = service_fn(move |request| {
        let stage = on_stage.clone();
        async move { Ok::<_, Infallible>(stage.answer(request).await) }
    });
    // If a client closes the connection, the fake manager continues.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    stage.ended.send_modify(|ended| *ended += 1);
}

enum Next {
    Reply(Reply),
    Status { after: Option<String> },
    Act(Act),
    Never,
}

impl Stage {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let authorization = head.headers.get("authorization");
        self.seen.lock().expect("a lock").push(Seen {
            line: format!("{} {}", head.method, head.uri),
            authorization: authorization.map(|value| value.to_str().expect("ASCII").to_owned()),
            body: String::from_utf8(body.to_vec()).expect("UTF-8"),
        });
        let next = match &mut *self.script.lock().expect("a lock") {
            Script::Always(reply) => Next::Reply(reply.clone()),
            Script::ByPath(answer) => Next::Reply(answer(head.uri.path())),
            Script::Silence => Next::Never,
            Script::Story { .. } if head.uri.path() == "/readyz" => Next::Reply(self.readiness()),
            Script::Story { .. } if head.method == Method::GET => {
                let query = head.uri.query().unwrap_or_default();
                let after = query.split('&').find_map(|pair| pair.strip_prefix("after="));
                Next::Status { after: after.map(str::to_owned) }
            }
            Script::Story { acts, .. } => Next::Act(acts.pop_front().expect("an act")),
        };
        let reply = match next {
            Next::Reply(reply) => reply,
            Next::Never => pending().await,
            Next::Status { after: None } => self.show(|shown| shown),
            Next::Status { after: Some(after) } => {
                let mut statuses = self.statuses.subscribe();
                let is_news = |(all, shown): &(Vec<Status>, usize)| {
                    *shown < all.len() || all[shown - 1].cursor.0 != after
                };
                statuses.wait_for(is_news).await.expect("a story");
                let is_current = statuses.borrow_and_update().0.len();
                self.show(|shown| (shown + 1).min(is_current))
            }
            Next::Act(Act { statuses, reply }) => {
                self.statuses.send_modify(|(all, _)| all.extend(statuses));
                let mut watched = self.statuses.subscribe();
                let shown = |(all, shown): &(Vec<Status>, usize)| *shown == all.len();
                watched.wait_for(shown).await.expect("a story");
                reply
            }
        };
        let response =
            Response::builder().status(reply.code).header("content-type", reply.content_type);
        let response = match reply.sequence {
            Some(sequence) => response.header("stayput-sequence", sequence),
            None => response,
        };
        response.body(Full::new(Bytes::from(reply.body))).expect("a response")
    }

    /// As a manager without a grace says it.
    fn readiness(&self) -> Reply {
        let (all, shown) = &*self.statuses.borrow();
        let status = &all[shown - 1];
        let is_ready = status.state == State::Running && status.ready != Some(false);
        Reply::json(if is_ready { 200 } else { 503 }, json!({}))
    }

    fn show(&self, position: impl Fn(usize) -> usize) -> Reply {
        self.statuses.send_modify(|(_, shown)| *shown = position(*shown));
        let (all, shown) = &*self.statuses.borrow();
        Reply::json(200, &all[shown - 1])
    }
}

/// The status of an engine that runs and is ready, before any request.
pub(crate) fn running(cursor: u32) -> Status {
    Status {
        manager: Manager {
            version: "0.1.0".into(),
            upgraded_from: None,
            boot_id: "b7f1".into(),
            pid: 1,
            since: "2026-11-21T09:00:00Z".into(),
            durable: true,
            pod: Pod {
                namespace: Some("search".into()),
                name: Some("logs-2".into()),
                uid: Some("0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a".into()),
            },
            log_lines_lost: 0,
            errors: Vec::new(),
        },
        cursor: Cursor(format!("b7f1:{cursor}")),
        desired: Desired::Running,
        state: State::Running,
        ready: Some(true),
        ready_error: None,
        since: "2026-11-21T09:01:00Z".into(),
        sequence: 41,
        run: Some(Run {
            id: "6f2c".into(),
            pid: 23,
            started_at: "2026-11-21T09:00:01Z".into(),
            checksum: None,
            config: ConfigChoice::Mounted,
            config_uncertain: false,
            environment: None,
        }),
        archive: None,
        starts: 1,
        last_exit: None,
        last_request: None,
        config: None,
        environment: None,
        reason: None,
        resume: None,
    }
}

/// The engine while it stops, after stop request 42.
pub(crate) fn stopping(cursor: u32) -> Status {
    Status {
        desired: Desired::Stopped,
        state: State::Stopping,
        ready: None,
        sequence: 42,
        last_request: Some(LastRequest {
            sequence: 42,
            kind: RequestKind::Stop,
            accepted: true,
            by: "uid:0".into(),
            at: "2026-11-21T10:00:00Z".into(),
        }),
        ..running(cursor)
    }
}

/// The stopped engine, after stop request 42.
pub(crate) fn stopped(cursor: u32) -> Status {
    Status {
        state: State::Stopped,
        run: None,
        last_exit: Some(Exit {
            run: "6f2c".into(),
            code: Some(143),
            signal: None,
            reason: ExitReason::Stopped,
            took_ms: 812,
            ran_ms: 3_600_000,
            at: "2026-11-21T10:00:01Z".into(),
            stragglers: vec![],
            unnamed: 0,
            strangers: vec![],
        }),
        ..stopping(cursor)
    }
}
