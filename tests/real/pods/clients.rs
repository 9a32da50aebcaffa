//! A client of a Service: a write and a search each tenth of a second, each on a connection
//! of its own and without retries, to the pods in turn that EndpointSlices have as ready. There is no
//! kube-proxy here; as by its default, the list is taken over at once, but at most once a second.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::door::Door;
use super::fixture::Fixture;
use super::nodes::NODES;
use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::process::Process;
use crate::support::wait::eventually;

const NAME: &str = "slices";
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two changes of kube-proxy's rules.
const PROXY_PAUSE: Duration = Duration::from_secs(1);

/// What became of the requests of one kind.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Requests {
    pub(super) sent: u32,
    /// The Service had no pod that was ready: on a busy machine the probes of all may fail at once.
    pub(super) unserved: u32,
    /// Without an answer, from a pod that is not ready in the newest slice: kube-proxy's rules lag.
    pub(super) stale: u32,
    /// Without a connection, or without an answer, from a pod that is ready in the newest slice.
    pub(super) refused: u32,
    /// Answered, but not carried out; a search also if not every shard answered.
    pub(super) failed: u32,
}

/// What became of all requests.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) writes: Requests,
    pub(super) searches: Requests,
    /// From when the first of some requests was sent that were not carried out, until a write and a
    /// search after it were.
    pub(super) failing: Duration,
    /// How long not all three pods were ready in the Service.
    pub(super) incomplete: Duration,
    /// Carried out: the numbers of these documents.
    pub(super) kept: Vec<u32>,
}

impl Requests {
    /// Requests without an answer, for any reason.
    pub(super) fn unanswered(&self) -> u32 {
        self.unserved + self.stale + self.refused
    }

    /// Sends a request to this address and counts it; returns whether it was carried out. `ready`:
    /// the addresses in the newest slice.
    fn send(
        &mut self,
        to: Option<&str>,
        ready: &BTreeSet<String>,
        request: impl Fn(&str) -> Option<bool>,
    ) -> bool {
        self.sent += 1;
        match to.map(request) {
            Some(Some(true)) => return true,
            Some(Some(false)) => self.failed += 1,
            Some(None) if to.is_some_and(|to| !ready.contains(to)) => self.stale += 1,
            Some(None) => self.refused += 1,
            None => self.unserved += 1,
        }
        false
    }
}

/// What the client and its thread tell each other.
#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    written: AtomicU32,
}

/// A client that sends requests until it is dropped; [`Clients::end`] tells what became of them.
pub(super) struct Clients {
    shared: Arc<Shared>,
    task: Option<JoinHandle<Count>>,
    _watch: Process,
    _directory: TempDir,
}

/// The Service that the client uses.
pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "logs", "namespace": "search" },
        "spec": { "selector": { "app": "logs" }, "ports": [{ "port": 9200 }] },
    })
}

impl Clients {
    /// Starts once all three pods are in the Service.
    pub(super) fn start(fixture: &Fixture, door: Door) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let kubectl = part("STAYPUT_KUBE").expect("it runs the cluster");
        let kubeconfig = fixture.admin().kubeconfig().to_str().expect("UTF-8");
        let selector = format!("--selector=kubernetes.io/service-name={}", door.service);
        let line = [
            kubectl.to_str().expect("UTF-8"),
            "kubectl",
            "--kubeconfig",
            kubeconfig,
            "--namespace=search",
            "get",
            "endpointslices",
            &selector,
            "--watch",
            "--output=json",
        ];
        let watch = Process::start(NAME, directory.path(), &line);
        let log = directory.path().join(format!("{NAME}.log"));
        let mut slice = Slice::open(&log);
        let all = || (slice.ready().len() == NODES.len()).then_some(());
        eventually("all pods are in the Service", all);
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let task = spawn(move || send(&door, slice, &theirs));
        Self { shared, task: Some(task), _watch: watch, _directory: directory }
    }

    /// How many documents were written until now.
    pub(super) fn written(&self) -> u32 {
        self.shared.written.load(Ordering::Relaxed)
    }

    pub(super) fn end(mut self) -> Count {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.task.take().expect("it is ended once").join().expect("no panic")
    }
}

impl Drop for Clients {
    /// A test that fails says what failed, and not that this client's file is gone.
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(task) = self.task.take() {
            let _ = task.join();
        }
    }
}

/// The slice of the Service, as the watch has printed it.
struct Slice {
    log: File,
    /// What is not a whole version yet.
    rest: Vec<u8>,
    ready: BTreeSet<String>,
}

impl Slice {
    fn open(log: &Path) -> Self {
        let log = File::open(log).expect("the watch has a log");
        Self { log, rest: Vec::new(), ready: BTreeSet::new() }
    }

    /// Addresses that the newest version has as ready.
    fn ready(&mut self) -> &BTreeSet<String> {
        self.log.read_to_end(&mut self.rest).expect("a log");
        let mut versions =
            serde_json::Deserializer::from_slice(&self.rest).into_iter::<EndpointSlice>();
        let mut end = 0;
        while let Some(Ok(version)) = versions.next() {
            self.ready = ready(version);
            end = versions.byte_offset();
        }
        self.rest.drain(..end);
        &self.ready
    }
}

fn ready(slice: EndpointSlice) -> BTreeSet<String> {
    let is_ready = |endpoint: &Endpoint| {
        endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
    };
    let endpoints = slice.endpoints.into_iter().filter(is_ready);
    endpoints.flat_map(|endpoint| endpoint.addresses).collect()
}

fn send(door: &Door, mut slice: Slice, shared: &Shared) -> Count {
    let mut count = Count::default();
    let (mut known, mut taken_over) = (slice.ready().clone(), Instant::now());
    let mut turn = 0_usize;
    let (mut looked, mut failing_since) = (Instant::now(), None::<Instant>);
    while !shared.is_over.load(Ordering::Relaxed) {
        let next = Instant::now() + PAUSE;
        let now = slice.ready();
        if now.len() < NODES.len() {
            count.incomplete += looked.elapsed();
        }
        looked = Instant::now();
        if *now != known && taken_over.elapsed() >= PROXY_PAUSE {
            (known, taken_over) = (now.clone(), Instant::now());
        }
        let (number, began) = (count.writes.sent, Instant::now());
        let mut address = || {
            turn = turn.wrapping_add(1);
            known.iter().nth(turn % known.len().max(1)).map(String::as_str)
        };
        let is_written = count.writes.send(address(), now, |address| write(door, address, number));
        let is_found = count.searches.send(address(), now, |address| search(door, address));
        if is_written {
            count.kept.push(number);
            shared.written.fetch_add(1, Ordering::Relaxed);
        }
        if is_written && is_found {
            count.failing += failing_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        } else {
            failing_since.get_or_insert(began);
        }
        sleep(next.saturating_duration_since(Instant::now()));
    }
    count.failing += failing_since.map_or(Duration::ZERO, |since| since.elapsed());
    count
}

/// Where the document with this number is.
pub(super) fn document(number: u32) -> String {
    format!("/load/_doc/client-{number}")
}

/// Whether it was carried out, if there is an answer.
fn write(door: &Door, address: &str, number: u32) -> Option<bool> {
    let body = json!({ "number": number });
    let answer = door.ask(address, ("PUT", &document(number)), Some(&body))?;
    Some(matches!(answer.status, 200 | 201))
}

/// Whether every shard answered, if there is an answer.
fn search(door: &Door, address: &str) -> Option<bool> {
    let answer = door.ask(address, ("POST", "/load/_search"), Some(&json!({ "size": 1 })))?;
    Some(answer.status == 200 && answer.body["_shards"]["failed"] == 0)
}
