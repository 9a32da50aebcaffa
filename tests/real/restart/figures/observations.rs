//! Observes each engine all the time: the nodes it lists, its health, and whether allocation is
//! limited. Each answers from its local state (`local`), so none waits for another. One connection is
//! kept for each, so that the engines have little work with it.
//!
//! The end of an engine's part is the last observation before the change, and its begin the first one
//! after it. So the engines' part is never too long, and ours never too short.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::Request;
use hyper::body::Bytes;
use serde_json::Value;
use stayput_http::https::{Bounds, Kept, Target};
use tokio::runtime;

use super::now;
use crate::support::cluster::Rest;

/// Pause between two observations of one engine.
const PACE: Duration = Duration::from_millis(10);
/// For one answer.
const BOUNDS: Bounds = Bounds {
    connect: Duration::from_secs(1),
    whole: Duration::from_secs(10),
    answer: 1 << 20,
    refusal: 1 << 20,
};
/// Beside the setting of allocation while a restart limits it.
const MARKER: &str = "cluster.metadata.stayput";

/// One observation.
#[derive(Debug, Default)]
struct Observation {
    /// Before the first request, and after the last answer.
    at: u64,
    until: u64,
    /// Ephemeral ids of the nodes in the cluster; none if it does not answer or has no master.
    listed: BTreeSet<String>,
    green: bool,
    /// Whether the setting has our marker; none if it does not answer.
    limited: Option<bool>,
}

/// All observations of one engine.
#[derive(Debug)]
pub(super) struct View(Vec<Observation>);

/// The views of some engines.
pub(super) struct Views<'a>(Vec<&'a View>);

/// Threads that observe until [`Observations::end`].
pub(super) struct Observations {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<View>>,
}

impl Observations {
    pub(super) fn start(nodes: &[Rest]) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let follow = |node: Rest| {
            let is_over = ended.clone();
            thread::spawn(move || {
                let target = Target::http(&node.address.to_string(), node.port).expect("a target");
                let kept = Kept::new(target);
                let runtime = runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(async {
                    let mut observations = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        observations.push(observe(&kept).await);
                        tokio::time::sleep(PACE).await;
                    }
                    View(observations)
                })
            })
        };
        let threads = nodes.iter().copied().map(follow).collect();
        Self { ended, threads }
    }

    /// The views, in the nodes' order.
    pub(super) fn end(self) -> Vec<View> {
        self.ended.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("the observer ends")).collect()
    }
}

async fn observe(engine: &Kept) -> Observation {
    let at = now();
    let state = get(engine, "/_cluster/state/master_node,nodes?local=true").await;
    let state = state.unwrap_or_default();
    let listed = if state["master_node"].is_string() {
        state["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values())
    } else {
        return Observation { at, until: now(), ..Observation::default() };
    };
    let listed =
        listed.filter_map(|node| Some(node["ephemeral_id"].as_str()?.to_owned())).collect();
    let health = get(engine, "/_cluster/health?local=true").await.unwrap_or_default();
    let green = health["status"] == "green" && health["number_of_nodes"] == 3;
    let settings = get(engine, "/_cluster/settings?flat_settings=true&local=true").await;
    let limited = settings.map(|all| all["persistent"][MARKER].is_string());
    Observation { at, until: now(), listed, green, limited }
}

/// Its answer; none if there is none, or another than 200.
async fn get(engine: &Kept, target: &str) -> Option<Value> {
    let request = Request::get(target).body(Bytes::new()).expect("a request");
    let answer = engine.exchange(request, BOUNDS).await.ok()?;
    let body = (answer.status() == 200).then_some(answer.into_body())?;
    serde_json::from_slice(&body).ok()
}

impl View {
    /// The last observation before the first one that is `wished`; none if there is none.
    fn last_before(&self, wished: impl Fn(&Observation) -> bool) -> Option<u64> {
        let first = self.0.iter().position(wished)?;
        Some(self.0[first.saturating_sub(1)].at)
    }
}

impl<'a> Views<'a> {
    pub(super) fn all(views: &'a [View]) -> Self {
        Self(views.iter().collect())
    }

    /// The views of all but one.
    pub(super) fn without(views: &'a [View], one: usize) -> Self {
        Self(views.iter().enumerate().filter(|(at, _)| *at != one).map(|(_, view)| view).collect())
    }

    /// Until the first of them lists this process.
    pub(super) fn until_listed(&self, process: &str) -> u64 {
        self.earliest(|observation| observation.listed.contains(process)).expect("it has joined")
    }

    /// Until the last of them lists this process: the elected master, which applies a state when the others
    /// have done so.
    pub(super) fn until_all_list(&self, process: &str) -> u64 {
        let listed = |view: &&View| view.last_before(|seen| seen.listed.contains(process));
        self.0.iter().filter_map(listed).max().expect("it has joined")
    }

    /// Until the first of them is green, from this time on; none if the observations ended before.
    pub(super) fn until_green(&self, from: u64) -> Option<u64> {
        self.earliest(|observation| observation.at >= from && observation.green)
    }

    /// When allocation was first seen without our limit, from this time on.
    pub(super) fn since_restored(&self, from: u64) -> u64 {
        let all = self.0.iter().flat_map(|view| &view.0);
        let restored = all.filter(|seen| seen.at >= from && seen.limited == Some(false));
        restored.map(|seen| seen.until).min().expect("it is restored before the restart ends")
    }

    fn earliest(&self, wished: impl Fn(&Observation) -> bool + Copy) -> Option<u64> {
        self.0.iter().filter_map(|view| view.last_before(wished)).min()
    }
}
