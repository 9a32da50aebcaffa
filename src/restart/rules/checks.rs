//! Checks if one candidate may be stopped: the rules in their order; the first that blocks counts.

use crate::changes::Check;
use crate::rules::evaluation::Evaluation;
use crate::rules::node_counts::Peer;
use crate::rules::settled::check_unreplicated_index;
use crate::rules::{deleted_data, predicates, preflight};
use crate::{Blocker, Code, Color, Manager, Pod, Predicate, Request, Strategy};

impl Evaluation<'_> {
    /// Passes if the pod can be stopped and may take a slot.
    pub(crate) fn check_candidate<'p>(
        &self,
        pod: &'p Pod,
        strategy: Strategy,
    ) -> Result<&'p Manager, Blocker> {
        if self.is_kept_stopped(pod) {
            let message = format!("{} is kept stopped on request", pod.node);
            return Err(Blocker { code: Code::KeptStopped, message });
        }
        let fit = preflight(self.cluster, pod);
        if fit.is_ok() || pod.terminating {
            // A published rule has its own code for a pod that is being deleted.
            self.check_rules(pod, strategy)?;
        }
        fit
    }

    /// Passes if the pod may take a slot. The order of the checks: data that would be deleted; the quorum,
    /// whose loss would be the worst outage; the predicates in their order; indices without replicas.
    pub(crate) fn check_rules(&self, pod: &Pod, strategy: Strategy) -> Check {
        let Some(candidate) = self.peer(&pod.uid) else { return Ok(()) };
        roles_known(candidate)?;
        deleted_data::check(self, candidate)?;
        self.quorum(candidate)?;
        for predicate in Predicate::ALL {
            if strategy == Strategy::Rolling || applies_to_immediate(predicate) {
                predicates::check(predicate, self, candidate)?;
            }
        }
        check_unreplicated_index(self, candidate)?;
        // Otherwise its slot would be given back at once.
        match self.check_state(candidate, strategy, candidate.is_in_batch) {
            Err(blocker) if !self.is_only_moving(&blocker) => Err(blocker),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Passes if a pod that holds a slot may still be stopped, right before the stop request.
    pub(crate) fn check_before_stop(&self, pod: &Pod, request: &Request) -> Check {
        let Some(candidate) = self.peer(&pod.uid) else { return Ok(()) };
        roles_known(candidate)?;
        deleted_data::check(self, candidate)?;
        self.check_state(candidate, request.strategy, request.goes_as_a_whole())?;
        predicates::check(Predicate::StartedReplica, self, candidate)?;
        if request.strategy == Strategy::Rolling {
            predicates::check(Predicate::RunningSnapshot, self, candidate)?;
        }
        self.quorum_now(candidate)?;
        check_unreplicated_index(self, candidate)
    }

    /// Passes unless the only copy of something would be deleted with the pod or its container, for a node
    /// that is down already.
    pub(crate) fn check_deletion(&self, pod: &Pod) -> Check {
        let Some(candidate) = self.peer(&pod.uid) else { return Ok(()) };
        deleted_data::check(self, candidate)
    }

    /// Checks health and budget as right before a stop.
    fn check_state(&self, candidate: &Peer<'_>, strategy: Strategy, as_a_whole: bool) -> Check {
        if candidate.serves {
            self.check_health_again(strategy)?;
        }
        if !as_a_whole {
            self.check_budget_again(candidate, candidate.serves)?;
        }
        Ok(())
    }

    /// True if the blocker is only about shard copies that are moving. All copies have a node then, so
    /// limited allocation does not delay them.
    pub(crate) fn is_only_moving(&self, blocker: &Blocker) -> bool {
        blocker.code == Code::Predicate(Predicate::Yellow)
            && self.engine.health.as_ref().is_ok_and(|health| health.unassigned == 0)
    }

    /// Blocks a rolling restart if the cluster is red or unknown, or if copies are initializing or
    /// moving: they were not when the slot was taken. A missing replica does not block, because
    /// allocation is limited by us. Nor do copies that wait for another node under way.
    fn check_health_again(&self, strategy: Strategy) -> Check {
        if strategy != Strategy::Rolling {
            return Ok(());
        }
        let disabled = |predicate| self.disabled.contains(predicate);
        let settled_again = "waits until it is settled again";
        let health = match &self.engine.health {
            Ok(health) => health,
            Err(_) if disabled(Predicate::GreenOrYellow) => return Ok(()),
            Err(unknown) => return Err(Blocker::engine_unreachable(unknown)),
        };
        if health.color == Color::Red && !disabled(Predicate::GreenOrYellow) {
            let message = format!("the cluster is red now: {settled_again}");
            return predicates::block(Predicate::GreenOrYellow, message);
        }
        let missed = if self.under_way().len() > 1 { 0 } else { health.delayed };
        let unsettled = health.initializing + health.relocating + missed + health.in_flight_fetch;
        if unsettled == 0 || self.is_alone() || disabled(Predicate::Yellow) {
            return Ok(());
        }
        let message = format!(
            "the cluster has changed since the slot was taken ({unsettled} shard copies are \
             initializing, moving or not found yet): {settled_again}"
        );
        predicates::block(Predicate::Yellow, message)
    }

    /// Blocks if too many other nodes are down: some may have failed since the slot was taken.
    fn check_budget_again(&self, candidate: &Peer<'_>, serves: bool) -> Check {
        let ours =
            self.under_way().len() - usize::from(self.under_way().contains(candidate.name()));
        // Nodes kept stopped are not counted.
        let is_counted = candidate.has_failed() && !self.is_kept_stopped(candidate.pod);
        let foreign = self.counts.failed - usize::from(is_counted);
        let down = if serves { ours + foreign } else { ours };
        if down < self.budget() || self.disabled.contains(Predicate::MaxUnavailable) {
            return Ok(());
        }
        predicates::block(
            Predicate::MaxUnavailable,
            format!(
                "{down} other node{} down now, and spec.restart.maxUnavailable allows {}",
                if down == 1 { " is" } else { "s are" },
                self.policy.max_unavailable
            ),
        )
    }
}

/// Blocks a node that is in the cluster and has not reported its roles.
fn roles_known(candidate: &Peer<'_>) -> Check {
    if candidate.node.is_none_or(|node| !node.roles_unknown) {
        return Ok(());
    }
    let message = format!(
        "{} is in the cluster and has not reported its roles: it hangs, or has just joined; waits \
         until it answers the other nodes, or the cluster has removed it",
        candidate.name()
    );
    Err(Blocker { code: Code::EngineUnreachable, message })
}

/// True if the predicate also holds for an immediate restart, which ignores the cluster's health.
const fn applies_to_immediate(predicate: Predicate) -> bool {
    match predicate {
        Predicate::MaxUnavailable | Predicate::Terminating | Predicate::StartedReplica => true,
        Predicate::DataTier
        | Predicate::GreenOrYellow
        | Predicate::Yellow
        | Predicate::OneMaster
        | Predicate::LastMaster
        | Predicate::SameShards
        | Predicate::WholeTier
        | Predicate::RunningSnapshot => false,
    }
}
