//! The metrics of the controller.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use stayput_kube_access::apiserver::CallCounter;

use super::lease::Lease;

/// Media type of [`Metrics::scrape`].
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the buckets, in seconds, from half a second to half an hour: a phase waits for shards, or
/// for its deadline.
const PHASE_SECONDS: [f64; 11] =
    [0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0];

/// The outside system that gets a request.
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

/// Counters of this process, and the last gauges of each SearchCluster.
#[derive(Debug)]
pub(super) struct Metrics {
    requests: Family<Request, Counter>,
    conflicts: Counter,
    reconciles: Counter,
    reconcile_errors: Counter,
    restarts: Family<Restart, Counter>,
    nodes: Family<Nodes, Counter>,
    phases: Family<Phase, Histogram, fn() -> Histogram>,
    gauges: Mutex<BTreeMap<String, Gauges>>,
    undecodable: Mutex<Vec<String>>,
    lease: OnceLock<Lease>,
}

/// The gauges of one SearchCluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Gauges {
    /// Code of the rule that blocks the SearchCluster.
    pub(super) blocked: Option<String>,
    pub(super) pending_restart: u32,
    pub(super) nodes_down: u32,
    pub(super) debts: u32,
    pub(super) predicates_disabled: bool,
    pub(super) restart_under_way: bool,
    /// True if allocation is limited, or is about to be, and must be restored.
    pub(super) allocation_limited: bool,
    /// Time since which the slowest of the nodes under way has been in its step, in seconds since the epoch.
    pub(super) under_way_since: Option<u64>,
    /// End of each certificate of the managers, in seconds since the epoch.
    pub(super) certificates: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    to: &'static str,
    kind: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Restart {
    outcome: &'static str,
    strategy: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Nodes {
    step: String,
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
struct Certificate {
    cluster: String,
    certificate: &'static str,
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
            reconciles: Counter::default(),
            reconcile_errors: Counter::default(),
            restarts: Family::default(),
            nodes: Family::default(),
            phases: Family::new_with_constructor(|| Histogram::new(PHASE_SECONDS)),
            gauges: Mutex::default(),
            undecodable: Mutex::default(),
            lease: OnceLock::new(),
        }
    }

    /// Sets the Lease that shows if this replica is the leader.
    pub(super) fn set_lease(&self, lease: Lease) {
        // A process has one Lease.
        let _ = self.lease.set(lease);
    }

    /// Counts a request. `kind` is a name of our own code, never data: it is a label.
    pub(super) fn count_request(&self, to: Side, kind: &str, is_good: bool) {
        let outcome = if is_good { "ok" } else { "error" };
        self.requests
            .get_or_create(&Request { to: to.as_str(), kind: kind.to_owned(), outcome })
            .inc();
    }

    pub(super) fn count_reconcile(&self, is_good: bool) {
        self.reconciles.inc();
        if !is_good {
            self.reconcile_errors.inc();
        }
    }

    /// Counts a restart that has ended.
    pub(super) fn count_restart(&self, outcome: &'static str, strategy: &'static str) {
        self.restarts.get_or_create(&Restart { outcome, strategy }).inc();
    }

    /// Counts nodes by the step that was carried out on them; the nodes of a restart when it ends.
    pub(super) fn count_nodes(&self, step: &str, nodes: u32) {
        self.nodes.get_or_create(&Nodes { step: step.to_owned() }).inc_by(nodes.into());
    }

    /// Records the time that one phase of one node took, in seconds.
    pub(super) fn observe_phase(&self, phase: &'static str, strategy: &'static str, seconds: f64) {
        self.phases.get_or_create(&Phase { phase, strategy }).observe(seconds);
    }

    /// Sets the gauges of a SearchCluster; `None` removes them.
    pub(super) fn set_gauges(&self, cluster: &str, gauges: Option<Gauges>) {
        let mut all = self.gauges.lock().unwrap_or_else(PoisonError::into_inner);
        match gauges {
            Some(gauges) => all.insert(cluster.to_owned(), gauges),
            None => all.remove(cluster),
        };
    }

    /// Removes the gauges of all SearchClusters: this replica does not reconcile them any more.
    pub(super) fn clear(&self) {
        self.gauges.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.set_undecodable(Vec::new());
    }

    /// Sets the SearchClusters that cannot be decoded.
    pub(super) fn set_undecodable(&self, clusters: Vec<String>) {
        *self.undecodable.lock().unwrap_or_else(PoisonError::into_inner) = clusters;
    }

    /// The metrics as OpenMetrics text.
    pub(super) fn scrape(&self) -> String {
        let mut registry = Registry::with_prefix("stayput");
        self.register_counters(&mut registry);
        self.register_states(&mut registry);
        let all = self.gauges.lock().unwrap_or_else(PoisonError::into_inner).clone();
        register_gauges(&mut registry, &all);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }

    fn register_counters(&self, registry: &mut Registry) {
        registry.register(
            "requests",
            "Requests sent, by receiver, kind and outcome",
            self.requests.clone(),
        );
        registry.register(
            "conflicts",
            "Writes refused because another client wrote first",
            self.conflicts.clone(),
        );
        registry.register("reconciles", "Reconciles of SearchClusters", self.reconciles.clone());
        registry.register(
            "reconcile_errors",
            "Reconciles that failed",
            self.reconcile_errors.clone(),
        );
        registry.register(
            "restarts",
            "Restarts that have ended, by outcome",
            self.restarts.clone(),
        );
        registry.register(
            "updated_nodes",
            "Nodes that were restarted, relabelled or taken away, by step",
            self.nodes.clone(),
        );
        registry.register(
            "restart_phase_seconds",
            "Seconds a node spent in phase stop (from its slot to its start request) and in phase \
             start (from there until it was finished)",
            self.phases.clone(),
        );
    }

    /// Registers the state of this process.
    fn register_states(&self, registry: &mut Registry) {
        let leader = Gauge::<i64>::default();
        leader.set(self.lease.get().is_some_and(Lease::is_held).into());
        registry.register("leader", "1 while this replica is the leader", leader);
        let undecodable = Family::<Cluster, Gauge>::default();
        for cluster in self.undecodable.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            undecodable.get_or_create(&Cluster { cluster: cluster.clone() }).set(1);
        }
        registry.register(
            "decode_failed",
            "1 for a SearchCluster that cannot be decoded and is not reconciled",
            undecodable,
        );
    }
}

/// A gauge of each SearchCluster: its name, its help, and its value if it has one.
type GaugeOfCluster = (&'static str, &'static str, fn(&Gauges) -> Option<i64>);

const GAUGES: [GaugeOfCluster; 7] = [
    ("pending_restart", "Nodes that run on another config than their sources have", |gauges| {
        Some(gauges.pending_restart.into())
    }),
    (
        "nodes_down",
        "Nodes that are down although nobody asked for that, and are not being restarted",
        |gauges| Some(gauges.nodes_down.into()),
    ),
    ("debts", "Changes of ours that must still be undone", |gauges| Some(gauges.debts.into())),
    ("predicates_disabled", "1 while at least one predicate is not evaluated", |gauges| {
        Some(gauges.predicates_disabled.into())
    }),
    ("restart_under_way", "1 while a restart is under way", |gauges| {
        Some(gauges.restart_under_way.into())
    }),
    (
        "allocation_limited",
        "1 while shard allocation is limited by us and must be restored",
        |gauges| Some(gauges.allocation_limited.into()),
    ),
    (
        "under_way_since_timestamp_seconds",
        "Since when the slowest node under way has been in its step; absent if there is none",
        |gauges| gauges.under_way_since.map(timestamp),
    ),
];

fn timestamp(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Registers the gauges of the SearchClusters, by their names.
fn register_gauges(registry: &mut Registry, all: &BTreeMap<String, Gauges>) {
    for (name, help, value) in GAUGES {
        let family = Family::<Cluster, Gauge>::default();
        for (cluster, gauges) in all {
            if let Some(value) = value(gauges) {
                family.get_or_create(&Cluster { cluster: cluster.clone() }).set(value);
            }
        }
        registry.register(name, help, family);
    }
    let blocked = Family::<Blocked, Gauge>::default();
    let expiry = Family::<Certificate, Gauge>::default();
    for (cluster, gauges) in all {
        for (certificate, at) in &gauges.certificates {
            let label = Certificate { cluster: cluster.clone(), certificate };
            expiry.get_or_create(&label).set(timestamp(*at));
        }
        if let Some(rule) = &gauges.blocked {
            let label = Blocked { cluster: cluster.clone(), rule: rule.clone() };
            blocked.get_or_create(&label).set(1);
        }
    }
    registry.register("restart_blocked", "1 for the rule or fault that blocks a restart", blocked);
    registry.register(
        "cluster_certificate_expiry_timestamp_seconds",
        "When the certificate of a cluster's managers, and the CA they are checked with, ends",
        expiry,
    );
}

impl CallCounter for Metrics {
    fn count(&self, call: &str, is_good: bool, is_conflict: bool) {
        self.count_request(Side::Apiserver, call, is_good);
        if is_conflict {
            self.conflicts.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayput_restart::{Code, Predicate};

    #[test] // proves RESTART-9
    fn what_blocks_is_labelled_with_the_published_name() {
        let metrics = Metrics::new();
        for (at, predicate) in Predicate::ALL.into_iter().enumerate() {
            let blocked = Some(Code::Predicate(predicate).as_str().to_owned());
            let gauges = Gauges {
                blocked,
                predicates_disabled: at == 0,
                nodes_down: 2,
                certificates: BTreeMap::from([("serving", 1_767_225_600)]),
                ..Gauges::default()
            };
            metrics.set_gauges(&format!("search/logs-{at}"), Some(gauges));
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
        assert!(text.contains("stayput_nodes_down{cluster=\"search/logs-0\"} 2\n"), "{text}");
        let ends = "stayput_cluster_certificate_expiry_timestamp_seconds{cluster=\"search/logs-0\",\
                    certificate=\"serving\"} 1767225600\n";
        assert!(text.contains(ends), "{text}");
        metrics.set_gauges("search/logs-0", None);
        assert!(!metrics.scrape().contains("search/logs-0"));
        metrics.set_undecodable(vec!["search/old".into()]);
        metrics.clear();
        assert!(!metrics.scrape().contains("search/"));
    }

    #[test]
    fn a_replica_that_does_not_hold_the_lease_is_not_the_leader() {
        let metrics = Metrics::new();
        assert!(metrics.scrape().contains("stayput_leader 0\n"), "it has not begun");
        metrics.set_lease(Lease::lost_for_test());
        assert!(metrics.scrape().contains("stayput_leader 0\n"), "another one may have it");
        let alone = Metrics::new();
        alone.set_lease(Lease::not_needed());
        assert!(alone.scrape().contains("stayput_leader 1\n"), "there is no other one");
    }

    /// Alerts and dashboards are checked against this file.
    #[test] // proves OPERATE-8
    fn every_metric_is_written_down() {
        let metrics = Metrics::new();
        metrics.count_request(Side::Manager, "stop", true);
        metrics.conflicts.inc();
        metrics.count_reconcile(false);
        metrics.count_restart("done", "rolling");
        metrics.count_nodes("container", 2);
        metrics.observe_phase("stop", "rolling", 12.0);
        metrics.set_undecodable(vec!["search/old".into()]);
        metrics.set_lease(Lease::not_needed());
        let gauges = Gauges {
            blocked: Some("quorum".into()),
            pending_restart: 3,
            nodes_down: 1,
            debts: 2,
            predicates_disabled: true,
            restart_under_way: true,
            allocation_limited: true,
            under_way_since: Some(1_767_225_600),
            certificates: BTreeMap::from([("serving", 1_798_761_600), ("ca", 1_893_456_000)]),
        };
        metrics.set_gauges("search/logs", Some(gauges));
        let text = metrics.scrape();
        // Series of one metric have no order.
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        let text = lines.join("\n") + "\n";
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/metrics/reconciler.txt");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(file, &text).expect("the file can be written");
        }
        let known = std::fs::read_to_string(file).unwrap_or_default();
        assert_eq!(known, text, "run with UPDATE_DOCS=1");
    }
}
