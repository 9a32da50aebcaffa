//! The part of a snapshot that comes from the watches, the age at which other facts are read again, and jumps
//! of the wall clock, by which the deadlines in the ledger are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube::api::ObjectMeta;
use kube::core::{Selector, SelectorExt};
use stayput_kube_access::cluster::{SearchCluster, SearchClusterSpec};
use stayput_restart::{
    Cluster, KnownConfigs, LabelAhead, Ledger, LivePod, Operator, Pod, Snapshot, Sources, Time,
    Unknown, annotation,
};
use tokio::time::Instant;

use crate::apiserver::namespaced_name;
use crate::pods::{PodFacts, Pods, phase_applied_by};

/// A snapshot of the watched objects alone: the answers of managers, engine and apiserver are unknown.
pub(super) fn bare(
    cluster: &SearchCluster,
    spec: &SearchClusterSpec,
    pods: &Pods,
    fresh_id: String,
) -> Snapshot {
    let metadata = &cluster.metadata;
    let annotations = metadata.annotations.iter().flatten();
    let annotations = annotations.filter(|(key, _)| annotation::is_read(key));
    let finalizers = metadata.finalizers.iter().flatten();
    let now = now();
    Snapshot {
        now,
        fresh_id,
        cluster: Cluster {
            name: full_name(metadata),
            deleting: metadata.deletion_timestamp.is_some(),
            finalizer: finalizers.into_iter().any(|name| name == annotation::FINALIZER),
            has_status: cluster.status.is_some(),
            annotations: annotations.map(|(key, value)| (key.clone(), value.clone())).collect(),
            phase_applied_by: phase_applied_by(metadata),
            paused: spec.paused,
            closed_until: spec.closed_until(now),
            stopped: spec.stopped.iter().cloned().collect(),
            overlaps: Vec::new(),
            unselected: BTreeSet::new(),
            operator_objects: Vec::new(),
        },
        ledger: cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default(),
        pods: pods.iter().map(|facts| pod(facts)).collect(),
        missing: Vec::new(),
        configs: KnownConfigs::default(),
        engine: Err(unknown("not asked yet")),
        no_master: false,
        jumped: 0,
        node_sets: None,
        flushed: BTreeSet::new(),
    }
}

/// Namespace and name of a SearchCluster as one text.
pub(super) fn full_name(metadata: &ObjectMeta) -> String {
    let (namespace, name) = namespaced_name(metadata);
    format!("{namespace}/{name}")
}

/// The snapshot `seen` with the newest SearchCluster and pods; the rest stays.
pub(crate) fn refresh(
    seen: &Snapshot,
    cluster: &SearchCluster,
    spec: &SearchClusterSpec,
    pods: &Pods,
) -> Snapshot {
    let bare = bare(cluster, spec, pods, seen.fresh_id.clone());
    let known: BTreeMap<&str, &Pod> = seen.pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
    let port = spec.manager.port;
    let asked = |(pod, facts): (Pod, &Arc<PodFacts>)| match known.get(pod.uid.as_str()) {
        // Each field is named, so that a new one must be thought of here.
        Some(known) => Pod {
            uid: pod.uid,
            name: pod.name,
            node: pod.node,
            container: known.container.clone(),
            program: known.program.clone(),
            annotations: pod.annotations,
            phase_applied_by: pod.phase_applied_by,
            operator: known.operator.clone(),
            ready: pod.ready,
            terminating: pod.terminating,
            crash_looping: pod.crash_looping,
            not_started: facts.not_started(port),
            outdated: known.outdated.clone(),
            deadly_probe: known.deadly_probe.clone(),
            leaving: known.leaving.clone(),
            sources: known.sources.clone(),
            ignores_change: known.ignores_change,
            config_from: known.config_from.clone(),
            endpoint: known.endpoint.clone(),
            unserved_since: known.unserved_since,
            update: known.update.clone(),
            ahead: ahead(facts).map(|label| {
                let same = known.ahead.as_ref().filter(|known| known.revision == label);
                same.cloned().unwrap_or_else(|| {
                    let back = Err(unknown("its way back is not read yet"));
                    Box::new(LabelAhead { revision: label.to_owned(), since: bare.now, back })
                })
            }),
            live: live(facts, port, &[]).map(|live| {
                let data = known.live.as_ref().map(|known| known.data).unwrap_or_default();
                Box::new(LivePod { data, ..*live })
            }),
            undeletable: known.undeletable.clone(),
            unchangeable: known.unchangeable.clone(),
            unreturnable: known.unreturnable.clone(),
            room: known.room.clone(),
            claim_uids: known.claim_uids.clone(),
            manager: known.manager.clone(),
        },
        None => pod,
    };
    Snapshot {
        now: bare.now,
        fresh_id: bare.fresh_id,
        cluster: Cluster {
            name: bare.cluster.name,
            deleting: bare.cluster.deleting,
            finalizer: bare.cluster.finalizer,
            has_status: bare.cluster.has_status,
            annotations: bare.cluster.annotations,
            phase_applied_by: bare.cluster.phase_applied_by,
            paused: bare.cluster.paused,
            closed_until: bare.cluster.closed_until,
            stopped: bare.cluster.stopped,
            overlaps: seen.cluster.overlaps.clone(),
            unselected: seen.cluster.unselected.clone(),
            operator_objects: seen.cluster.operator_objects.clone(),
        },
        ledger: bare.ledger,
        pods: bare.pods.into_iter().zip(pods.iter()).map(asked).collect(),
        missing: seen.missing.clone(),
        configs: seen.configs.clone(),
        engine: seen.engine.clone(),
        no_master: seen.no_master,
        jumped: seen.jumped,
        node_sets: seen.node_sets.clone(),
        flushed: seen.flushed.clone(),
    }
}

/// A pod whose manager was not asked yet.
pub(super) fn pod(facts: &PodFacts) -> Pod {
    Pod {
        uid: facts.uid.clone(),
        name: facts.name.clone(),
        node: facts.node.clone(),
        container: None,
        program: None,
        annotations: facts.annotations.clone(),
        operator: Operator::of_labels(&facts.labels),
        ready: facts.ready,
        terminating: facts.terminating,
        crash_looping: facts.crash_looping,
        not_started: None,
        outdated: None,
        deadly_probe: None,
        leaving: None,
        phase_applied_by: facts.phase_applied_by.clone(),
        sources: Sources::Unknown("not read yet".into()),
        ignores_change: false,
        config_from: vec![],
        endpoint: Err(unknown("not read: its manager does not drain")),
        unserved_since: None,
        update: Ok(None),
        ahead: None,
        live: None,
        undeletable: None,
        unchangeable: None,
        unreturnable: None,
        room: Ok(None),
        claim_uids: Ok(BTreeMap::new()),
        manager: Err(unknown("not asked yet")),
    }
}

/// The parts of the pod that an update needs, if its cluster updates pods. `data_paths`: data directories of
/// its engine.
pub(super) fn live(
    facts: &PodFacts,
    manager_port: u16,
    data_paths: &[String],
) -> Option<Box<LivePod>> {
    let revision = facts.owner.as_ref().map_or("", |owner| &owner.revision);
    let container = facts.engine_container(manager_port);
    let live = facts.live.as_ref()?;
    let data = live.data_place(container, data_paths);
    Some(Box::new(LivePod { data, ..live.for_decisions(revision, container) }))
}

/// The revision in the label of a pod that was made from another one.
fn ahead(facts: &PodFacts) -> Option<&str> {
    facts.owner.as_ref().filter(|owner| owner.is_label_ahead()).map(|owner| owner.label.as_str())
}

/// The other SearchClusters that select pods of this one.
pub(super) fn overlaps(pods: &[Arc<PodFacts>], others: &[(String, Selector)]) -> Vec<String> {
    others
        .iter()
        .filter(|(_, selector)| pods.iter().any(|pod| selector.matches(&pod.labels)))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Time of the wall clock, for decisions. Before 1970 it counts as 1970: then no deadline passes.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// An unknown value, with the reason.
pub(super) fn unknown(message: impl Into<String>) -> Unknown {
    Unknown { message: message.into() }
}

/// Number of pods up to which everything is read at every observation while anything is under way.
const SMALL_CLUSTER: usize = 16;
/// Maximum age in a larger cluster, of facts about pods that are not under way.
const MAX_AGE_ACTIVE: Duration = Duration::from_secs(10);
/// Maximum age while nothing is under way.
const MAX_AGE_AT_REST: Duration = Duration::from_secs(60);

/// Maximum age of the facts about each pod.
pub(super) struct Ages<'a> {
    /// Uids of pods whose facts are read at every observation.
    always_read: BTreeSet<&'a str>,
    max_age: Duration,
}

impl<'a> Ages<'a> {
    /// `is_active`: anything is under way or asked for; `pods`: how many there are.
    pub(super) fn of(
        ledger: &'a Ledger,
        must_read: &'a BTreeSet<String>,
        is_active: bool,
        pods: usize,
    ) -> Self {
        let must_read = must_read.iter().map(String::as_str);
        let always_read = ledger.busy_pods().chain(must_read).collect();
        let max_age = match (is_active, pods) {
            (true, ..=SMALL_CLUSTER) => Duration::ZERO,
            (true, _) => MAX_AGE_ACTIVE,
            (false, _) => MAX_AGE_AT_REST,
        };
        Self { always_read, max_age }
    }

    /// True if the facts about this pod, read at `read`, must be read again.
    pub(super) fn is_over(&self, uid: &str, read: Option<Instant>) -> bool {
        match read {
            None => true,
            Some(_) if self.always_read.contains(uid) => true,
            Some(read) => read.elapsed() >= self.max_age,
        }
    }

    /// True if this pod is under way, or about to be.
    pub(super) fn is_under_way(&self, uid: &str) -> bool {
        self.always_read.contains(uid)
    }
}

/// Minimum length of a jump, in milliseconds: between two looks clocks are slewed by less.
const LEAST: u64 = 10_000;

/// State of both clocks at the last look.
#[derive(Debug, Default)]
pub(crate) struct Jumps {
    last: Option<(Time, Instant)>,
    /// Jumps of the wall clock that the ledger does not have yet, in milliseconds.
    pending: u64,
}

impl Jumps {
    /// Compares both clocks. Returns the jumps that the ledger does not have yet, in milliseconds.
    pub(super) fn look(&mut self, now: Time, steady: Instant) -> u64 {
        if let Some((before, then)) = self.last {
            let passed = u64::try_from((steady - then).as_millis()).unwrap_or(u64::MAX);
            let jumped = now.since(before).saturating_sub(passed);
            if jumped >= LEAST {
                tracing::warn!("the clock has jumped forward by {} s", jumped / 1000);
                self.pending += jumped;
            }
        }
        self.last = Some((now, steady));
        self.pending
    }

    /// Forgets the pending jumps: the ledger has them, or has no times.
    pub(crate) fn settle(&mut self) {
        self.pending = 0;
    }
}

#[cfg(test)]
mod tests;
