//! Live reads and what depends on them: the look that a decision is made from, the reads that confirm a
//! stop or a deletion, and the finalizer, which is put there before the write that opens a restart.

use std::collections::BTreeSet;
use std::sync::Arc;

use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::names::random_id;
use stayput_restart::{Action, Ledger, Plan, Snapshot, plan};

use crate::apiserver::{ApiError, Apiserver, read_again};
use crate::clusters::asks_for_the_same;
use crate::concurrency::join_limited;
use crate::context::Context;
use crate::effective_spec::EffectiveSpec;
use crate::failure::{Failure, Outcome, both};
use crate::observe::{Scope, refresh};
use crate::pods::{PodFacts, Pods, Reading};
use crate::reconcile::execute;

/// Result of a look.
pub(super) enum LookResult {
    Snapshot(Box<Snapshot>),
    /// The observation is of an older version of the SearchCluster.
    Again,
    /// Another spec counts now.
    OtherSpec,
}

/// Observes managers, engine and apiserver; if `reads_live`, reads the SearchCluster at the same time:
/// decisions are made on the live one, which is usually unchanged. `must_read` and `with_engine` are those of
/// the [`Scope`].
pub(super) async fn look(
    cx: &mut Context,
    cluster: &mut Arc<SearchCluster>,
    spec: &EffectiveSpec,
    must_read: &BTreeSet<String>,
    with_engine: bool,
    reads_live: bool,
) -> Result<LookResult, Failure> {
    let (api, known) = (cx.clients.api.clone(), Arc::clone(cluster));
    let live =
        async { if reads_live { read_again(&api, &known).await.map(Some) } else { Ok(None) } };
    let (live, snapshot) = tokio::join!(live, observe(cx, &known, spec, must_read, with_engine));
    if let Some(live) = live? {
        let is_known = live.metadata.resource_version == known.metadata.resource_version;
        let is_same_spec = is_same_generation(&live, &known)
            && live.disabled_by_annotation() == known.disabled_by_annotation();
        let live = cx.cluster.replace(live);
        if !is_same_spec {
            return Ok(LookResult::OtherSpec);
        }
        *cluster = live;
        if !is_known {
            return Ok(LookResult::Again);
        }
    }
    Ok(LookResult::Snapshot(Box::new(snapshot?)))
}

async fn observe(
    cx: &mut Context,
    cluster: &SearchCluster,
    spec: &EffectiveSpec,
    must_read: &BTreeSet<String>,
    with_engine: bool,
) -> Result<Snapshot, Failure> {
    let others = cx.cluster.others();
    let EffectiveSpec { spec, checked, .. } = spec;
    let scope = Scope { cluster, spec, checked, others: &others, must_read, with_engine };
    Ok(Box::pin(cx.observer.observe(&scope, random_id()?)).await)
}

/// Sends the stop requests, and deletes the pods, that live reads confirm. True if there were any.
pub(super) async fn stop(
    cx: &mut Context,
    snapshot: &Snapshot,
    stops: &[&Action],
    cluster: &mut Arc<SearchCluster>,
    spec: &EffectiveSpec,
) -> Outcome {
    // Apiserver: the live SearchCluster and pods.
    let Some(mut unread) = read_live(cx, stops, cluster, spec).await? else { return Ok(false) };
    // Engine: once more if the last answer is old. Then a person may have paused meanwhile.
    let engine = Box::pin(cx.observer.read_engine_again(spec)).await;
    if engine.is_some() {
        unread = match read_live(cx, stops, cluster, spec).await? {
            Some(unread) => unread,
            None => return Ok(false),
        };
    }

    // No outside system: the same plan on the live state.
    let mut fresh = refresh(snapshot, cluster, &spec.spec, &cx.observer.pods);
    if let Some(engine) = engine {
        fresh.engine = engine;
    }
    if fresh.ledger != snapshot.ledger {
        return Ok(false);
    }
    let confirmed = confirmed(stops, &plan(&fresh, &spec.checked.policy), &unread.uids);

    // Managers: the stop requests. Apiserver: the pods to delete.
    let stopped =
        if confirmed.is_empty() { Ok(false) } else { execute(cx, &confirmed, cluster).await };
    both(stopped, unread.failure.map_or(Ok(false), |failure| Err(failure.into())))
}

/// Reads the SearchCluster and the pods of these stops. Returns the pods that could not be read; `None` if
/// another spec counts now.
async fn read_live(
    cx: &mut Context,
    stops: &[&Action],
    cluster: &mut Arc<SearchCluster>,
    spec: &EffectiveSpec,
) -> Result<Option<Unread>, Failure> {
    // The pods are read by this spec, and do not count if the live one differs.
    let reading = Reading::of(&spec.spec);
    let pods = read_pods(&cx.clients.api, &cx.observer.pods, stops, &reading);
    let (live, (pods, unread)) = tokio::join!(read_again(&cx.clients.api, cluster), pods);
    let live = live?;
    let is_same = is_same_generation(&live, cluster);
    *cluster = cx.cluster.replace(live);
    if !is_same {
        return Ok(None);
    }
    for pod in pods {
        cx.observer.pods.put(pod);
    }
    Ok(Some(unread))
}

/// True for an action that live reads must confirm.
pub(super) const fn need_live_reads(action: &Action) -> bool {
    matches!(action, Action::Stop { .. } | Action::DeletePod { .. })
}

/// The pods of stops that could not be read.
#[derive(Default)]
struct Unread {
    uids: BTreeSet<String>,
    /// Error of the last of them.
    failure: Option<ApiError>,
}

/// Reads the pods of these stops once more.
async fn read_pods(
    api: &Apiserver,
    known: &Pods,
    stops: &[&Action],
    reading: &Reading,
) -> (Vec<PodFacts>, Unread) {
    let pods: Vec<Arc<PodFacts>> =
        stops.iter().filter_map(|stop| known.by_uid(stop.pod()?).cloned()).collect();
    let read =
        async |pod: &PodFacts| (pod.uid.clone(), api.objects(&pod.namespace).get(&pod.name).await);
    let read: Vec<_> = join_limited(pods.iter().map(|pod| read(pod)).collect()).await;
    let (mut live, mut unread) = (Vec::new(), Unread::default());
    for (uid, pod) in read {
        match pod {
            Ok(pod) => live.extend(PodFacts::of(&pod, reading)),
            Err(failure) => {
                unread.uids.insert(uid);
                unread.failure = Some(failure);
            }
        }
    }
    (live, unread)
}

/// The stops that the plan from live reads has as well, of pods that could be read.
fn confirmed<'a>(stops: &[&'a Action], again: &Plan, unread: &BTreeSet<String>) -> Vec<&'a Action> {
    let is_read = |stop: &Action| stop.pod().is_some_and(|uid| !unread.contains(uid));
    let is_confirmed = |stop: &&Action| again.actions.contains(stop) && is_read(stop);
    stops.iter().copied().filter(is_confirmed).collect()
}

/// True if both are the same object with the same spec.
pub(crate) fn is_same_generation(live: &SearchCluster, known: &SearchCluster) -> bool {
    live.metadata.uid == known.metadata.uid && live.metadata.generation == known.metadata.generation
}

/// Uids of the pods of these actions.
pub(super) fn pods_of(actions: &[&Action]) -> BTreeSet<String> {
    actions.iter().filter_map(|action| action.pod()).map(str::to_owned).collect()
}

/// Uids of the pods that the plan is about to act on although their managers were last asked before this
/// observation began; `is_old` is true for such a pod.
pub(super) fn read_before(
    plan: &Plan,
    ledger: &Ledger,
    is_old: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut uids: BTreeSet<&str> = BTreeSet::new();
    for action in &plan.actions {
        match action {
            Action::Stop { uid, .. }
            | Action::Start { uid, .. }
            | Action::PatchImages { uid, .. }
            | Action::Resize { uid, .. }
            | Action::DeletePod { uid } => drop(uids.insert(uid)),
            Action::WriteLedger(after) => uids.extend(given_sequences(ledger, after)),
            _ => {}
        }
    }
    uids.into_iter().filter(|uid| is_old(uid)).map(str::to_owned).collect()
}

/// Uids of the pods whose entries have sequences in `after` that they did not have before: these are counted
/// from the sequences that their managers have reported.
fn given_sequences<'a>(before: &Ledger, after: &'a Ledger) -> Vec<&'a str> {
    let known: BTreeSet<(&str, u64, u64)> = before
        .members()
        .map(|member| (member.pod_uid.as_str(), member.stop_sequence, member.start_sequence))
        .collect();
    let members = after.members().filter(|member| {
        !known.contains(&(member.pod_uid.as_str(), member.stop_sequence, member.start_sequence))
            && member.stop_sequence > 0
    });
    let kept = after.kept_stopped.iter().filter(|kept| !before.kept_stopped.contains(kept));
    members
        .map(|member| member.pod_uid.as_str())
        .chain(kept.map(|kept| kept.pod_uid.as_str()))
        .collect()
}

/// True if this ledger opens a restart and there is no finalizer.
pub(super) fn needs_finalizer(snapshot: &Snapshot, ledger: &Ledger) -> bool {
    !snapshot.cluster.finalizer && snapshot.ledger.restart.is_none() && ledger.restart.is_some()
}

/// Adds the finalizer to the SearchCluster. False if that fails: then the restart is opened, and waits for
/// it.
///
/// # Errors
/// [`Failure::StatusOvertaken`] if the SearchCluster is not the one that was planned for.
pub(super) async fn put_finalizer(
    cx: &mut Context,
    snapshot: &mut Snapshot,
    cluster: &mut Arc<SearchCluster>,
) -> Result<bool, Failure> {
    let mut expected = SearchCluster::clone(cluster);
    if execute(cx, &[&Action::AddFinalizer], cluster).await.is_err() {
        return Ok(false);
    }
    expected.metadata.finalizers.clone_from(&cluster.metadata.finalizers);
    if !asks_for_the_same(&expected, cluster) {
        return Err(Failure::StatusOvertaken);
    }
    snapshot.cluster.finalizer = true;
    Ok(true)
}

#[cfg(test)]
mod tests;
