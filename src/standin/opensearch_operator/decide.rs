//! One look of the operator, as a pure function of everything that it reads. The comments name the functions of its
//! source that decide.

use std::time::Duration;

/// Everything that one look reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// In the order of `spec.nodePools`.
    pub pools: Vec<Pool>,
    /// `PARALLEL_RECOVERY_ENABLED`, which is on unless somebody turns it off.
    pub parallel_recovery: bool,
    /// The operator has written into its status that it restarts nodes.
    pub is_restarting: bool,
    pub is_green: bool,
    /// Transient value of `cluster.routing.allocation.enable`.
    pub allocation: Option<String>,
}

/// A node pool: its StatefulSet, and the pods with the labels of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Name of the StatefulSet.
    pub set: String,
    pub replicas: usize,
    /// The nodes may become cluster managers.
    pub is_manager: bool,
    /// ConfigMap and template are as the `OpenSearchCluster` asks for.
    pub is_as_declared: bool,
    pub policy: Policy,
    pub claims: usize,
    pub current_revision: String,
    /// Empty until the StatefulSet controller has seen the set.
    pub update_revision: String,
    pub updated_replicas: usize,
    pub available_replicas: usize,
    pub pods: Vec<Pod>,
}

/// `podManagementPolicy` of a StatefulSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    OrderedReady,
    Parallel,
}

/// A pod of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    /// Label `controller-revision-hash`.
    pub revision: String,
    pub is_ready: bool,
    pub is_deleting: bool,
}

/// Actions in their order, and the time until the next look if nothing of the cluster changes before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub actions: Vec<Action>,
    pub again: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write ConfigMap and template as declared.
    Write {
        set: String,
    },
    /// Delete the StatefulSet without its pods, and make it again.
    Remake {
        set: String,
        policy: Policy,
    },
    /// Write into the set's status that the update revision is the current one.
    SetCurrentRevision {
        set: String,
    },
    /// Write into the operator's status whether it restarts nodes.
    SetRestarting(bool),
    /// Set the transient `cluster.routing.allocation.enable`.
    Allocate(&'static str),
    Delete {
        pod: String,
    },
}

/// `Requeue: true` without a time: the first delay of controller-runtime's rate limiter.
const AT_ONCE: Duration = Duration::from_millis(5);
/// rollingRestart.go: a restart that waits, or goes on.
const RESTART: Duration = Duration::from_secs(10);
/// scaler.go, `Reconcile`: not all nodes are there.
const SCALER: Duration = Duration::from_secs(15);
/// opensearchController.go, `reconcilePhaseRunning`: nothing to do.
pub(super) const REST: Duration = Duration::from_secs(30);

/// The parts of a look in the operator's order: cluster.go, scaler.go, rollingRestart.go. One that waits ends the look.
pub fn decide(seen: &Seen) -> Decision {
    let mut actions = Vec::new();
    let mut recovers = false;
    let mut is_remade = false;
    for pool in &seen.pools {
        // `reconcileNodeStatefulSet`: "Detect cluster failure and initiate parallel recovery". One missing pod is
        // none, and without claims there is no recovery.
        let is_failure = pool.claims >= pool.replicas && pool.ready() + 1 < pool.replicas;
        let policy = match (seen.parallel_recovery, is_failure, pool.policy) {
            (true, true, Policy::OrderedReady) => Some(Policy::Parallel),
            (true, false, Policy::Parallel) => Some(Policy::OrderedReady),
            _ => None,
        };
        if let Some(policy) = policy {
            actions.push(Action::Remake { set: pool.set.clone(), policy });
            is_remade = true;
            recovers |= policy == Policy::Parallel;
        } else if !pool.is_as_declared {
            actions.push(Action::Write { set: pool.set.clone() });
        }
    }
    if recovers {
        return Decision { actions, again: AT_ONCE };
    }
    // `nodePoolsReady`. A set that was just made has no status.
    if is_remade || seen.pools.iter().any(|pool| pool.available_replicas != pool.replicas) {
        return Decision { actions, again: SCALER };
    }
    let (more, again) = restart(seen);
    actions.extend(more);
    Decision { actions, again }
}

/// `RollingRestartReconciler.Reconcile`.
fn restart(seen: &Seen) -> (Vec<Action>, Duration) {
    let mut actions = Vec::new();
    for pool in &seen.pools {
        if !pool.is_pending()
            && !pool.update_revision.is_empty()
            && pool.current_revision != pool.update_revision
        {
            actions.push(Action::SetCurrentRevision { set: pool.set.clone() });
        }
        if pool.ready() != pool.replicas {
            return (actions, RESTART);
        }
    }
    if !seen.pools.iter().any(Pool::is_pending) {
        if seen.is_restarting {
            // `ReactivateShardAllocation`.
            if seen.allocation.as_deref() != Some("all") {
                actions.push(Action::Allocate("all"));
            }
            actions.push(Action::SetRestarting(false));
        }
        return (actions, REST);
    }
    actions.push(Action::SetRestarting(true));
    if let Some(pod) = candidate(seen) {
        if seen.is_green {
            // `PreparePodForDelete`, without `drainDataNodes`.
            actions.push(Action::Allocate("primaries"));
            actions.push(Action::Delete { pod: pod.to_owned() });
        } else if seen.allocation.as_deref() != Some("all") {
            // `CheckClusterStatusForRestart`.
            actions.push(Action::Allocate("all"));
        }
    }
    (actions, RESTART)
}

/// `globalCandidateRollingRestart`: of each set the pod with the lowest ordinal that is of another revision; of these
/// one that is no cluster manager, then by the name of the set. A cluster manager only while more than half of them,
/// rounded up, are ready.
fn candidate(seen: &Seen) -> Option<&str> {
    let pending = seen.pools.iter().filter(|pool| pool.is_pending());
    let mut candidates: Vec<(&Pool, &Pod)> = pending
        .filter_map(|pool| {
            let older = pool.pods.iter().filter(|pod| pod.revision != pool.update_revision);
            Some((pool, older.min_by_key(|pod| pod.ordinal())?))
        })
        .collect();
    candidates.sort_by_key(|(pool, _)| (pool.is_manager, &pool.set));
    let managers = || seen.pools.iter().filter(|pool| pool.is_manager);
    let ready: usize = managers().map(Pool::ready).sum();
    let all: usize = managers().map(|pool| pool.replicas).sum();
    let may_go = |is_manager: bool| !is_manager || ready > all.div_ceil(2);
    candidates.iter().find(|(pool, _)| may_go(pool.is_manager)).map(|(_, pod)| pod.name.as_str())
}

impl Pool {
    /// `ReadyReplicasForNodePool`: by the pods, not by the set's status.
    fn ready(&self) -> usize {
        self.pods.iter().filter(|pod| pod.is_ready && !pod.is_deleting).count()
    }

    fn is_pending(&self) -> bool {
        !self.update_revision.is_empty() && self.updated_replicas != self.replicas
    }
}

impl Pod {
    fn ordinal(&self) -> usize {
        self.name.rsplit('-').next().and_then(|end| end.parse().ok()).unwrap_or_default()
    }
}
