//! Keys of the annotations we read and write; `proto/annotations.md` describes their values.

use std::collections::BTreeMap;

/// On pods, on the SearchCluster and on an operator's object: the phase of a restart, or a request by a person.
pub const PHASE: &str = "elasticsearch.k8s.elastic.co/restart-phase";
/// On a pod: `<restart id> <phase>` as we last wrote it. Written in the same patch as [`PHASE`]; a
/// phase that differs from it was written by a person.
pub const SHOWN: &str = "stayput.dev/shown";
/// On a pod: how its last restart ended, as JSON ([`super::LastRestart`]).
pub const LAST_RESTART: &str = "stayput.dev/last-restart";
/// On a pod: `"true"` keeps its node stopped.
pub const STOPPED: &str = "stayput.dev/stopped";
/// On a pod: changed so that the kubelet syncs the pod's volumes now; `<checksum> <time>`.
pub const NUDGE: &str = "stayput.dev/nudge";
/// On a pod: digests of the Secrets and ConfigMaps that its container was started with, as JSON.
pub const CONTENT: &str = stayput_pod_update::CONTENT;
/// On a pod of an operator: the revision that the pod was made from, while its label names the wanted one
/// before the pod has been updated.
pub const ACTUAL_REVISION: &str = "stayput.dev/actual-revision";
/// On a pod: variables of its engine that differ from those of its container, as JSON.
pub const ENVIRONMENT: &str = stayput_pod_spec::ENVIRONMENT;
/// On the SearchCluster: a request, as JSON ([`super::Request`]).
pub const REQUEST: &str = "stayput.dev/restart-request";
/// On the SearchCluster: the id of the restart to cancel.
pub const CANCEL: &str = "stayput.dev/restart-cancel";
/// On the SearchCluster or an operator's object: names of disabled predicates, separated by commas, or `*`. The key
/// is ECK's.
pub const DISABLE: &str = "eck.k8s.elastic.co/disable-upgrade-predicates";
/// On an `Elasticsearch`: `"true"` has ECK from 3.5 on edit no StatefulSet and restart nothing.
pub const ECK_PAUSE: &str = "eck.k8s.elastic.co/pause-orchestration";
/// On an `Elasticsearch`: `"false"` has ECK do nothing at all.
pub const ECK_MANAGED: &str = "eck.k8s.elastic.co/managed";
/// On the SearchCluster: `"false"` confirms that the OpenSearch operator runs without parallel recovery.
pub const PARALLEL_RECOVERY: &str = "stayput.dev/parallel-recovery";
/// On the SearchCluster: begins the key of a gate, `gate.stayput.dev/<name>`. It is open for the restart
/// whose id is its value, and closed for every other.
pub const GATE: &str = "gate.stayput.dev/";
/// On the SearchCluster: begins the key of a gate after a restart, `after.gate.stayput.dev/<name>`. No
/// other restart begins until its value is the id of the last one that has ended.
pub const GATE_AFTER: &str = "after.gate.stayput.dev/";
/// On the SearchCluster: kept until our debts are paid.
pub const FINALIZER: &str = "stayput.dev/debts";
/// Every key that a snapshot contains, beside those of gates.
pub const ALL: [&str; 12] = [
    PHASE,
    SHOWN,
    LAST_RESTART,
    STOPPED,
    NUDGE,
    CONTENT,
    ACTUAL_REVISION,
    ENVIRONMENT,
    REQUEST,
    CANCEL,
    DISABLE,
    PARALLEL_RECOVERY,
];

/// True if these annotations of a pod keep its node stopped.
pub fn keeps_stopped(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(STOPPED).is_some_and(|value| value == "true")
}

/// True if the key is that of a gate.
pub fn is_gate(key: &str) -> bool {
    [GATE, GATE_AFTER].iter().any(|begin| key.starts_with(begin))
}

/// True if decisions depend on this key of a SearchCluster.
pub fn is_read(key: &str) -> bool {
    ALL.contains(&key) || is_gate(key)
}
