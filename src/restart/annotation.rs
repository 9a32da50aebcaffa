//! Keys of the annotations we read and write. What they hold is told in `proto/annotations.md`.

/// Phase of a pod's restart, or what a person asks for; on pods and on the SearchCluster.
pub const PHASE: &str = "elasticsearch.k8s.elastic.co/restart-phase";
/// On a pod: `<restart id> <phase>`, what we last showed there. Written in the same patch as
/// [`PHASE`]; a phase that differs from it is a person's.
pub const SHOWN: &str = "stayput.dev/shown";
/// On a pod: how its last restart ended, as JSON ([`super::LastRestart`]).
pub const LAST_RESTART: &str = "stayput.dev/last-restart";
/// On a pod: `"true"` keeps its node stopped.
pub const STOPPED: &str = "stayput.dev/stopped";
/// On a pod: changed so that the kubelet looks at the pod's volumes now; `<checksum> <moment>`.
pub const NUDGE: &str = "stayput.dev/nudge";
/// On the SearchCluster: a request, as JSON ([`super::Request`]).
pub const REQUEST: &str = "stayput.dev/restart-request";
/// On the SearchCluster: the id of the restart to cancel.
pub const CANCEL: &str = "stayput.dev/restart-cancel";
/// On the SearchCluster: names of predicates that are not to be evaluated, separated by commas, or
/// `*`; as ECK has it.
pub const DISABLE: &str = "eck.k8s.elastic.co/disable-upgrade-predicates";
/// On the SearchCluster: kept until our debts are paid.
pub const FINALIZER: &str = "stayput.dev/debts";
/// Every key we read; others are of no interest to a snapshot.
pub const ALL: [&str; 8] = [PHASE, SHOWN, LAST_RESTART, STOPPED, NUDGE, REQUEST, CANCEL, DISABLE];
