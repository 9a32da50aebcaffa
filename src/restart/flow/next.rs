//! Who goes next in a rolling or immediate restart.

use crate::blocker::{Check, refuse};
use crate::lookup::{Lookup, Names};
use crate::planner::Planner;
use crate::rules::{
    Evaluation, FailedSets, StopImpact, list_names, order, preflight, select, set_of,
};
use crate::{Action, Blocker, Code, Debts, Pod, Reason, Request, Restart, Share, Step, Strategy};

/// A pod that may not go, and why.
pub(super) type Refused<'a> = (&'a Pod, Blocker);

impl<'a> Planner<'a> {
    /// Gives a slot to the members whose turn it is, and tells the others why it is not.
    pub(super) fn choose_next(&mut self) {
        let Some(restart) = self.restart() else { return };
        let members = restart.members.iter().enumerate();
        let scheduled: Lookup<'_, usize> = members
            .filter(|(_, member)| member.step == Step::Scheduled)
            .map(|(index, member)| (member.pod_uid.as_str(), index))
            .collect();
        if scheduled.is_empty() || restart.ending.is_some() {
            return;
        }
        let pods = self.view.pods().filter(|pod| scheduled.contains_key(pod.uid.as_str()));
        let candidates = order(pods, self.view.engine().ok());
        let may_begin = self.may_begin(&restart);
        if self.rescue(&restart, &scheduled, &candidates) {
            return;
        }
        if let Err(refusal) = may_begin {
            self.wait_all(refusal.code, refusal.message.clone());
            for pod in candidates {
                self.refused(&pod.uid, refusal.clone());
            }
            return;
        }
        if !self.has_finalizer() {
            return;
        }
        if restart.request.is_at_once() {
            return self.choose_together(&restart, &scheduled, &candidates);
        }
        let mut pass = match self.look() {
            Ok(pass) => pass,
            Err(refusal) => {
                let sets = FailedSets::of(&self.view, &self.ledger);
                for pod in candidates {
                    let refusal = preflight(pod).err().unwrap_or_else(|| refusal.clone());
                    self.refused(&pod.uid, in_part(&sets, pod, refusal));
                }
                return;
            }
        };
        let strategy = restart.request.strategy;
        let turns = select(&mut pass, &candidates, strategy, |pod, manager, terms| {
            self.begin(&restart, scheduled[&*pod.uid], pod, manager, terms)
        });
        let refused = turns.iter().filter_map(|(pod, turn)| Some((*pod, turn.as_ref().err()?)));
        self.tell_of_quorum(refused);
        for (pod, turn) in turns {
            if let Err(refusal) = turn {
                self.refused(&pod.uid, refusal);
            }
        }
    }

    /// Tells of the first node that is passed over because too few would be left to elect a master.
    /// It is said as long as it is so, and told once by whoever carries plans out.
    pub(super) fn tell_of_quorum<'b>(
        &mut self,
        mut refused: impl Iterator<Item = (&'b Pod, &'b Blocker)>,
    ) {
        if let Some((pod, _)) = refused.find(|(_, refusal)| refusal.code == Code::Quorum) {
            self.tell(
                Some(&pod.uid),
                Reason::RestartSkipped,
                format!("Skipping restart of {}: insufficient quorum", pod.node),
            );
        }
    }

    /// What keeps every node from going.
    pub(super) fn may_begin(&self, restart: &Restart) -> Check {
        self.may_begin_at_all(restart)?;
        if self.owes_the_engine() {
            return refuse(Code::Debts, "something is owed from before (status.debts)");
        }
        let under_way = restart.members.iter().filter(|member| member.is_under_way());
        let names: Vec<&str> = under_way.map(|member| member.node.as_str()).collect();
        if restart.request.strategy == Strategy::Rolling && !names.is_empty() {
            let (are, then) = match (names.len(), self.policy.max_unavailable) {
                (1, Share::Nodes(1)) => ("is", "one node at a time"),
                (1, _) => ("is", "the next go when it is back"),
                _ => ("are", "the next go when all of them are back"),
            };
            return refuse(
                Code::AnotherInProgress,
                format!("{} {are} under way; {then}", list_names(&names)),
            );
        }
        Ok(())
    }

    /// What keeps every node from going, also those that have failed.
    fn may_begin_at_all(&self, restart: &Restart) -> Check {
        let now = self.snapshot.now;
        if let Some(at) = restart.request.not_before.filter(|at| now < *at) {
            return refuse(Code::NotBefore, format!("the request says not before {at}"));
        }
        self.not_paused()?;
        if let Some(other) = self.snapshot.cluster.overlaps.first() {
            return refuse(
                Code::OverlappingSelectors,
                format!("the SearchCluster {other} selects pods of this one; let one of them go"),
            );
        }
        let owed = |debts: &Debts| !debts.start.is_empty();
        if owed(&self.ledger.debts) || owed(&self.snapshot.ledger.debts) {
            return refuse(Code::Debts, "something is owed from before (status.debts)");
        }
        Ok(())
    }

    /// Passes unless a person has paused the cluster.
    pub(super) fn not_paused(&self) -> Check {
        if self.snapshot.cluster.paused {
            return refuse(Code::Paused, "paused (spec.paused): nothing is stopped");
        }
        Ok(())
    }

    /// Whether something set on the engine for nobody under way any more is still to be set back.
    fn owes_the_engine(&self) -> bool {
        let allocation = self.ledger.debts.allocation.as_ref();
        allocation.is_some_and(|debt| debt.holders.is_empty()) || self.is_exclusion_due()
    }

    /// Lets the members go at once whose set has failed as a whole: they are down already, so no
    /// rule has anything to protect, and masters among them cannot elect one of them one by one.
    /// Nor do they wait for others under way, or for what is owed to an engine that cannot be asked.
    /// Says whether somebody went.
    fn rescue(
        &mut self,
        restart: &Restart,
        scheduled: &Lookup<'_, usize>,
        candidates: &[&'a Pod],
    ) -> bool {
        if candidates.iter().all(|pod| pod.ready) {
            return false;
        }
        let sets = FailedSets::of(&self.view, &self.ledger);
        let lost: Vec<&Pod> =
            candidates.iter().copied().filter(|pod| sets.whole_set_failed(pod)).collect();
        let answers = match self.view.engine() {
            Ok(_) => true,
            Err(refusal) if refusal.code == Code::WrongCluster => return false,
            Err(_) => false,
        };
        if lost.is_empty()
            || (answers && self.owes_the_engine())
            || restart.request.is_at_once()
            || self.may_begin_at_all(restart).is_err()
            || !self.has_finalizer()
        {
            return false;
        }
        let mut gone: Vec<&str> = Vec::new();
        let mut stay = Vec::new();
        let terms = StopImpact { whole_set_failed: true, ..StopImpact::default() };
        for pod in lost {
            let begun = preflight(pod).and_then(|manager| {
                self.begin(restart, scheduled[&*pod.uid], pod, manager, &terms)
            });
            match begun {
                Ok(()) => gone.push(pod.node.as_str()),
                Err(refusal) => stay.push((pod, refusal)),
            }
        }
        if gone.is_empty() {
            return false;
        }
        for (pod, refusal) in stay {
            self.refused(&pod.uid, refusal);
        }
        let all = list_names(&gone);
        let go = if gone.len() == 1 { "goes" } else { "go" };
        let message = format!("{all} {go} first: nobody of their set serves any more");
        for pod in candidates.iter().filter(|pod| !gone.contains(&pod.node.as_str())) {
            self.wait(&pod.uid, Code::NotItsTurn, message.clone());
        }
        true
    }

    /// Whether a pod that holds a slot has failed together with its whole set: then there is nothing
    /// its stop could take away.
    pub(super) fn is_lost(&self, pod: &Pod) -> bool {
        let sets =
            self.stops.sets.get_or_init(|| FailedSets::of(&self.view, &self.snapshot.ledger));
        sets.whole_set_failed(pod)
    }

    /// The rules of the last moment before a stop.
    pub(super) fn may_stop(&self, request: &Request, pod: &Pod) -> Check {
        let pass = self.stops.pass.get_or_init(|| self.look());
        pass.as_ref().map_err(Blocker::clone)?.check_before_stop(pod, request)
    }

    /// The rules for a stop that nobody asked a restart for.
    pub(super) fn may_keep_stopped(&self, pod: &Pod) -> Check {
        let pass = self.look()?;
        let request = Request { strategy: Strategy::Immediate, ..Request::default() };
        pass.check_rules(pod, request.strategy)?;
        pass.check_before_stop(pod, &request)
    }

    /// One look for candidates that go alone.
    pub(super) fn look(&self) -> Result<Evaluation<'a>, Blocker> {
        Evaluation::of(&self.view, &self.ledger, self.policy, &Names::default())
    }

    /// Whether our finalizer is on the SearchCluster; asks for it if not. It comes before anything
    /// that would have to be undone.
    pub(super) fn has_finalizer(&mut self) -> bool {
        let has = self.snapshot.cluster.finalizer;
        if !has {
            self.act(Action::AddFinalizer);
        }
        has
    }

    /// As [`preflight`], for a pod that holds a slot.
    pub(super) fn preflight(&self, pod: &Pod) -> Check {
        preflight(pod).map(|_| ())
    }
}

/// What the engine's silence means for a set that has failed in part: it is not let go by that alone.
fn in_part(sets: &FailedSets<'_>, pod: &Pod, refusal: Blocker) -> Blocker {
    let set = sets.set(pod);
    let unreachable = matches!(refusal.code, Code::EngineUnreachable | Code::WrongCluster);
    if !unreachable || set.failed == 0 {
        return refusal;
    }
    let name = set_of(pod);
    let message = if refusal.code == Code::WrongCluster {
        format!(
            "{}; {} of the {} nodes of {name} have failed, and none is restarted while it is not \
             certain whose engine answers",
            refusal.message, set.failed, set.pods
        )
    } else {
        format!(
            "{}; {} of the {} nodes of {name} have failed: if all had, they would be restarted \
             without asking it",
            refusal.message, set.failed, set.pods
        )
    };
    Blocker { message, ..refusal }
}
