//! Every metric by name.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The media type of [`Metrics::scrape`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From a second to half an hour: a phase waits for shards, or for its deadline.
const SECONDS: [f64; 11] = [0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0];

/// Whom a request is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Apiserver,
    Manager,
    Engine,
}

impl Side {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Apiserver => "apiserver",
            Self::Manager => "manager",
            Self::Engine => "engine",
        }
    }
}

/// What is counted here, and what each SearchCluster shows last.
#[derive(Debug)]
pub(super) struct Metrics {
    requests: Family<Request, Counter>,
    conflicts: Counter,
    passes: Counter,
    failures: Counter,
    restarts: Family<Restart, Counter>,
    phases: Family<Phase, Histogram, fn() -> Histogram>,
    shown: Mutex<BTreeMap<String, Shown>>,
    unreadable: Mutex<Vec<String>>,
}

/// What one SearchCluster shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The rule that blocks it.
    pub(super) blocked: Option<String>,
    pub(super) pending_restart: u32,
    pub(super) debts: u32,
    /// A predicate is not evaluated.
    pub(super) disabled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    to: &'static str,
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Restart {
    outcome: &'static str,
    strategy: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Phase {
    phase: &'static str,
    strategy: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cluster {
    cluster: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Blocked {
    cluster: String,
    rule: String,
}

impl Metrics {
    pub(super) fn new() -> Self {
        Self {
            requests: Family::default(),
            conflicts: Counter::default(),
            passes: Counter::default(),
            failures: Counter::default(),
            restarts: Family::default(),
            phases: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            shown: Mutex::default(),
            unreadable: Mutex::default(),
        }
    }

    /// Counts a request. `kind` is from our own code, never from data.
    pub(super) fn count_request(&self, to: Side, kind: &'static str, is_good: bool) {
        let outcome = if is_good { "ok" } else { "error" };
        self.requests.get_or_create(&Request { to: to.as_str(), kind, outcome }).inc();
    }

    /// Counts a write that met somebody else's.
    pub(super) fn count_conflict(&self) {
        self.conflicts.inc();
    }

    pub(super) fn count_pass(&self, is_good: bool) {
        self.passes.inc();
        if !is_good {
            self.failures.inc();
        }
    }

    /// Counts a restart that is over.
    pub(super) fn count_restart(&self, outcome: &'static str, strategy: &'static str) {
        self.restarts.get_or_create(&Restart { outcome, strategy }).inc();
    }

    /// Notes how long one phase of one node took.
    pub(super) fn observe_phase(&self, phase: &'static str, strategy: &'static str, seconds: f64) {
        self.phases.get_or_create(&Phase { phase, strategy }).observe(seconds);
    }

    /// What a SearchCluster shows from now on; nothing once it is gone.
    pub(super) fn show(&self, cluster: &str, shown: Option<Shown>) {
        let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match shown {
            Some(shown) => all.insert(cluster.to_owned(), shown),
            None => all.remove(cluster),
        };
    }

    /// The SearchClusters that cannot be understood.
    pub(super) fn set_unreadable(&self, clusters: Vec<String>) {
        *self.unreadable.lock().unwrap_or_else(PoisonError::into_inner) = clusters;
    }

    /// The metrics in text.
    pub(super) fn scrape(&self) -> String {
        let mut registry = Registry::with_prefix("stayput");
        registry.register("requests", "Requests sent, by whom to and kind", self.requests.clone());
        registry.register("conflicts", "Writes that met another one", self.conflicts.clone());
        registry.register("passes", "Looks at a SearchCluster", self.passes.clone());
        registry.register("failed_passes", "Looks that failed", self.failures.clone());
        registry.register("restarts", "Restarts that are over", self.restarts.clone());
        registry.register(
            "restart_phase_seconds",
            "From a node's slot to its start (stop), and from there to its end (start)",
            self.phases.clone(),
        );
        let blocked = Family::<Blocked, Gauge>::default();
        let pending = Family::<Cluster, Gauge>::default();
        let debts = Family::<Cluster, Gauge>::default();
        let disabled = Family::<Cluster, Gauge>::default();
        let all = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (cluster, shown) in all {
            if let Some(rule) = shown.blocked {
                blocked.get_or_create(&Blocked { cluster: cluster.clone(), rule }).set(1);
            }
            let label = Cluster { cluster };
            pending.get_or_create(&label).set(i64::from(shown.pending_restart));
            debts.get_or_create(&label).set(i64::from(shown.debts));
            disabled.get_or_create(&label).set(i64::from(shown.disabled));
        }
        let unreadable = Family::<Cluster, Gauge>::default();
        for cluster in self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            unreadable.get_or_create(&Cluster { cluster: cluster.clone() }).set(1);
        }
        registry.register("unreadable", "1 for a SearchCluster nobody understands", unreadable);
        registry.register("restart_blocked", "1 for the rule in the way, by its name", blocked);
        registry.register("pending_restart", "Nodes on another config than their sources", pending);
        registry.register("debts", "What must still be undone", debts);
        registry.register("predicates_disabled", "1 while a predicate is not evaluated", disabled);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayput_restart::{Code, Predicate};

    #[test]
    fn what_blocks_is_labelled_with_the_published_name() {
        let metrics = Metrics::new();
        for (at, predicate) in Predicate::ALL.into_iter().enumerate() {
            let blocked = Some(Code::Predicate(predicate).as_str().to_owned());
            let shown = Shown { blocked, disabled: at == 0, ..Shown::default() };
            metrics.show(&format!("search/logs-{at}"), Some(shown));
        }
        let text = metrics.scrape();
        for (at, predicate) in Predicate::ALL.into_iter().enumerate() {
            let name = predicate.name();
            let line = format!(
                "stayput_restart_blocked{{cluster=\"search/logs-{at}\",rule=\"{name}\"}} 1\n"
            );
            assert!(text.contains(&line), "{line} is not in {text}");
        }
        assert!(
            text.contains("stayput_predicates_disabled{cluster=\"search/logs-0\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains("stayput_predicates_disabled{cluster=\"search/logs-1\"} 0\n"),
            "{text}"
        );
        metrics.show("search/logs-0", None);
        assert!(!metrics.scrape().contains("search/logs-0"));
    }
}
