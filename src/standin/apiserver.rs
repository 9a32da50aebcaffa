//! A stand-in for kube-apiserver: stateful, in memory, plain HTTP on loopback.
//!
//! It serves what `kube` clients and `kubectl` need of the Kubernetes API, with the codes, reasons
//! and versions of the real one; `tests/conformance` runs against both. There is no authorization.
//!
//! Left out: managed fields, so server-side apply creates objects, and merges into existing ones
//! only if forced; strategic merge patches with lists (501); tables (`kubectl get` falls back);
//! owner references; the graceful end of pods, except for the marks in their metadata; `format` and
//! CEL rules of schemas; admission; protobuf, which `kubectl create` sends (use `kubectl apply`).
//! A namespace is deleted together with its contents, as the namespace controller does it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use controls::Faults;
use token::Signer;
use verbs::State;

mod answer;
mod catalog;
mod controls;
mod failure;
mod kinds;
mod object;
mod schema;
mod selector;
mod serve;
mod store;
mod token;
mod verbs;

pub use controls::{Asked, Counts, Fault, How};

/// The version that it reports.
const VERSION: &str = "v1.34.2+standin";

/// The signals that wake up watches.
#[derive(Debug, Clone, Copy, Default)]
struct Signals {
    /// The newest version of the store.
    version: u64,
    /// How often bookmarks were requested.
    bookmarks: u64,
    /// How often all watches were broken off.
    cuts: u64,
    /// Delivery is stopped for now.
    held: bool,
}

/// Shared by all connections.
#[derive(Debug)]
struct Shared {
    url: String,
    state: Mutex<State>,
    faults: Mutex<Faults>,
    /// One permit for each held request that may go on.
    released: Semaphore,
    counts: Mutex<Counts>,
    signals: watch::Sender<Signals>,
    signer: Mutex<Signer>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signer(&self) -> MutexGuard<'_, Signer> {
        self.signer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the watches if there is something new.
    fn written(&self, state: &State) {
        let version = state.store.version();
        self.signals.send_if_modified(|signals| {
            let is_new = signals.version != version;
            signals.version = version;
            is_new
        });
    }
}

/// A running server; when dropped, it ends with all its connections.
#[derive(Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl ApiServer {
    /// Starts on a free port of loopback.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts on this address; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start_on(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let shared = Arc::new(Shared {
            url: format!("http://{}", listener.local_addr()?),
            state: Mutex::new(State::new()),
            faults: Mutex::default(),
            released: Semaphore::new(0),
            counts: Mutex::default(),
            signals: watch::Sender::default(),
            signer: Mutex::new(Signer::new()),
        });
        let serving = tokio::spawn(serve::serve(listener, Arc::clone(&shared)));
        Ok(Self { shared, serving })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// The configuration for `kube`; the namespace is `default`.
    pub fn config(&self) -> kube::Config {
        kube::Config::new(self.shared.url.parse().expect("an address and a port"))
    }

    /// A client of this server. Must be called on a runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::try_from(self.config()).expect("plain HTTP needs nothing")
    }

    /// A kubeconfig for `kubectl` and others (JSON, which is YAML).
    pub fn kubeconfig(&self) -> String {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stand-in",
            "clusters": [{"name": "stand-in", "cluster": {"server": self.shared.url}}],
            "users": [{"name": "anybody", "user": {}}],
            "contexts": [{"name": "stand-in", "context": {
                "cluster": "stand-in", "user": "anybody", "namespace": "default",
            }}],
        });
        format!("{config:#}\n")
    }

    /// The issuer of its tokens, for `iss`.
    pub fn issuer(&self) -> &'static str {
        token::ISSUER
    }

    /// The key set that its tokens are verified with, as `/openid/v1/jwks` answers it.
    pub fn key_set(&self) -> Value {
        self.shared.signer().key_set()
    }

    /// Signs with another key from now on, and publishes that one alone.
    pub fn rotate_keys(&self) {
        *self.shared.signer() = Signer::new();
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        self.shared.state().store.version()
    }

    /// Forgets all versions but the newest: lists and watches of older ones are answered 410.
    pub fn compact(&self) {
        self.shared.state().store.compact();
    }

    /// Breaks all watches off in the middle.
    pub fn cut_watches(&self) {
        self.shared.signals.send_modify(|signals| signals.cuts += 1);
    }

    /// Stops delivery to watches, or resumes it with everything since: clients fall behind.
    pub fn hold_watches(&self, held: bool) {
        self.shared.signals.send_modify(|signals| signals.held = held);
    }

    /// Sends a bookmark to every watch that accepts them.
    pub fn send_bookmarks(&self) {
        self.shared.signals.send_modify(|signals| signals.bookmarks += 1);
    }

    /// Injects a fault for the next requests that it applies to.
    pub fn inject(&self, fault: Fault) {
        self.shared.faults().add(fault);
    }

    /// Ends the faults that have not happened yet.
    pub fn clear_faults(&self) {
        self.shared.faults().clear();
    }

    /// Lets one request go on that is held by [`How::Hold`], now or later.
    pub fn release(&self) {
        self.shared.released.add_permits(1);
    }

    /// Whether every fault has been used up.
    pub fn is_faultless(&self) -> bool {
        self.shared.faults().is_empty()
    }

    /// Waits until every fault has been used up.
    pub async fn until_faultless(&self) {
        while !self.is_faultless() {
            tokio::task::yield_now().await;
        }
    }

    /// The requests so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts().clone()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
