//! Observes each engine all the time: the nodes it lists, its health, and whether allocation is
//! limited. Each answers from its local state (`local`), so none waits for another.
//!
//! The end of an engine's part is the last observation before the change, and its begin the first one
//! after it. So the engines' part is never too long, and ours never too short.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::now;
use crate::support::cluster::Rest;

/// Pause between two observations of one engine.
const PACE: Duration = Duration::from_millis(15);
/// Beside the setting of allocation while a restart limits it.
const MARKER: &str = "cluster.metadata.stayput";

/// One observation.
#[derive(Debug, Default)]
struct Observation {
    at: u64,
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
                let mut observations = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    observations.push(observe(node));
                    thread::sleep(PACE);
                }
                View(observations)
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

fn observe(node: Rest) -> Observation {
    let at = now();
    let get = |target: &str| {
        let answer = node.send("GET", target, None).ok()?;
        (answer.status == 200).then_some(answer.body)
    };
    let state = get("/_cluster/state/master_node,nodes?local=true").unwrap_or_default();
    let listed = match state["master_node"].is_string() {
        true => state["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values()),
        false => return Observation { at, ..Observation::default() },
    };
    let listed =
        listed.filter_map(|node| Some(node["ephemeral_id"].as_str()?.to_owned())).collect();
    let health = get("/_cluster/health?local=true").unwrap_or_default();
    let green = health["status"] == "green" && health["number_of_nodes"] == 3;
    let settings = get("/_cluster/settings?flat_settings=true&local=true");
    let limited = settings.map(|all| all["persistent"][MARKER].is_string());
    Observation { at, listed, green, limited }
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
        restored.map(|seen| seen.at).min().expect("it is restored before the restart ends")
    }

    fn earliest(&self, wished: impl Fn(&Observation) -> bool + Copy) -> Option<u64> {
        self.0.iter().filter_map(|view| view.last_before(wished)).min()
    }
}
