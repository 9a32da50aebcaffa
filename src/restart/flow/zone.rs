//! A zone goes as a whole or not at all: its nodes get their slots in one write, and nobody is
//! stopped before everybody can be.

use std::borrow::Cow;

use super::next::Refused;
use crate::blocker::{Check, refuse};
use crate::flow::allocation::is_tight;
use crate::lookup::{Lookup, Names};
use crate::planner::Planner;
use crate::rules::{Evaluation, StopImpact, list_names, preflight};
use crate::{Blocker, Code, Ledger, Manager, Member, Pod, Record, Restart, Step};

/// How many nodes a sentence names.
const NAMED: usize = 5;

impl<'a> Planner<'a> {
    /// Gives all candidates their slots in one write, if every rule lets them go as one.
    pub(super) fn choose_together(
        &mut self,
        restart: &Restart,
        scheduled: &Lookup<'_, usize>,
        candidates: &[&'a Pod],
    ) {
        if candidates.len() < scheduled.len() {
            return self.wait_for_pods(restart, candidates);
        }
        match self.judge_together(restart, candidates) {
            Ok(managers) => {
                for (pod, (manager, terms)) in candidates.iter().zip(managers) {
                    let index = scheduled[&*pod.uid];
                    if let Err(refusal) = self.begin(restart, index, pod, manager, &terms) {
                        // Some entries stand in the working copy already: none of it is used.
                        self.ledger = Cow::Borrowed(&self.snapshot.ledger);
                        return self.all_wait(restart, candidates, &[(*pod, refusal)]);
                    }
                }
            }
            Err(refused) => self.all_wait(restart, candidates, &refused),
        }
    }

    /// A node whose pod is being replaced belongs to its zone all the same.
    fn wait_for_pods(&mut self, restart: &Restart, candidates: &[&'a Pod]) {
        let gone = restart.members.iter().filter(|member| {
            member.step == Step::Scheduled && self.view.pod(&member.pod_uid).is_none()
        });
        let gone: Vec<&str> = gone.map(|member| member.node.as_str()).collect();
        let message = format!(
            "{} goes as a whole or not at all, and the pod of {} is gone: waits for the one in its \
             place",
            named(restart),
            list_names(&gone)
        );
        for pod in candidates {
            self.wait(&pod.uid, Code::PodGone, message.clone());
        }
    }

    /// The managers of all candidates, or who may not go and why.
    fn judge_together(
        &self,
        restart: &Restart,
        candidates: &[&'a Pod],
    ) -> Result<Vec<(&'a Manager, StopImpact)>, Vec<Refused<'a>>> {
        let uids: Names<'_> = candidates.iter().map(|pod| pod.uid.as_str()).collect();
        let pass = Evaluation::of(&self.view, &self.ledger, self.policy, &uids);
        let mut managers = Vec::with_capacity(candidates.len());
        let mut refused = Vec::new();
        for pod in candidates.iter().copied() {
            let judged = preflight(pod).and_then(|manager| {
                let pass = pass.as_ref().map_err(Blocker::clone)?;
                pass.check_rules(pod, restart.request.strategy)
                    .map(|()| (manager, pass.stop_impact(pod)))
            });
            match judged {
                Ok(manager) => managers.push(manager),
                Err(refusal) => refused.push((pod, refusal)),
            }
        }
        if refused.is_empty() { Ok(managers) } else { Err(refused) }
    }

    /// Says of everybody why the zone does not go, and what smaller step could.
    fn all_wait(&mut self, restart: &Restart, candidates: &[&'a Pod], refused: &[Refused<'a>]) {
        let Some((_, first)) = refused.first() else { return };
        let alone = self.alone(restart, candidates);
        let whole = format!(
            "{} goes as a whole or not at all, and {} of its {} nodes may not ({}: {}); {alone}",
            named(restart),
            refused.len(),
            candidates.len(),
            first.code.as_str(),
            first.message
        );
        self.tell_of_quorum(refused.iter().map(|(pod, refusal)| (*pod, refusal)));
        self.wait_all(first.code, whole);
        for (pod, refusal) in refused {
            self.refused(&pod.uid, refusal.clone());
        }
        let others = format!(
            "could go, but {} goes as a whole or not at all, and {} may not",
            named(restart),
            list_names(&refused.iter().map(|(pod, _)| pod.node.as_str()).collect::<Vec<_>>())
        );
        for pod in candidates {
            self.wait(&pod.uid, Code::NotItsTurn, others.clone());
        }
    }

    /// Which of them could go one after the other.
    fn alone(&self, restart: &Restart, candidates: &[&'a Pod]) -> String {
        // As if each were asked for by itself: then nobody is waited for that only this zone wants.
        let ledger = Ledger {
            kept_stopped: self.ledger.kept_stopped.clone(),
            debts: self.ledger.debts.clone(),
            ..Ledger::default()
        };
        let Ok(pass) = Evaluation::of(&self.view, &ledger, self.policy, &Names::default()) else {
            return "the engine has to answer first".into();
        };
        let may = |pod: &&&Pod| {
            preflight(pod).is_ok() && pass.check_rules(pod, restart.request.strategy).is_ok()
        };
        let may: Vec<&str> = candidates.iter().filter(may).map(|pod| pod.node.as_str()).collect();
        if may.is_empty() {
            return "none of them could go alone now either".into();
        }
        let named: Vec<String> =
            may.iter().take(NAMED).map(|node| format!("--node {node}")).collect();
        let more = match may.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        format!("a smaller step that could go now: {}{more}, one after the other", named.join(" "))
    }

    /// The rules of the last moment before a stop; for a node that goes with its zone also whether
    /// all of that can be stopped. Once one is, there is no way back, and each of the others follows
    /// as soon as it can itself.
    pub(super) fn may_stop_together(&self, restart: &Restart, pod: &Pod) -> Check {
        if restart.request.is_at_once() {
            self.stops.zone.get_or_init(|| self.zone_may_stop(restart)).clone()?;
        }
        self.may_stop(&restart.request, pod)
    }

    fn zone_may_stop(&self, restart: &Restart) -> Check {
        let took_stop = |member: &Member| {
            let manager = self.view.manager(&member.pod_uid);
            member.stop_sequence > 0
                && manager.is_ok_and(|manager| manager.sequence >= member.stop_sequence)
        };
        if restart.members.iter().any(took_stop) {
            return Ok(());
        }
        for member in restart.members.iter().filter(|member| member.step == Step::Restarting) {
            self.is_poised(restart, member).map_err(|refusal| Blocker {
                code: refusal.code,
                message: format!(
                    "{} is stopped as a whole, and {} cannot be yet: {}",
                    named(restart),
                    member.node,
                    refusal.message
                ),
            })?;
        }
        Ok(())
    }

    /// Whether nothing is missing for a member's stop.
    fn is_poised(&self, restart: &Restart, member: &Member) -> Check {
        let Some(pod) = self.view.pod(&member.pod_uid) else {
            return refuse(Code::PodGone, "its pod is gone, and the one in its place is not back");
        };
        let manager = preflight(pod)?;
        let expected = Self::expected_now(pod, manager)?;
        if expected != member.expected || manager.mounted != expected {
            return refuse(Code::ConfigNotMounted, "the new config is not mounted in it");
        }
        let debts = &self.ledger.debts;
        if let Some(debt) = debts.records.iter().find(|debt| debt.pod_uid == member.pod_uid) {
            let is_ready = |record: &Record| debt.is_about(record) && record.complete;
            if !self.records()?.iter().any(is_ready) {
                return refuse(Code::Preparing, "the engine prepares for its restart");
            }
        }
        let is_held =
            |uid| debts.allocation.as_ref().is_some_and(|debt| debt.holders.contains(uid));
        if is_held(&member.pod_uid) {
            let allocation = self.view.allocation()?;
            if allocation.marker.is_none() || !is_tight(allocation) {
                return refuse(Code::Preparing, "allocation is not limited to primaries");
            }
        }
        if !self.snapshot.flushed.contains(&member.node) {
            return refuse(Code::Preparing, "it is being flushed");
        }
        self.may_stop(&restart.request, pod)
    }
}

/// What goes at once, in words.
fn named(restart: &Restart) -> String {
    format!("zone {}", restart.request.target.zone.as_deref().unwrap_or_default())
}
