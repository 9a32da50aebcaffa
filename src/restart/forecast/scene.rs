//! The snapshot a dry run begins with: as it was read, with the request in question on it.

use std::collections::BTreeSet;

use super::{Basis, back, decided, ledger_after, of_cluster, uids};
use crate::annotation::{CANCEL, PHASE, REQUEST};
use crate::{
    Action, Code, Debts, Ending, Ledger, Member, Policy, Request, Snapshot, Step, Waiting,
};

/// Id of a request that nobody made.
const SUPPOSED: &str = "supposed";

/// A working copy.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) snapshot: Snapshot,
    pub(super) basis: Basis,
    /// What keeps a request waiting that is not the one under way.
    pub(super) held: Option<Waiting>,
}

impl Scene {
    /// Puts the request in question on the SearchCluster, unless there is a restart already and no
    /// other is asked about.
    pub(super) fn of(snapshot: &Snapshot, policy: &Policy, request: Option<&Request>) -> Self {
        let mut scene = Self { snapshot: snapshot.clone(), basis: Basis::Supposed, held: None };
        // Its lack takes one write, and keeps nobody from going.
        scene.snapshot.cluster.finalizer = true;
        match request {
            Some(request) => {
                scene.step_aside();
                scene.suppose(request.clone());
            }
            None if snapshot.ledger.restart.is_some() => scene.basis = Basis::UnderWay,
            None => scene.ask(policy),
        }
        scene
    }

    /// Lets the restart under way be over.
    fn step_aside(&mut self) {
        let under_way = uids(&self.snapshot.ledger, Member::is_under_way);
        finish(&mut self.snapshot, &under_way);
        self.snapshot.ledger.queued = None;
        let Some(other) = self.snapshot.ledger.restart.take() else { return };
        let id = other.request.id;
        let message = format!("restart {id} is under way: the request waits until it is over");
        self.held = Some(of_cluster(Code::AnotherInProgress, message));
    }

    /// Finds the request that is about to be taken up; without one, supposes one for every node.
    fn ask(&mut self, policy: &Policy) {
        let first = decided(&self.snapshot, policy);
        let after = ledger_after(&first.actions, &self.snapshot.ledger);
        if after.restart.is_some() || after.queued.is_some() {
            self.basis = Basis::Asked;
            return;
        }
        let claimed = first.actions.iter().find_map(|action| {
            let Action::ClaimTrigger { request, .. } = action else { return None };
            Some(request.clone())
        });
        self.basis = if claimed.is_some() { Basis::Asked } else { Basis::Supposed };
        let every = || Request { id: SUPPOSED.into(), ..Request::default() };
        self.suppose(claimed.unwrap_or_else(every));
    }

    /// Puts a request there, as if it came in now.
    fn suppose(&mut self, request: Request) {
        let Snapshot { cluster, ledger, .. } = &mut self.snapshot;
        ledger.handled.retain(|id| *id != request.id);
        cluster.has_status = true;
        cluster.annotations.remove(PHASE);
        cluster.annotations.remove(CANCEL);
        // What cannot be written as JSON is refused as what it then is: no request.
        let text = serde_json::to_string(&request).unwrap_or_default();
        cluster.annotations.insert(REQUEST.into(), text);
    }

    /// The request that stands there, if no restart came of it.
    pub(super) fn request(&self) -> Request {
        let text = self.snapshot.cluster.annotations.get(REQUEST);
        text.and_then(|text| Request::parse(text).ok()).unwrap_or_default()
    }

    /// Goes on to the moment when everybody under way is back and nothing is owed, with those that
    /// were `chosen` now yet to be chosen.
    pub(super) fn go_on(
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
                member.step = Step::Scheduled;
            }
        }
        finish(&mut self.snapshot, under_way);
    }
}

/// Ends the part of these members as asked.
pub(super) fn finish(snapshot: &mut Snapshot, done: &BTreeSet<String>) {
    snapshot.ledger.debts = Debts::default();
    // What we have set is set back by then.
    if let Ok(engine) = &mut snapshot.engine
        && let Ok(allocation) = &mut engine.allocation
        && let Some(ours) = allocation.marker.take_if(|one| one.cluster == snapshot.cluster.name)
    {
        allocation.setting = ours.before;
    }
    let mut over = Vec::new();
    let restart = snapshot.ledger.restart.iter_mut();
    for member in restart.flat_map(|restart| &mut restart.members) {
        if done.contains(&member.pod_uid) {
            member.step = Step::Finished;
            member.ending = Some(Ending::done());
            over.push(member.clone());
        }
    }
    back::bring(snapshot, &over);
}
