//! Nodes that leave: reads the facts for a decision, and carries one action out. `stayput_declare::leave`
//! decides.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::apiserver::read_again;
use crate::context::Context;
use crate::declared::objects::{ExistingObjects, remove, scale};
use crate::effective_spec::EffectiveSpec;
use crate::execute::Executor;
use crate::failure::Failure;
use crate::lease::Lease;
use crate::observe::{Observer, now};
use crate::reconcile::is_same_generation;
use crate::status::ledger_of;
use stayput_declare::{self as declare, Action, LeaveFacts, LeavePlan, Leaving};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{
    self as restart, Event, Known, Ledger, Reason, RemovedExclusion, UpdateStep,
};

/// Interval while no maintenance window is open.
const WINDOW_INTERVAL: Duration = Duration::from_secs(10);

/// Result of one step.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The decision.
    pub(super) turn: LeavePlan,
    /// Time until the next step, where the verdict does not set it.
    pub(super) due_in: Option<Duration>,
}

/// Work that comes before nodes leave.
pub(super) struct First<'a> {
    /// Reason why the declared objects are not done.
    pub(super) waiting: Option<&'a str>,
    /// Number of nodes to be restarted, or why it is not known yet.
    pub(super) pending: &'a Known<u32>,
}

/// Takes one step for the nodes that leave; replaces `cluster` by its newest state.
pub(super) async fn step(
    cx: &mut Context,
    cluster: &mut Arc<SearchCluster>,
    spec: &EffectiveSpec,
    found: &ExistingObjects,
    first: &First<'_>,
) -> Result<Taken, Failure> {
    let sets = sets(cluster, found);
    let concerns = |set: &declare::Set| set.wanted < set.replicas || !set.is_declared;
    if !sets.iter().any(concerns) && !owes(cluster) {
        cx.observer.leaving.clear();
        return Ok(Taken::default());
    }
    // Apiserver: decisions are made on the live SearchCluster.
    let live = read_again(&cx.clients.api, cluster).await?;
    let is_same = is_same_generation(&live, cluster);
    *cluster = cx.cluster.replace(live);
    if !is_same {
        return Ok(Taken { due_in: Some(Duration::ZERO), ..Taken::default() });
    }
    let ledger = ledger_of(cluster);
    let debts = &ledger.debts.leaving;
    let leaving = sets.iter().flat_map(declare::Set::leaving).chain(debts.nodes.iter().cloned());
    let leaving: BTreeSet<String> = leaving.collect();

    // Engine: the exclusion, nodes, votes and shards.
    let seen = if leaving.is_empty() {
        Ok(declare::Seen::default())
    } else {
        cx.observer.see_leaving(&ledger, &spec.spec, &leaving).await
    };

    // No outside system: what to do now.
    let facts = facts(cx, spec, &ledger, first);
    let turn = declare::leave(&sets, &facts, seen.as_ref().map_err(String::as_str), debts);
    cx.observer.leaving.clone_from(&turn.nodes);
    let Some(action) = &turn.action else {
        let waits_for_window = facts.outside_windows.is_some() && first.waiting.is_none();
        return Ok(Taken { turn, due_in: waits_for_window.then_some(WINDOW_INTERVAL) });
    };

    // The facts may be old if this process was suspended: another replica may lead by now.
    if !cx.clients.lease.is_held() {
        return Err(Failure::LeaseLost);
    }

    // Apiserver or engine: do it.
    tracing::info!("nodes that leave: {action:?}");
    match action {
        Action::Write(leaving) => write(cx, cluster, &ledger, leaving).await?,
        Action::Scale { set, replicas } => {
            let there = found.object(set)?;
            scale(&cx.clients.api, cx.cluster.namespace(), there, *replicas).await?;
            let node = format!("{}-{replicas}", there.name);
            let message = format!("{node} has no shards and no vote any more, and is removed");
            let pod = cx.observer.pods.iter().find(|pod| pod.name == node);
            let event =
                Event { pod: pod.map(|pod| pod.uid.clone()), reason: Reason::NodeRemoved, message };
            cx.events.send(&event, cluster, &cx.observer.pods);
            cx.clients.metrics.count_nodes(UpdateStep::Move.name(), 1);
        }
        Action::Remove { set } => {
            let there = found.object(set)?;
            remove(&cx.clients.api, cx.cluster.namespace(), there).await?;
        }
        Action::Exclude { .. } | Action::ExcludeVoter(_) | Action::ClearVotingExclusions => {
            ask(&cx.observer, &cx.clients.lease, action).await?;
        }
    }
    Ok(Taken { turn, due_in: Some(Duration::ZERO) })
}

/// True if an engine setting for nodes that leave is still to be undone.
pub(super) fn owes(cluster: &SearchCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| !status.ledger.debts.leaving.is_empty())
}

/// The node sets with their wanted counts; every node stays if the cluster is deleted, or not declared any
/// more.
fn sets(cluster: &SearchCluster, found: &ExistingObjects) -> Vec<declare::Set> {
    let is_deleting = cluster.metadata.deletion_timestamp.is_some();
    let declaration = cluster.declaration("").filter(|_| cluster.is_declared() && !is_deleting);
    let declared = declaration.as_ref().map(|declaration| &*declaration.node_sets);
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    declare::sets(name, declared, &found.observed)
}

fn facts(cx: &Context, spec: &EffectiveSpec, ledger: &Ledger, first: &First<'_>) -> LeaveFacts {
    let pods = &cx.observer.pods;
    let node = |uid: &str| pods.by_uid(uid).map(|pod| pod.node.clone());
    let is_late = |one: &&RemovedExclusion| one.may_come_again(now());
    LeaveFacts {
        pods: pods.iter().map(|pod| pod.name.clone()).collect(),
        paused: spec.spec.paused,
        outside_windows: spec.spec.closed_until(now()).map(restart::outside_windows),
        changes: changes(ledger, first),
        busy: ledger.busy_pods().filter_map(node).collect(),
        under_way: ledger.under_way().next().is_some(),
        late_votes: ledger
            .removed_exclusions
            .iter()
            .filter(is_late)
            .map(|one| one.node.clone())
            .collect(),
    }
}

/// Reason why no node may leave yet: higher counts and new sets come first, then changes of the nodes.
fn changes(ledger: &Ledger, first: &First<'_>) -> Option<String> {
    if let Some(waiting) = first.waiting {
        return Some(format!("others come first: {waiting}"));
    }
    if let Some(restart) = &ledger.restart {
        let id = &restart.request.id;
        return Some(format!("the restart {id} comes first: nodes leave when it has ended"));
    }
    if ledger.queued.is_some() {
        return Some("the queued restart comes first: nodes leave when it has ended".to_owned());
    }
    match first.pending {
        Ok(0) => None,
        Ok(1) => Some("changes come first: 1 node waits for its restart".to_owned()),
        Ok(pending) => Some(format!("changes come first: {pending} nodes wait for their restart")),
        Err(unknown) => Some(format!("changes come first: {}", unknown.message)),
    }
}

/// Writes the debts to the ledger; adds the finalizer before, so that the SearchCluster cannot go before they
/// are paid.
async fn write(
    cx: &mut Context,
    cluster: &mut Arc<SearchCluster>,
    before: &Ledger,
    leaving: &Leaving,
) -> Result<(), Failure> {
    let has_finalizer = |name: &String| name == restart::annotation::FINALIZER;
    let finalizers = cluster.metadata.finalizers.as_deref().unwrap_or_default();
    if !leaving.is_empty() && !finalizers.iter().any(has_finalizer) {
        let executor = Executor::new(cx, cluster);
        let executed = executor.execute_all(&[&restart::Action::AddFinalizer]).await;
        executed.outcome?;
        if let Some(changed) = executed.cluster {
            *cluster = cx.cluster.replace(changed);
        }
    }
    let was = &before.debts.leaving;
    let mut ledger = before.clone();
    if let Some(node) = was.voter.as_ref().filter(|_| leaving.voter.is_none()) {
        // The request for the exclusion may have been slow, and may arrive again.
        ledger.removed_exclusions.retain(|one| one.node != *node);
        ledger.removed_exclusions.push(RemovedExclusion { node: node.clone(), at: now() });
    }
    ledger.debts.leaving = leaving.clone();
    let report = cluster.status.as_ref().map(|status| status.report.clone()).unwrap_or_default();
    let written = cx.status.write(cluster, report, before, ledger).await?;
    *cluster = cx.cluster.replace(written);
    for node in leaving.nodes.difference(&was.nodes) {
        let pod = cx.observer.pods.iter().find(|pod| pod.node == *node);
        let event = Event {
            pod: pod.map(|pod| pod.uid.clone()),
            reason: Reason::NodeLeaving,
            message: format!("{node} leaves the cluster: its shards are moved to other nodes"),
        };
        cx.events.send(&event, cluster, &cx.observer.pods);
    }
    Ok(())
}

/// Sends the action to the engine, as long as the Lease is held.
async fn ask(observer: &Observer, lease: &Lease, action: &Action) -> Result<(), Failure> {
    let asked = async {
        let Some((client, identity)) = observer.facts.engine.client() else {
            return Err(Failure::EngineNotObserved);
        };
        match action {
            Action::Exclude { persistent, transient } => {
                client.exclude_names(persistent.as_ref(), transient.as_ref()).await?;
            }
            Action::ExcludeVoter(node) => client.exclude_voter(identity, node).await?,
            Action::ClearVotingExclusions => client.clear_voting_exclusions(identity).await?,
            Action::Write(_) | Action::Scale { .. } | Action::Remove { .. } => {}
        }
        Ok(())
    };
    tokio::select! {
        biased;
        () = lease.lost() => Err(Failure::LeaseLost),
        answered = asked => answered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayput_restart::{Request, Unknown};

    #[test] // proves DECLARE-34
    fn nodes_leave_after_restarts_and_changes() {
        let says = |waiting, pending: &Known<u32>| {
            changes(&Ledger::default(), &First { waiting, pending })
        };
        assert_eq!(says(None, &Ok(0)), None);
        let others = says(Some("masters join one at a time"), &Ok(0));
        assert_eq!(others.as_deref(), Some("others come first: masters join one at a time"));
        let one = says(None, &Ok(1));
        assert_eq!(one.as_deref(), Some("changes come first: 1 node waits for its restart"));
        let two = says(None, &Ok(2));
        assert_eq!(two.as_deref(), Some("changes come first: 2 nodes wait for their restart"));
        let unknown = says(None, &Err(Unknown { message: "logs-1: not read".into() }));
        assert_eq!(unknown.as_deref(), Some("changes come first: logs-1: not read"));
        let ledger = Ledger { queued: Some(Request::default()), ..Ledger::default() };
        let queued = changes(&ledger, &First { waiting: None, pending: &Ok(0) });
        assert!(queued.is_some_and(|why| why.contains("queued restart")));
    }

    /// There is no engine here: a request to it would fail for another reason.
    #[tokio::test] // proves RESTART-119
    async fn nothing_of_nodes_that_leave_is_written_to_the_engine_without_the_lease() {
        let observer = Observer::of_nothing_for_test();
        for action in [
            Action::Exclude { persistent: None, transient: None },
            Action::ExcludeVoter("logs-2".into()),
            Action::ClearVotingExclusions,
        ] {
            let outcome = ask(&observer, &Lease::lost_for_test(), &action).await;
            assert!(matches!(outcome, Err(Failure::LeaseLost)), "{action:?}: {outcome:?}");
            let outcome = ask(&observer, &Lease::not_needed(), &action).await;
            assert!(matches!(outcome, Err(Failure::EngineNotObserved)), "{action:?}: {outcome:?}");
        }
    }
}
