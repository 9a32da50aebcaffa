//! Who goes next in a rolling or immediate restart.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::restart::gates::{Copies, Electorate, Settled, order, preflight, slots};
use crate::restart::lookup::Lookup;
use crate::restart::planner::Planner;
use crate::restart::{
    Action, Code, Color, Engine, Manager, Node, Pod, Refusal, Restart, Step, Strategy,
};

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
        if let Err(refusal) = self.may_begin(&restart) {
            self.wait_all(refusal.code, refusal.sentence.clone());
            for pod in candidates {
                self.refused(&pod.uid, refusal.clone());
            }
            return;
        }
        if !self.has_finalizer() {
            return;
        }
        let mut ground = self.ground();
        let mut taken = false;
        // The elected master is last: a node that a passing state holds back goes before it.
        let master = self.view.engine().ok().and_then(|engine| engine.master.as_deref());
        let mut held_back = false;
        for pod in candidates {
            let elected =
                self.view.node(&pod.node).is_some_and(|node| Some(node.id.as_str()) == master);
            if held_back && elected {
                self.wait(&pod.uid, Code::NotItsTurn, "the elected master goes last");
                continue;
            }
            if taken && restart.request.strategy == Strategy::Rolling {
                self.wait(&pod.uid, Code::NotItsTurn, "one node at a time; its turn comes later");
                continue;
            }
            match self.may_take_slot(&restart, pod, &ground) {
                Ok(manager) => match self.begin(&restart, scheduled[&*pod.uid], pod, manager) {
                    Ok(()) => {
                        taken = true;
                        ground.down.insert(pod.node.clone());
                        ground.unavailable.insert(pod.uid.clone());
                    }
                    Err(refusal) => self.refused(&pod.uid, refusal),
                },
                Err(refusal) => {
                    held_back |=
                        matches!(refusal.code, Code::Health | Code::LastCopy | Code::Quorum);
                    self.refused(&pod.uid, refusal);
                }
            }
        }
    }

    /// What keeps every node from going.
    pub(super) fn may_begin(&self, restart: &Restart) -> Result<(), Refusal> {
        let no = |code, sentence: String| Err(Refusal { code, sentence });
        let now = self.snapshot.now;
        if let Some(at) = restart.request.not_before.filter(|at| now < *at) {
            return no(Code::NotBefore, format!("the request says not before {at}"));
        }
        if self.snapshot.cluster.paused {
            return no(Code::Paused, "paused (spec.paused): nothing is stopped".into());
        }
        if let Some(other) = self.snapshot.cluster.overlaps.first() {
            return no(
                Code::OverlappingSelectors,
                format!("the SearchCluster {other} selects pods of this one; let one of them go"),
            );
        }
        let debts = &self.ledger.debts;
        let held = debts.allocation.as_ref().is_some_and(|debt| debt.holders.is_empty());
        let owed = !debts.start.is_empty() || !self.snapshot.ledger.debts.start.is_empty();
        if held || owed {
            return no(Code::Debts, "something is owed from before (status.debts)".into());
        }
        if restart.request.strategy == Strategy::Rolling
            && let Some(other) = restart.members.iter().find(|member| member.is_under_way())
        {
            return no(
                Code::AnotherInProgress,
                format!("{} is under way; one node at a time", other.node),
            );
        }
        Ok(())
    }

    /// What keeps this node from going now.
    fn may_take_slot(
        &self,
        restart: &Restart,
        pod: &'a Pod,
        ground: &Ground<'_>,
    ) -> Result<&'a Manager, Refusal> {
        let manager = preflight(pod)?;
        let rules = ground.rules.as_ref().map_err(Refusal::clone)?;
        // A node that is down anyway takes no slot from the others, but has to fit beside them.
        slots(ground.others(&pod.uid), self.policy.max_unavailable)?;
        if restart.request.strategy == Strategy::Rolling {
            rules.settled.gate(&pod.node, self.view.is_up(pod))?;
        }
        rules.may_lose(&pod.node, &ground.down, self.policy.allow_outage)?;
        Ok(manager)
    }

    /// The rules of the last moment before a stop.
    pub(super) fn may_stop(&self, pod: &Pod) -> Result<(), Refusal> {
        let ground = self.ground();
        let rules = ground.rules.as_ref().map_err(Refusal::clone)?;
        slots(ground.others(&pod.uid), self.policy.max_unavailable)?;
        // With allocation tightened a replica that is missing stays missing; but red is red, and in
        // a rolling restart what is being built or moved was not so when the slot was given.
        let rolling = self.restart().is_some_and(|one| one.request.strategy == Strategy::Rolling);
        if self.view.is_up(pod)
            && let Ok(health) = &self.view.engine()?.health
        {
            let moving =
                health.initializing + health.relocating + health.delayed + health.in_flight_fetch;
            if health.color == Color::Red || (rolling && moving > 0) {
                let sentence = format!(
                    "the cluster has changed since ({} copies being built, moved or looked for): waits until \
                     it is at rest again",
                    moving
                );
                return Err(Refusal { code: Code::Health, sentence });
            }
        }
        rules.may_lose(&pod.node, &ground.down, self.policy.allow_outage)
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
    pub(super) fn preflight(&self, pod: &Pod) -> Result<(), Refusal> {
        preflight(pod).map(|_| ())
    }

    /// What all candidates are judged by.
    fn ground(&self) -> Ground<'a> {
        let fenced: BTreeSet<String> =
            self.ledger.fences.iter().map(|fence| fence.node.clone()).collect();
        let members = self.ledger.restart.iter().flat_map(|restart| &restart.members);
        let under_way: BTreeSet<&str> = members
            .filter(|member| member.is_under_way())
            .map(|member| member.pod_uid.as_str())
            .collect();
        // A member under way counts also while a list lacks its pod.
        let mut unavailable: BTreeSet<String> =
            under_way.iter().map(|uid| (*uid).to_owned()).collect();
        let mut expected_data = 0;
        for pod in self.view.pods().filter(|pod| !fenced.contains(&pod.node)) {
            let node = self.view.node(&pod.node);
            if !self.view.serves(pod, node) {
                unavailable.insert(pod.uid.clone());
            }
            // A node that is not listed may be a data node: then it is missed.
            expected_data += usize::from(node.is_none_or(Node::holds_data));
        }
        let rules = self.view.engine().map(|engine| Rules {
            settled: Settled::of(engine, &fenced, expected_data),
            electorate: Electorate::of(engine),
            engine,
            copies: OnceCell::new(),
        });
        Ground { unavailable, down: self.view.down(&self.ledger), rules }
    }
}

/// What all candidates are judged by; looked up once a plan.
struct Ground<'a> {
    /// Names of nodes that are down, or may be at any moment because of us.
    down: BTreeSet<String>,
    /// Uids of the pods that do not serve, without those kept stopped.
    unavailable: BTreeSet<String>,
    /// What the engine's view says.
    rules: Result<Rules<'a>, Refusal>,
}

impl Ground<'_> {
    /// How many pods do not serve, this one aside.
    fn others(&self, uid: &str) -> usize {
        self.unavailable.len() - usize::from(self.unavailable.contains(uid))
    }
}

/// The rules, with the engine's view arranged for them.
struct Rules<'a> {
    settled: Settled,
    electorate: Electorate<'a>,
    engine: &'a Engine,
    /// Arranged once somebody comes so far: there are many.
    copies: OnceCell<Copies<'a>>,
}

impl Rules<'_> {
    /// Quorum and last copies.
    fn may_lose(&self, node: &str, down: &BTreeSet<String>, allowed: bool) -> Result<(), Refusal> {
        // The node itself is judged as if it were up: its own stop is what is asked about.
        let mut others = std::borrow::Cow::Borrowed(down);
        if down.contains(node) {
            others.to_mut().remove(node);
        }
        self.electorate.gate(node, &others, allowed)?;
        self.copies.get_or_init(|| Copies::of(self.engine)).gate(node, &others, allowed)
    }
}
