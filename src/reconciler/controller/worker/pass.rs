//! One pass: a look, a plan, and what the plan says. A plan that changes the ledger is followed by
//! the next on the same look, with the ledger as written; a stop needs a look of its own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use kube::runtime::watcher;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::Worker;
use super::status::failing;
use crate::cluster::{Checked, SearchCluster};
use crate::controller::apiserver::{Failure, unwatched};
use crate::controller::apply::{Done, Hands};
use crate::controller::bounded::together;
use crate::controller::fresh_id::fresh_id;
use crate::controller::observe::Scene;
use stayput_restart::{
    self as restart, Action, Ledger, Plan, Policy, Snapshot, needs_engine, plan,
};

/// Looks and ledger writes in one pass: far more than a restart needs at once.
const ROUNDS: usize = 16;
/// After a restart, while a request of ours that was slow may still arrive at the engine.
const AFTERMATH: Duration = Duration::from_secs(10);
/// While some managers had no turn in the last look: what they say is not known, or old.
const BEHIND: Duration = Duration::from_secs(1);
/// So often the connection of the watch has had its turn, and nothing came, before the watch counts
/// as heard.
const TURNS: u32 = 4;
/// While the first list of the pods has not come.
const LISTING: Duration = Duration::from_secs(30);
/// What to wait for after a pass.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// For this long at most.
    pub(super) after: Duration,
    /// What was seen, if a look was taken.
    pub(super) seen: Option<Box<Snapshot>>,
}

impl Next {
    pub(super) fn after(after: Duration) -> Self {
        Self { after, seen: None }
    }

    /// Whether a node is on its way.
    pub(super) fn is_under_way(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.ledger.under_way().next().is_some())
    }
}

/// What came of a plan's actions.
pub(super) type Outcome = Result<bool, Failure>;

/// What one look has led to.
enum Turn {
    /// The plan is carried out.
    Done(Box<Snapshot>, Plan, Outcome),
    /// Another look is needed, at these pods in any case.
    Look(BTreeSet<String>),
}

impl Worker {
    /// One pass; none once the SearchCluster is gone.
    pub(super) async fn pass(&mut self) -> Option<Next> {
        let cluster = self.newest()?;
        self.hear_at_once().await;
        let Some(checked) = self.charter.judge(&cluster) else {
            return Some(self.refuse(&cluster).await);
        };
        let cluster = self.charter.apply(cluster);
        self.follow(&cluster, &checked);
        self.hear_at_once().await;
        if !self.eyes.pods.is_complete() {
            return Some(match self.blind.clone() {
                Some(why) => self.grope(&cluster, &why).await,
                None => Next::after(LISTING),
            });
        }
        let result = Box::pin(self.try_pass(cluster, &checked)).await;
        self.metrics.count_pass(result.is_ok());
        Some(match result {
            Ok(next) => next,
            Err(Failure::Conflict(why)) => {
                tracing::info!("somebody else was first: {why}");
                let after = self.pace.conflicted();
                self.look_up().await;
                Next::after(after)
            }
            // The watch will say that it is gone.
            Err(Failure::NotFound(why) | Failure::Failed(why)) => {
                let after = self.pace.failed();
                tracing::warn!("looked in vain, again in {after:?}: {why}");
                Next::after(after)
            }
        })
    }

    /// Reads the SearchCluster, because what is known of it is old.
    pub(super) async fn look_up(&mut self) {
        let (namespace, name) = self.key.clone();
        if let Ok(cluster) = self.api.cluster(&namespace, &name).await {
            self.take(cluster);
        }
    }

    /// Takes in what the watch has already brought. The connection hands over one piece at a time
    /// and reads the next when it has its turn: what came during a long look is many.
    async fn hear_at_once(&mut self) {
        let Some(followed) = &mut self.events else { return };
        let mut turns = 0;
        while turns < TURNS {
            match followed.events.next().now_or_never() {
                Some(Some(Ok(event))) => {
                    self.eyes.pods.hear(event, followed.label.as_deref());
                    turns = 0;
                }
                Some(Some(Err(error))) => {
                    self.is_blinded(&error);
                    return;
                }
                Some(None) => return,
                None => {
                    turns += 1;
                    yield_now().await;
                }
            }
        }
    }

    /// Takes note of what is wrong with the watch of the pods; whether people have to be told.
    pub(super) fn is_blinded(&mut self, error: &watcher::Error) -> bool {
        let why = unwatched("pods", Some(&self.key.0), error);
        tracing::warn!("{why}");
        let is_news = !self.eyes.pods.is_complete() && self.blind.as_ref() != Some(&why);
        self.blind = Some(why);
        is_news
    }

    async fn try_pass(
        &mut self,
        mut cluster: Arc<SearchCluster>,
        checked: &Checked,
    ) -> Result<Next, Failure> {
        if self.eyes.is_alert(&cluster) {
            let (namespace, name) = self.key.clone();
            let live = self.api.cluster(&namespace, &name).await?;
            if live.metadata.uid != cluster.metadata.uid
                || live.metadata.generation != cluster.metadata.generation
                || live.disabled_by_annotation() != cluster.disabled_by_annotation()
            {
                // Another spec: from the beginning, with it.
                self.take(live);
                return Ok(Next::default());
            }
            cluster = self.take(live);
        }
        let mut insist = BTreeSet::new();
        for _ in 0..ROUNDS {
            // Each is bounded; what takes long is not stuck.
            self.health.begin(&self.name());
            let began = Instant::now();
            let others = self.others();
            let scene = Scene {
                cluster: &cluster,
                checked,
                others: &others,
                insist: &insist,
                whole: false,
            };
            let id = fresh_id().map_err(Failure::Failed)?;
            let snapshot = Box::pin(self.eyes.look(&scene, id)).await;
            match self.act_on(snapshot, &mut cluster, checked, began).await? {
                Turn::Look(uids) => insist = uids,
                Turn::Done(snapshot, plan, outcome) => {
                    let all: Vec<&Action> = plan.actions.iter().collect();
                    if outcome.is_ok() {
                        let ledger = &snapshot.ledger;
                        self.chronicle.acted(&all, ledger, snapshot.now, &self.metrics);
                    }
                    let mut after = match &outcome {
                        Ok(acted) => self.pace.done(&plan, *acted),
                        Err(Failure::Conflict(_)) => self.pace.conflicted(),
                        Err(Failure::NotFound(_) | Failure::Failed(_)) => self.pace.failed(),
                    };
                    if is_aftermath(&snapshot) {
                        after = after.min(AFTERMATH);
                    }
                    if self.eyes.managers.are_behind() {
                        after = after.min(BEHIND);
                    }
                    let mut report = restart::report(&snapshot, &checked.policy, &plan);
                    if let Err(failure) = &outcome
                        && self.pace.is_failing()
                    {
                        report = failing(report, failure, snapshot.now);
                    }
                    let report = self.charter.mark(report, snapshot.now);
                    self.show(&report, &snapshot.ledger);
                    let due = self.publish(&cluster, report, &snapshot.ledger).await?;
                    if matches!(outcome, Err(Failure::Conflict(_))) {
                        self.look_up().await;
                    }
                    tracing::debug!(
                        cluster = self.name(),
                        milliseconds = began.elapsed().as_millis(),
                        "looked; again in {after:?}; actions {:?}; waiting {:?}",
                        plan.actions,
                        plan.waiting
                    );
                    let after = due.map_or(after, |due| after.min(due));
                    return Ok(Next { after, seen: Some(snapshot) });
                }
            }
        }
        Err(Failure::Failed(format!("still not at rest after {ROUNDS} looks")))
    }

    /// Plans on what was seen, and carries the plans out.
    async fn act_on(
        &mut self,
        mut snapshot: Snapshot,
        cluster: &mut Arc<SearchCluster>,
        checked: &Checked,
        began: Instant,
    ) -> Result<Turn, Failure> {
        let was_asked = snapshot.engine.is_ok() || needs_engine(&snapshot);
        let mut wrote = false;
        for _ in 0..ROUNDS {
            let plan = plan(&snapshot, &checked.policy);
            let stale = self.stale(&plan, &snapshot, began);
            if !stale.is_empty() {
                return Ok(Turn::Look(stale));
            }
            if let Some(Action::WriteLedger(ledger)) = plan.actions.first() {
                *cluster = self.write_ledger(cluster, &mut snapshot, ledger, checked).await?;
                self.teller.tell(&plan, cluster, &self.eyes.pods);
                wrote = true;
                if !was_asked && needs_engine(&snapshot) {
                    return Ok(Turn::Look(BTreeSet::new()));
                }
                continue;
            }
            self.teller.tell(&plan, cluster, &self.eyes.pods);
            self.forget_flushes(&snapshot.ledger);
            let is_stop = |action: &&Action| matches!(action, Action::Stop { .. });
            let (stops, others): (Vec<&Action>, Vec<&Action>) =
                plan.actions.iter().partition(is_stop);
            let mut outcome = self.carry_out(&others, cluster, &checked.policy).await;
            if !stops.is_empty() && wrote {
                // What was seen is older than the ledger.
                let uids = stops.iter().filter_map(|stop| stop.pod()).map(str::to_owned);
                return Ok(Turn::Look(uids.collect()));
            }
            if !stops.is_empty() {
                // Each action of a plan stands for itself: one that fails keeps no other from it.
                outcome = both(outcome, self.stop(&snapshot, &stops, cluster, checked).await);
            }
            return Ok(Turn::Done(Box::new(snapshot), plan, outcome));
        }
        Err(Failure::Failed(format!("the ledger was written {ROUNDS} times in a row")))
    }

    /// The pods that the plan is about to act on by what was seen before this look.
    fn stale(&self, plan: &Plan, snapshot: &Snapshot, began: Instant) -> BTreeSet<String> {
        let mut uids: BTreeSet<&str> = BTreeSet::new();
        for action in &plan.actions {
            match action {
                Action::Stop { uid, .. } | Action::Start { uid, .. } => drop(uids.insert(uid)),
                Action::WriteLedger(ledger) => uids.extend(given_sequences(snapshot, ledger)),
                _ => {}
            }
        }
        let is_old = |uid: &&str| self.eyes.managers.asked(uid).is_some_and(|at| at < began);
        uids.into_iter().filter(is_old).map(str::to_owned).collect()
    }

    /// Carries out what can be done at the same time; whether anything outside was changed.
    pub(super) async fn carry_out(
        &mut self,
        actions: &[&Action],
        cluster: &mut Arc<SearchCluster>,
        policy: &Policy,
    ) -> Outcome {
        let hands =
            Hands { eyes: &self.eyes, cluster: cluster.as_ref(), policy, metrics: &self.metrics };
        let calls = actions.iter().filter(|action| !matches!(action, Action::RecordEvent(_)));
        let results = together(calls.map(|action| hands.carry_out(action)).collect()).await;
        let mut outcome = Ok(false);
        let mut acted = false;
        for result in results {
            match result {
                Ok(Done::Pod(facts)) => drop(self.eyes.pods.put(*facts)),
                Ok(Done::Cluster(changed)) => {
                    *cluster = self.take(*changed);
                    acted = true;
                }
                Ok(Done::Flushed(node)) => {
                    self.eyes.flushed.insert(node);
                    acted = true;
                }
                Ok(Done::Moved(facts)) => {
                    self.eyes.pods.put(*facts);
                    acted = true;
                }
                Ok(Done::Nothing) => acted = true,
                // The watch will say what became of it.
                Err(Failure::NotFound(why)) => {
                    tracing::info!("too late: {why}");
                }
                Err(failure) => {
                    tracing::warn!("an action came to nothing: {failure}");
                    outcome = both(outcome, Err(failure));
                }
            }
        }
        both(outcome, Ok(acted))
    }

    /// A flush is good for one restart.
    fn forget_flushes(&mut self, ledger: &Ledger) {
        let id = ledger.restart.as_ref().map(|restart| restart.request.id.as_str());
        if self.flushed_for.as_deref() != id {
            self.flushed_for = id.map(str::to_owned);
            self.eyes.flushed.clear();
        }
    }
}

/// What came of both; of two failures the one that is not just a reason to look again, and then the
/// same one whichever came first.
pub(super) fn both(one: Outcome, other: Outcome) -> Outcome {
    let weight = |failure: &Failure| (matches!(failure, Failure::Conflict(_)), failure.to_string());
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one || other),
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
        (Err(one), Err(other)) => Err(if weight(&one) <= weight(&other) { one } else { other }),
    }
}

/// Whether the engine is looked at only because a restart was over a moment ago.
fn is_aftermath(snapshot: &Snapshot) -> bool {
    let ledger = &snapshot.ledger;
    ledger.restart.is_none()
        && ledger.kept_stopped.is_empty()
        && snapshot.cluster.stopped.is_empty()
        && needs_engine(snapshot)
}

/// Uids of the pods whose entries have sequences in `after` that they did not have before: these
/// are counted from what their managers said.
fn given_sequences<'a>(snapshot: &Snapshot, after: &'a Ledger) -> Vec<&'a str> {
    let before = &snapshot.ledger;
    let known: BTreeSet<(&str, u64, u64)> = before
        .members()
        .map(|member| (member.pod_uid.as_str(), member.stop_sequence, member.start_sequence))
        .collect();
    let members = after.members().filter(|member| {
        !known.contains(&(member.pod_uid.as_str(), member.stop_sequence, member.start_sequence))
            && member.stop_sequence > 0
    });
    let fences = after.kept_stopped.iter().filter(|fence| !before.kept_stopped.contains(fence));
    members
        .map(|member| member.pod_uid.as_str())
        .chain(fences.map(|fence| fence.pod_uid.as_str()))
        .collect()
}
