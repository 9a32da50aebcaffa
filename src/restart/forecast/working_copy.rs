//! The snapshot that a forecast starts from: as it was read, with the request in question on it.

use std::collections::BTreeSet;

use super::{Basis, ledger_after, of_cluster, plan_without_patches, returned_nodes, uids};
use crate::annotation::{CANCEL, PHASE, REQUEST};
use crate::{
    Action, Code, Debts, Ending, Ledger, Member, MemberStep, Policy, Request, Snapshot, Waiting,
};

/// Id of an assumed request.
const HYPOTHETICAL_ID: &str = "hypothetical";

#[derive(Debug)]
pub(super) struct WorkingCopy {
    pub(super) snapshot: Snapshot,
    pub(super) basis: Basis,
    /// The restart under way that another request waits for.
    pub(super) queued_behind: Option<Waiting>,
}

impl WorkingCopy {
    /// Puts the request on the SearchCluster. Without a request: the restart under way, or else
    /// the request that is about to be accepted.
    pub(super) fn of(snapshot: &Snapshot, policy: &Policy, request: Option<&Request>) -> Self {
        let mut copy =
            Self { snapshot: snapshot.clone(), basis: Basis::Hypothetical, queued_behind: None };
        // To add a missing finalizer takes one write and blocks no node.
        copy.snapshot.cluster.finalizer = true;
        match request {
            Some(request) => {
                copy.assume_current_is_over();
                copy.assume_request(request.clone());
            }
            None if snapshot.ledger.restart.is_some() => copy.basis = Basis::UnderWay,
            None => copy.use_pending_request(policy),
        }
        copy
    }

    /// Assumes that the restart under way has ended.
    fn assume_current_is_over(&mut self) {
        let under_way = uids(&self.snapshot.ledger, Member::is_under_way);
        finish(&mut self.snapshot, &under_way);
        self.snapshot.ledger.queued = None;
        let Some(other) = self.snapshot.ledger.restart.take() else { return };
        let id = other.request.id;
        let message = format!("restart {id} is under way: the request waits until it is over");
        self.queued_behind = Some(of_cluster(Code::AnotherInProgress, message));
    }

    /// Takes the request that is about to be accepted; if there is none, assumes one for every node.
    fn use_pending_request(&mut self, policy: &Policy) {
        let first = plan_without_patches(&self.snapshot, policy);
        let after = ledger_after(&first.actions, &self.snapshot.ledger);
        if after.restart.is_some() || after.queued.is_some() {
            self.basis = Basis::Requested;
            return;
        }
        let claimed = first.actions.iter().find_map(|action| {
            let Action::ClaimTrigger { request, .. } = action else { return None };
            Some(request.clone())
        });
        self.basis = if claimed.is_some() { Basis::Requested } else { Basis::Hypothetical };
        let of_every_node = || Request { id: HYPOTHETICAL_ID.into(), ..Request::default() };
        self.assume_request(claimed.unwrap_or_else(of_every_node));
    }

    /// Puts the request into the annotation, as if a user made it now.
    fn assume_request(&mut self, request: Request) {
        let Snapshot { cluster, ledger, .. } = &mut self.snapshot;
        ledger.handled.retain(|id| *id != request.id);
        cluster.has_status = true;
        cluster.annotations.remove(PHASE);
        cluster.annotations.remove(CANCEL);
        // A request that cannot be written as JSON becomes an empty text, which is refused.
        let text = serde_json::to_string(&request).unwrap_or_default();
        cluster.annotations.insert(REQUEST.into(), text);
    }

    /// The request in the annotation.
    pub(super) fn request(&self) -> Request {
        let text = self.snapshot.cluster.annotations.get(REQUEST);
        text.and_then(|text| Request::parse(text).ok()).unwrap_or_default()
    }

    /// Assumes that every node under way is back and all debts are paid. The nodes that are
    /// `chosen` now are scheduled again.
    pub(super) fn advance_past(
        &mut self,
        ledger: Ledger,
        under_way: &BTreeSet<String>,
        chosen: &BTreeSet<String>,
    ) {
        self.snapshot.ledger = ledger;
        for key in [REQUEST, CANCEL] {
            self.snapshot.cluster.annotations.remove(key);
        }
        let restart = self.snapshot.ledger.restart.iter_mut();
        for member in restart.flat_map(|restart| &mut restart.members) {
            if chosen.contains(&member.pod_uid) {
                member.step = MemberStep::Scheduled;
            }
        }
        finish(&mut self.snapshot, under_way);
    }
}

/// Finishes these members with the outcome `done`.
pub(super) fn finish(snapshot: &mut Snapshot, done: &BTreeSet<String>) {
    snapshot.ledger.debts = Debts::default();
    // By then our allocation setting is restored.
    if let Ok(engine) = &mut snapshot.engine
        && let Ok(allocation) = &mut engine.allocation
        && let Some(ours) = allocation.marker.take_if(|one| one.cluster == snapshot.cluster.name)
    {
        allocation.setting = ours.before;
    }
    let mut finished = Vec::new();
    let restart = snapshot.ledger.restart.iter_mut();
    for member in restart.flat_map(|restart| &mut restart.members) {
        if done.contains(&member.pod_uid) {
            member.step = MemberStep::Finished;
            member.ending = Some(Ending::done());
            finished.push(member.clone());
        }
    }
    // Between two nodes nobody is under way, and the cluster still recovers from the last one.
    if snapshot.ledger.members().any(|member| member.step == MemberStep::Finished) {
        returned_nodes::bring_back(snapshot, &finished);
    }
}
