//! One reconcile of one SearchCluster, top to bottom: observe, plan, write or act, requeue.
//!
//! A plan that changes the ledger only writes it; the next plan is made on the same observation with
//! the ledger as written. A stop request is sent, and a pod deleted, only after live reads have
//! confirmed it.

mod live_reads;
mod order;
mod unusable;
mod without_apiserver;

use live_reads::{LookResult, look, stop};
pub(super) use order::NewPhases;
use order::{Order, in_order, prepare_a_stop};
use without_apiserver::OwedStarts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::certificates;
use super::context::Context;
use super::decision_log;
use super::declared;
use super::effective_spec::EffectiveSpec;
use super::execute::Executor;
use super::failure::{Failure, Outcome, both};
use super::observe::now;
use super::requeue::{Next, bounded};
use super::status::Reported;
use crate::status::{failing, gauges, ledger_of, pods_unlisted};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{self as restart, Action, Ledger, Plan, Snapshot, needs_engine, plan};

/// Limit of the observations of one reconcile, and of the ledger writes on one of them: far more than are
/// needed.
const MAX_ROUNDS: usize = 16;
/// Time to wait for the first list of the pods before the watch is checked again.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Result of one attempt.
enum Attempt<T> {
    Done(T),
    /// Another observation is needed, which must read these pods in any case.
    ObserveAgain(BTreeSet<String>),
}

/// A plan that leaves the ledger as it is.
struct Decision {
    snapshot: Box<Snapshot>,
    plan: Plan,
    /// True if the ledger was written after the observation.
    wrote_ledger: bool,
}

/// A plan that was carried out.
struct Acted {
    decision: Decision,
    outcome: Outcome,
    cluster: Arc<SearchCluster>,
    /// Begin of the observation.
    started: Instant,
}

/// Reconciles once. Returns what to wait for then, unless the SearchCluster is gone.
pub(super) async fn reconcile(cx: &mut Context) -> Option<Next> {
    // Apiserver, watches: the SearchCluster, and the events of its pods.
    let cluster = cx.cluster.newest()?;
    cx.pod_watch.drain(&mut cx.observer.pods).await;

    // Apiserver, read before: does it keep each field of the ledger?
    let fault = cx.clients.definition.fault();
    let spec =
        match EffectiveSpec::resolve(&cluster, cx.memory.last_valid.as_ref(), fault.as_deref()) {
            Ok(spec) => spec,
            Err(refusal) => {
                return Some(Box::pin(unusable::report_refused(cx, &cluster, &refusal)).await);
            }
        };
    if spec.is_newest() {
        cx.memory.last_valid = Some(spec.clone());
    }

    // Apiserver, watch: the pods that this spec selects.
    if cx.pod_watch.follow(&spec) {
        cx.observer.reset();
    }
    cx.pod_watch.drain(&mut cx.observer.pods).await;
    if !cx.observer.pods.is_complete() {
        return Some(match cx.pod_watch.error().map(str::to_owned) {
            Some(error) => Box::pin(unusable::report_unlisted(cx, &cluster, &error)).await,
            None => Next::after(FIRST_LIST_TIMEOUT),
        });
    }

    // Managers, if the rest takes long: the starts that the ledger holds.
    let starts = OwedStarts::of(cx, &cluster, &spec);
    let acted = Box::pin(starts.beside(look_and_act(cx, cluster, &spec))).await;
    let result = match acted {
        // Apiserver: report. No outside system: when to reconcile again.
        Ok(Some(acted)) => Box::pin(report_and_requeue(cx, acted, &spec)).await,
        // Reconcile from the beginning, with the new spec.
        Ok(None) => Ok(Next::default()),
        Err(failure) => Err(failure),
    };
    cx.clients.metrics.count_reconcile(result.is_ok());
    Some(match result {
        Ok(next) => next,
        Err(failure) => after_failure(cx, &failure).await,
    })
}

/// Everything but the report; `None` if another spec counts now.
async fn look_and_act(
    cx: &mut Context,
    cluster: Arc<SearchCluster>,
    spec: &EffectiveSpec,
) -> Result<Option<Acted>, Failure> {
    let is_deleting = cluster.metadata.deletion_timestamp.is_some();
    if (spec.is_newest() || is_deleting) && cx.clients.lease.is_held() {
        // Engine, apiserver: the objects of a declared cluster.
        Box::pin(declared::carry_out(cx, &cluster, spec)).await;
    } else {
        cx.observer.shrinking_sets = None;
    }

    if cx.clients.lease.is_held() {
        // Apiserver: the managers' certificates, and the keys that they check tokens with.
        Box::pin(certificates::carry_out(cx, &cluster, spec)).await;
    }

    let result = Box::pin(observe_plan_act(cx, cluster, spec)).await;
    if let Err(Failure::Apiserver(error)) = &result
        && !error.is_conflict()
        && let Some(known) = cx.cluster.looked_at().cloned()
    {
        // Managers: a refusal or a missing answer of the apiserver keeps no engine down.
        OwedStarts::of(cx, &Arc::new(known), spec).send().await;
    }
    result
}

async fn observe_plan_act(
    cx: &mut Context,
    mut cluster: Arc<SearchCluster>,
    spec: &EffectiveSpec,
) -> Result<Option<Acted>, Failure> {
    if !cx.clients.lease.is_held() {
        // Managers.
        OwedStarts::of(cx, &cluster, spec).send().await;
        return Err(Failure::LeaseLost);
    }
    let is_active = cx.observer.is_active(&cluster, &spec.spec);
    // Engine, at rest: settings that late requests of ours have left, and the nodes that it lists.
    let with_engine = !is_active && cx.observer.looks_at_rest(&cluster, &spec.spec).await;
    let mut reads_live = is_active || with_engine;
    let mut must_read = BTreeSet::new();
    let mut has_prepared = false;
    for _ in 0..MAX_ROUNDS {
        // Each round is bounded in time: a long reconcile is not a stuck one.
        cx.memory.progress.note();
        let started = Instant::now();

        // Managers, engine, apiserver (sources, owners, Secrets, the live SearchCluster): observe.
        let look = look(cx, &mut cluster, spec, &must_read, with_engine, reads_live);
        let looked = Box::pin(look).await?;
        reads_live = false;
        let snapshot = match looked {
            LookResult::Snapshot(snapshot) => *snapshot,
            LookResult::Again => continue,
            LookResult::OtherSpec => return Ok(None),
        };

        // No outside system: plan. Apiserver: write the ledger, as often as plans change it.
        let step = Box::pin(plan_and_write(cx, snapshot, &mut cluster, spec, started)).await?;
        let decision = match step {
            Attempt::Done(decision) => decision,
            Attempt::ObserveAgain(pods) => {
                must_read = pods;
                continue;
            }
        };

        // Managers, engine, apiserver (annotations, finalizer): act.
        let outcome = match act(cx, &decision, &mut cluster, spec).await {
            Attempt::Done(Ok(true)) if !has_prepared && prepare_a_stop(&decision.plan.actions) => {
                // The stop waits only for a look that shows the limited allocation.
                has_prepared = true;
                must_read = BTreeSet::new();
                continue;
            }
            Attempt::Done(outcome) => outcome,
            Attempt::ObserveAgain(pods) => {
                must_read = pods;
                continue;
            }
        };

        return Ok(Some(Acted { decision, outcome, cluster, started }));
    }
    Err(Failure::NotSettled(MAX_ROUNDS))
}

/// Plans, and writes the ledger until a plan leaves it as it is.
async fn plan_and_write(
    cx: &mut Context,
    mut snapshot: Snapshot,
    cluster: &mut Arc<SearchCluster>,
    spec: &EffectiveSpec,
    started: Instant,
) -> Result<Attempt<Decision>, Failure> {
    let engine_was_asked = snapshot.engine.is_ok() || needs_engine(&snapshot);
    let (mut wrote_ledger, mut asked_for_finalizer) = (false, false);
    for _ in 0..MAX_ROUNDS {
        let plan = plan(&snapshot, &spec.checked.policy);
        let stale = live_reads::read_before(&plan, &snapshot.ledger, |uid| {
            cx.observer.facts.managers.asked(uid).is_some_and(|at| at < started)
        });
        if !stale.is_empty() {
            return Ok(Attempt::ObserveAgain(stale));
        }
        let Some(Action::WriteLedger(ledger)) = plan.actions.first() else {
            cx.observer.jumps.settle();
            cx.events.record(&plan, cluster, &cx.observer.pods);
            let snapshot = Box::new(snapshot);
            return Ok(Attempt::Done(Decision { snapshot, plan, wrote_ledger }));
        };
        if !asked_for_finalizer && live_reads::needs_finalizer(&snapshot, ledger) {
            asked_for_finalizer = true;
            // Apiserver.
            if live_reads::put_finalizer(cx, &mut snapshot, cluster).await? {
                continue;
            }
        }
        (snapshot, *cluster) = Box::pin(write_ledger(cx, snapshot, cluster, ledger, spec)).await?;
        cx.events.record(&plan, cluster, &cx.observer.pods);
        wrote_ledger = true;
        if !engine_was_asked && needs_engine(&snapshot) {
            return Ok(Attempt::ObserveAgain(BTreeSet::new()));
        }
    }
    Err(Failure::LedgerNotSettled(MAX_ROUNDS))
}

/// Writes the ledger, with the report of the next plan. Returns snapshot and SearchCluster as they are after
/// that.
async fn write_ledger(
    cx: &mut Context,
    mut snapshot: Snapshot,
    cluster: &SearchCluster,
    ledger: &Ledger,
    spec: &EffectiveSpec,
) -> Result<(Snapshot, Arc<SearchCluster>), Failure> {
    let policy = &spec.checked.policy;
    let before = std::mem::replace(&mut snapshot.ledger, ledger.clone());
    snapshot.cluster.has_status = true;
    snapshot.jumped = 0;
    let report = restart::report(&snapshot, policy, &plan(&snapshot, policy));
    let report = spec.report_refusal(report, snapshot.now);
    let report = cx.memory.declared.report(report, &snapshot, policy);
    let report = cx.memory.certificates.seen.report(report, snapshot.now);

    // Apiserver: compare-and-set on the ledger that the plan was made from.
    let written = cx.status.write(cluster, report, &before, ledger.clone()).await?;
    let written = cx.cluster.replace(written);
    cx.observer.jumps.settle();

    let starts = std::mem::take(&mut cx.memory.start_times);
    let (changes, starts) = crate::decision_log::between(&before, ledger, now(), starts);
    cx.memory.start_times = starts;
    crate::decision_log::record(&changes, &cx.name, &cx.clients.metrics);
    cx.memory.requeue.after_ledger();
    // Take the ledger as the apiserver returned it: later decisions are compared with the stored one.
    snapshot.ledger = ledger_of(&written);
    Ok((snapshot, written))
}

/// Carries out the plan. Its actions do not depend on each other: one that fails stops no other.
async fn act(
    cx: &mut Context,
    decision: &Decision,
    cluster: &mut Arc<SearchCluster>,
    spec: &EffectiveSpec,
) -> Attempt<Outcome> {
    let Decision { snapshot, plan, wrote_ledger } = decision;
    cx.observer.flushes.keep_for(&snapshot.ledger);
    let Order { first, mut stops, last } = in_order(&plan.actions);
    if cx.pod_watch.old().is_some() {
        // The state of the other pods is not known.
        stops.clear();
    }
    let last = cx.memory.new_phases.hold_back(last, Instant::now());
    let drain = |action: &&&Action| matches!(action, Action::Drain { .. });
    let drain: Vec<String> =
        first.iter().filter(drain).filter_map(|action| action.pod().map(str::to_owned)).collect();
    if !drain.is_empty() {
        // Apiserver: when Services stop sending them requests.
        cx.observer.questions.endpoints.follow(&cx.clients.api, cx.cluster.namespace(), drain);
    }
    if stops.is_empty() {
        // Nothing waits between the two parts.
        return Attempt::Done(execute(cx, &[first, last].concat(), cluster).await);
    }
    let outcome = execute(cx, &first, cluster).await;
    if *wrote_ledger {
        // The observation is older than the ledger.
        return Attempt::ObserveAgain(live_reads::pods_of(&stops));
    }
    let outcome = both(outcome, stop(cx, snapshot, &stops, cluster, spec).await);
    Attempt::Done(both(outcome, execute(cx, &last, cluster).await))
}

/// Executes actions at the same time, and stores the answers.
async fn execute(
    cx: &mut Context,
    actions: &[&Action],
    cluster: &mut Arc<SearchCluster>,
) -> Outcome {
    let executor = Executor::new(cx, cluster);
    let executed = executor.execute_all(actions).await;
    for pod in executed.pods {
        cx.observer.pods.put(pod);
    }
    if let Some(changed) = executed.cluster {
        *cluster = cx.cluster.replace(changed);
    }
    cx.observer.flushes.note(executed.flushed);
    let changes_sets = |action: &&Action| {
        matches!(action, Action::RemoveNode { .. } | Action::RemoveNodeSet { .. })
    };
    if actions.iter().any(changes_sets) {
        cx.observer.shrinking_sets = None;
        cx.memory.declared.attempt_now();
    }
    executed.outcome
}

/// Reports decision and result, and returns what to wait for.
async fn report_and_requeue(
    cx: &mut Context,
    acted: Acted,
    spec: &EffectiveSpec,
) -> Result<Next, Failure> {
    let Acted { decision, outcome, cluster, started } = acted;
    let Decision { snapshot, plan, .. } = decision;
    decision_log::log(&cx.name, &cx.memory.decision_log.lines(&snapshot, &plan));
    if outcome.is_ok() {
        let starts = std::mem::take(&mut cx.memory.start_times);
        let (changes, starts) =
            crate::decision_log::of_actions(&plan.actions, &snapshot.ledger, snapshot.now, starts);
        cx.memory.start_times = starts;
        crate::decision_log::record(&changes, &cx.name, &cx.clients.metrics);
    }
    let after = match &outcome {
        Ok(acted) => cx.memory.requeue.after_plan(&plan, *acted),
        Err(failure) if failure.is_conflict() => cx.memory.requeue.after_conflict(),
        Err(_) => cx.memory.requeue.after_failure(Some(&snapshot.ledger)),
    };
    let mut report = restart::report(&snapshot, &spec.checked.policy, &plan);
    if let Err(failure) = &outcome
        && cx.memory.requeue.is_failing()
    {
        report = failing(report, failure, snapshot.now);
    }
    if let Some(error) = cx.pod_watch.old() {
        report = pods_unlisted(report, error, snapshot.now);
    }
    let report = spec.report_refusal(report, snapshot.now);
    let report = cx.memory.declared.report(report, &snapshot, &spec.checked.policy);
    let report = cx.memory.certificates.seen.report(report, snapshot.now);
    let ends = &cx.memory.certificates.seen.ends;
    cx.clients.metrics.set_gauges(&cx.name, Some(gauges(&report, &snapshot.ledger, ends)));

    // Managers, if the report takes long: also the starts after stops that were sent just now.
    let starts = OwedStarts::of(cx, &cluster, spec);
    // Apiserver: the report, if it is due.
    let reported = cx.status.report(&cluster, report, &snapshot.ledger);
    let due = match Box::pin(starts.beside(reported)).await? {
        Reported::Written(written) => {
            cx.cluster.replace(*written);
            None
        }
        Reported::DueIn(due) => Some(due),
        Reported::Unchanged => None,
    };
    if outcome.is_err_and(|failure| failure.is_conflict()) {
        cx.refresh_cluster().await;
    }
    let after = bounded(after, &snapshot, cx.observer.facts.managers.has_unasked(), due);
    let missing = cx.observer.facts.missing.due_in(Instant::now());
    let due = [cx.memory.declared.due_in(), cx.memory.certificates.due_in(), missing];
    let after = due.into_iter().flatten().fold(after, Duration::min);
    tracing::debug!(
        cluster = cx.name,
        milliseconds = started.elapsed().as_millis(),
        "reconciled; next in {after:?}; actions {:?}; waiting {:?}",
        plan.actions,
        plan.waiting
    );
    Ok(Next { after, seen: Some(snapshot), unseen: None })
}

/// Returns the time of the next attempt after a failure, and the nodes that are still under way.
pub(super) async fn after_failure(cx: &mut Context, failure: &Failure) -> Next {
    if failure.is_conflict() {
        tracing::info!("another client wrote first, reading again: {failure}");
        let after = cx.memory.requeue.after_conflict();
        cx.refresh_cluster().await;
        return Next::failed(after, cx.cluster.looked_at().map(ledger_of));
    }
    let ledger = cx.cluster.looked_at().map(ledger_of);
    let after = cx.memory.requeue.after_failure(ledger.as_ref());
    tracing::warn!("reconcile failed, retrying in {after:?}: {failure}");
    Next::failed(after, ledger)
}
