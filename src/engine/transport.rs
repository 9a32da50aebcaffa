//! Sends one call: its request, the endpoints to try, its timeouts and limits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};
use serde_json::Value;
use tokio::time::Instant;

use super::answer::{Answer, Asked};
use super::{Access, Endpoint, EngineError};
use crate::answer::Cause;
use stayput_http::https::{self, Bounds, ExchangeError, Kept, Target};

/// Time limit of connecting to one endpoint: the address of a deleted pod often does not refuse a connection,
/// it just never answers.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Limit of the body of an answer that is not a success, in bytes: its reason fits into them.
const MAX_REFUSAL: usize = 64 << 10;

/// Kind of an answer, by the parts that make it large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// An answer with neither nodes nor shards.
    Small,
    /// Some hundred bytes for each node, a few thousand where each node's decisions are listed.
    OfNodes,
    /// 92 bytes for each shard copy. The limit grows with the pods that the engine's owner runs: a single pod
    /// cannot fill our memory.
    OfShards,
}

impl Size {
    /// Limit of the answer of a cluster with this many pods, in bytes.
    const fn most(self, pods: usize) -> usize {
        /// 16 MiB, for 180,000 shard copies: the nodes of a SearchCluster may be a part of a larger cluster.
        const BASE: usize = 16 << 20;
        /// 512 KiB, for 5,700 shard copies on each pod.
        const OF_POD: usize = 512 << 10;
        /// 128 MiB, for 1.4 million shard copies.
        const LARGEST: usize = 128 << 20;
        match self {
            Self::Small => 1 << 20,
            Self::OfNodes => BASE,
            Self::OfShards => {
                let most = BASE.saturating_add(OF_POD.saturating_mul(pods));
                if most < LARGEST { most } else { LARGEST }
            }
        }
    }
}

/// Number of 401 answers to one call after which no further endpoint is asked. One may be of a node that has
/// not joined; a wrong password is wrong everywhere, and each answer may count as a login that failed: after
/// some of them many directories lock the user out.
const MAX_UNAUTHORIZED: usize = 2;

/// Time that a node waits for its master if another one has waited in vain just before. A node that knows its
/// master answers at once; a look at a cluster without any must not take that long for each node.
const NEXT_MASTER_TIMEOUT: Duration = Duration::from_millis(500);

/// Placeholder in a path for the time that the engine waits for its master: less than we wait for the answer,
/// so that the engine can report why it gave up.
pub(super) const MASTER_TIMEOUT: &str = "{master_timeout}";

/// One request, before it has an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Call {
    method: Method,
    path: String,
    body: Option<Value>,
    size: Size,
    timeout: Option<Duration>,
}

impl Call {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), None)
    }

    pub(super) fn read_with(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::GET, path.into(), Some(body))
    }

    pub(super) fn put(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::PUT, path.into(), Some(body))
    }

    pub(super) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path.into(), None)
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), None)
    }

    pub(super) fn options(path: impl Into<String>) -> Self {
        Self::new(Method::OPTIONS, path.into(), None)
    }

    const fn new(method: Method, path: String, body: Option<Value>) -> Self {
        Self { method, path, body, size: Size::Small, timeout: None }
    }

    /// Marks the answer as one that lists nodes.
    pub(super) const fn of_nodes(mut self) -> Self {
        self.size = Size::OfNodes;
        self
    }

    /// Marks the answer as one that lists shard copies, or indices.
    pub(super) const fn of_shards(mut self) -> Self {
        self.size = Size::OfShards;
        self
    }

    /// Sets another timeout than the client's.
    pub(super) const fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The request as recorded answers name it: its first line and its body.
    #[cfg(test)]
    pub(super) fn as_recorded(&self) -> (String, String) {
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        // The recorded requests waited for the master for three quarters of ten seconds.
        let path = self.path_with(Duration::from_millis(7_500));
        (format!("{} {path}", self.method), body)
    }

    fn path_with(&self, master_timeout: Duration) -> String {
        self.path.replace(MASTER_TIMEOUT, &format!("{}ms", master_timeout.as_millis()))
    }

    fn is_read(&self) -> bool {
        self.method.is_safe()
    }

    /// Method and path, such as `GET /_cluster/health`.
    fn what(&self) -> String {
        format!("{} {}", self.method, self.path.split('?').next().unwrap_or_default())
    }
}

/// Index of the endpoint that has answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct EndpointIndex(usize);

/// True if another endpoint may answer a read all the same. A node of Elasticsearch that has not joined knows
/// no user of the index `.security` (401), and one that is overloaded refuses alone (429). A node that waits
/// for its master in vain says 500, 503, or 429.
const fn is_answered_elsewhere(status: u16) -> bool {
    matches!(status, 401 | 429 | 500 | 502..=504)
}

/// The endpoints of a cluster, and the common parts of every call to them.
#[derive(Debug)]
pub(super) struct Transport {
    endpoints: Vec<Endpoint>,
    /// Targets of the endpoints, with the connections that are kept for reads.
    targets: Vec<Kept>,
    /// For each endpoint: true if it did not answer the last request.
    silent: Vec<AtomicBool>,
    /// Indices of the endpoints in the order in which they are asked; the one that answered last is the
    /// first.
    order: Mutex<Vec<usize>>,
    authorization: Option<HeaderValue>,
    shown: &'static str,
    timeout: Duration,
    /// Number of pods of the cluster.
    pods: AtomicUsize,
}

impl Transport {
    pub(super) fn new(
        endpoints: &[Endpoint],
        access: &Access,
        timeout: Duration,
    ) -> Result<Self, EngineError> {
        let targets: Result<Vec<Kept>, EngineError> =
            endpoints.iter().map(|endpoint| access.target(endpoint).map(Kept::new)).collect();
        let targets = targets?;
        if targets.is_empty() {
            let message = "the engine has no endpoint: no pod of this cluster has an address";
            return Err(EngineError::Unusable(message.to_owned().into()));
        }
        let authorization = access.header()?;
        let shown = access.shown();
        Ok(Self {
            endpoints: endpoints.to_vec(),
            silent: targets.iter().map(|_| AtomicBool::new(false)).collect(),
            order: Mutex::new((0..targets.len()).collect()),
            targets,
            authorization,
            shown,
            timeout,
            pods: AtomicUsize::new(0),
        })
    }

    pub(super) fn expect_pods(&self, pods: usize) {
        self.pods.store(pods, Ordering::Relaxed);
    }

    /// The endpoints that did not answer their last request: a process that hangs.
    pub(super) fn silent(&self) -> impl Iterator<Item = &Endpoint> {
        let is_silent = |at: &usize| self.silent[*at].load(Ordering::Relaxed);
        (0..self.endpoints.len()).filter(is_silent).map(|at| &self.endpoints[at])
    }

    /// Asks the endpoints in this order from now on. Connections are kept; the record of silent endpoints is
    /// not.
    pub(super) fn prefer(&self, best_first: &[Endpoint]) {
        let place = |at: &usize| best_first.iter().position(|one| *one == self.endpoints[*at]);
        self.order().sort_by_key(|at| place(at).unwrap_or(usize::MAX));
        self.silent.iter().for_each(|silent| silent.store(false, Ordering::Relaxed));
    }

    fn order(&self) -> MutexGuard<'_, Vec<usize>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask_first(&self, at: usize) {
        let mut order = self.order();
        if let Some(place) = order.iter().position(|one| *one == at) {
            order.rotate_left(place);
        }
    }

    fn ask_last(&self, at: usize) {
        self.order().sort_by_key(|one| *one == at);
    }

    /// Sends one call. If it could not be sent, it goes to the next endpoint. So does a read that was not
    /// answered, or that was answered as by a node that has not joined. All endpoints together have twice the
    /// time of one.
    ///
    /// Reads use kept connections. A write has one of its own: on a kept one it would not be known if the
    /// engine got it before it closed the connection.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, EngineError> {
        let order = self.order().clone();
        self.ask(call, order, |_| None).await.map(|(answer, _)| answer)
    }

    /// Reads a cluster state with the elected master in it. From Elasticsearch 9.2 on a node that has
    /// no master answers with the last state that it knows, and with none before it has joined: then
    /// the next endpoint is asked.
    pub(super) async fn send_led(
        &self,
        call: &Call,
    ) -> Result<(Answer, EndpointIndex), EngineError> {
        let order = self.order().clone();
        self.ask(call, order, Answer::without_master).await
    }

    /// Sends a read to this endpoint alone. If it does not answer, another one is the first from now on.
    pub(super) async fn send_to(
        &self,
        place: EndpointIndex,
        call: &Call,
    ) -> Result<Answer, EngineError> {
        let asked = self.ask(call, vec![place.0], |_| None).await.map(|(answer, _)| answer);
        if !asked.as_ref().is_ok_and(|answer| !is_answered_elsewhere(answer.status)) {
            self.ask_last(place.0);
        }
        asked
    }

    /// Asks these endpoints one after the other. A read goes on after an answer that has a `fault`.
    async fn ask(
        &self,
        call: &Call,
        order: Vec<usize>,
        fault: impl Fn(&Answer) -> Option<EngineError>,
    ) -> Result<(Answer, EndpointIndex), EngineError> {
        self.targets.iter().for_each(Kept::close_old);
        let timeout = call.timeout.unwrap_or(self.timeout);
        let deadline = Instant::now() + timeout * 2;
        let mut failures = Failures::new(call.what());
        let (mut unauthorized, mut waited_for_master) = (0, false);
        for (before, at) in order.into_iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                failures.note("the other endpoints were not tried: the deadline passed".into());
                break;
            }
            let kept = &self.targets[at];
            let target = kept.target();
            let whole = timeout.min(left);
            let answer = call.size.most(self.pods.load(Ordering::Relaxed));
            let bounds = Bounds { connect: CONNECT_TIMEOUT, whole, answer, refusal: MAX_REFUSAL };
            let request = self.request(call, waited_for_master)?;
            let asked = Instant::now();
            let response = if call.is_read() {
                Box::pin(kept.exchange(request, bounds)).await
            } else {
                Box::pin(https::exchange(target, request, bounds)).await
            };
            match response {
                Ok(response) => {
                    self.silent[at].store(false, Ordering::Relaxed);
                    let answer = self.answer(call, target, response);
                    let fault = fault(&answer);
                    if call.is_read() && (is_answered_elsewhere(answer.status) || fault.is_some()) {
                        if answer.status == 401 {
                            unauthorized += 1;
                            // The next call first asks the endpoints that this one does not get to.
                            self.ask_last(at);
                        }
                        // Other endpoints refuse at once, such as one that is overloaded: then the next one
                        // may still have to wait.
                        waited_for_master |= asked.elapsed() >= self.timeout / 4;
                        failures.refused(fault.map_or(Ok((answer, EndpointIndex(at))), Err));
                        if unauthorized == MAX_UNAUTHORIZED {
                            break;
                        }
                        continue;
                    }
                    if before > 0 {
                        self.ask_first(at);
                    }
                    return Ok((answer, EndpointIndex(at)));
                }
                Err(error) => {
                    let sent = matches!(error, ExchangeError::Unanswered(_));
                    self.silent[at].store(sent, Ordering::Relaxed);
                    failures.failed(target, error);
                    if sent && !call.is_read() {
                        break;
                    }
                }
            }
        }
        failures.into_result()
    }

    fn answer(&self, call: &Call, target: &Target, response: Response<Bytes>) -> Answer {
        let allow = response.headers().get(ALLOW).and_then(|value| value.to_str().ok());
        Answer {
            status: response.status().as_u16(),
            allow: allow.map(str::to_owned),
            asked: Asked { what: call.what(), endpoint: target.to_string(), shown: self.shown },
            body: response.into_body(),
        }
    }

    /// Builds the request. `waited_for_master`: another endpoint has waited for its master in vain.
    fn request(&self, call: &Call, waited_for_master: bool) -> Result<Request<Bytes>, EngineError> {
        let master_timeout =
            if waited_for_master { NEXT_MASTER_TIMEOUT } else { self.timeout / 4 * 3 };
        let mut builder = Request::builder()
            .method(call.method.clone())
            .uri(call.path_with(master_timeout))
            .header(ACCEPT, "application/json");
        if let Some(value) = &self.authorization {
            builder = builder.header(AUTHORIZATION, value.clone());
        }
        let body = match &call.body {
            Some(body) => {
                builder = builder.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        builder.body(body).map_err(|error| {
            let message = format!("cannot build the request {}: {error}", call.what());
            EngineError::Unusable(Cause::new(message, error))
        })
    }
}

/// The failures of all endpoints.
#[derive(Debug)]
struct Failures {
    what: String,
    messages: Vec<String>,
    worst: Kind,
    /// Error of the last endpoint that failed.
    last: Option<ExchangeError>,
    /// The first answer that was not taken, or its error.
    refused: Option<Result<(Answer, EndpointIndex), EngineError>>,
}

/// Known fate of the request; of several failures the last variant wins.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NotReachable,
    Untrusted,
    Unanswered,
}

/// Limit of the endpoints that the message names one by one.
const MAX_NAMED: usize = 3;

impl Failures {
    const fn new(what: String) -> Self {
        Self { what, messages: vec![], worst: Kind::NotReachable, last: None, refused: None }
    }

    fn note(&mut self, message: String) {
        self.messages.push(message);
    }

    fn refused(&mut self, answer: Result<(Answer, EndpointIndex), EngineError>) {
        self.refused.get_or_insert(answer);
    }

    fn failed(&mut self, target: &Target, error: ExchangeError) {
        let (kind, message) = match &error {
            ExchangeError::NotConnected(error) => {
                (Kind::NotReachable, format!("cannot connect to {target}: {error}"))
            }
            ExchangeError::Untrusted(why) => {
                (Kind::Untrusted, format!("the certificate of {target} is not trusted: {why}"))
            }
            ExchangeError::Unanswered(why) => (Kind::Unanswered, format!("{target}: {why}")),
        };
        self.note(message);
        self.last = Some(error);
        self.worst = kind.max(std::mem::replace(&mut self.worst, Kind::NotReachable));
    }

    /// An engine's own answer, if there is one; otherwise the failures of all endpoints.
    fn into_result(self) -> Result<(Answer, EndpointIndex), EngineError> {
        if let Some(refused) = self.refused {
            return refused;
        }
        let Self { what, mut messages, worst, last, .. } = self;
        let more = messages.len().saturating_sub(MAX_NAMED);
        messages.truncate(MAX_NAMED);
        let mut all = messages.join("; ");
        if more > 0 {
            all = format!("{all}; and {more} more endpoints");
        }
        let cause = |message: String| match last {
            Some(error) => Cause::new(message, error),
            None => message.into(),
        };
        Err(match worst {
            Kind::NotReachable => EngineError::NotReachable(cause(format!(
                "cannot reach an engine for {what}: {all}"
            ))),
            Kind::Untrusted => {
                EngineError::Untrusted(cause(format!("cannot trust an engine for {what}: {all}")))
            }
            Kind::Unanswered => {
                EngineError::Unanswered(cause(format!("no engine answered {what}: {all}")))
            }
        })
    }
}
