//! Whether one candidate may go: every rule in turn, the first no counts.

use super::evaluation::{Evaluation, Peer};
use super::{predicates, preflight, unreplicated_index};
use crate::blocker::{Blocker, Check};
use crate::{Code, Color, Manager, Pod, Predicate, Request, Strategy};

impl Evaluation<'_> {
    /// Passes if the pod is fit for a stop and may be given a slot.
    pub(crate) fn may_go<'p>(
        &self,
        pod: &'p Pod,
        strategy: Strategy,
    ) -> Result<&'p Manager, Blocker> {
        if self.is_kept_stopped(pod) {
            let message = format!("{} is kept stopped on request", pod.node);
            return Err(Blocker { code: Code::KeptStopped, message });
        }
        let fit = preflight(pod);
        if fit.is_ok() || pod.terminating {
            // The published rules have a word of their own for a pod that is being deleted.
            self.judge(pod, strategy)?;
        }
        fit
    }

    /// Passes if the pod may be given a slot: the quorum, whose loss would be worst; then the ten
    /// predicates in their published order; then indices without replicas.
    pub(crate) fn judge(&self, pod: &Pod, strategy: Strategy) -> Check {
        let Some(candidate) = self.peer(&pod.uid) else { return Ok(()) };
        self.quorum(candidate)?;
        for predicate in Predicate::ALL {
            if strategy == Strategy::Rolling || is_asked_at_any_time(predicate) {
                predicates::ask(predicate, self, candidate)?;
            }
        }
        unreplicated_index::unreplicated_index(self, candidate)
    }

    /// Passes if a pod that holds a slot may still be stopped, on what was read just now.
    pub(crate) fn judge_again(&self, pod: &Pod, request: &Request) -> Check {
        let Some(candidate) = self.peer(&pod.uid) else { return Ok(()) };
        let serves = candidate.node.is_some() && candidate.pod.ready;
        if serves {
            self.still_calm(request.strategy)?;
        }
        if !request.is_at_once() {
            self.still_room(candidate, serves)?;
        }
        predicates::ask(Predicate::StartedReplica, self, candidate)?;
        self.quorum_now(candidate)?;
        unreplicated_index::unreplicated_index(self, candidate)
    }

    /// With allocation tightened a replica that is missing stays missing; but red is red, and in a
    /// rolling restart what is being built or moved was not so when the slot was given. What waits
    /// for a node that left with the same slots is no surprise.
    fn still_calm(&self, strategy: Strategy) -> Check {
        let Ok(health) = &self.engine.health else { return Ok(()) };
        let missed = if self.under_way().len() > 1 { 0 } else { health.delayed };
        let moving = health.initializing + health.relocating + missed + health.in_flight_fetch;
        let (predicate, what) = if health.color == Color::Red {
            (Predicate::GreenOrYellow, "the cluster is red now".to_owned())
        } else if strategy == Strategy::Rolling && moving > 0 {
            let what = format!(
                "the cluster has changed since ({moving} copies being built, moved or looked for)"
            );
            (Predicate::Yellow, what)
        } else {
            return Ok(());
        };
        if self.policy.disabled.contains(predicate) {
            return Ok(());
        }
        predicates::no(predicate, format!("{what}: waits until it is at rest again"))
    }

    /// Somebody may have gone down since.
    fn still_room(&self, candidate: &Peer<'_>, serves: bool) -> Check {
        let ours = self.under_way().iter().filter(|name| *name != candidate.name()).count();
        let others = self.peers().iter().filter(|peer| peer.pod.uid != candidate.pod.uid);
        let foreign = others.filter(|peer| !peer.healthy && !peer.under_way).count();
        let down = if serves { ours + foreign } else { ours };
        if down < self.budget() || self.policy.disabled.contains(Predicate::MaxUnavailable) {
            return Ok(());
        }
        predicates::no(
            Predicate::MaxUnavailable,
            format!(
                "{down} other node{} down by now and spec.restart.maxUnavailable allows {}",
                if down == 1 { " is" } else { "s are" },
                self.policy.max_unavailable
            ),
        )
    }
}

/// Whether it is also asked where the cluster's health is not to matter.
const fn is_asked_at_any_time(predicate: Predicate) -> bool {
    match predicate {
        Predicate::MaxUnavailable | Predicate::Terminating | Predicate::StartedReplica => true,
        Predicate::DataTier
        | Predicate::GreenOrYellow
        | Predicate::Yellow
        | Predicate::OneMaster
        | Predicate::LastMaster
        | Predicate::SameShards
        | Predicate::WholeTier => false,
    }
}
