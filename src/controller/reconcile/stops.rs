//! Live reads before a stop request or the deletion of a pod: a plan from the live state must have the same
//! action.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::execute;
use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::context::Context;
use crate::effective_spec::EffectiveSpec;
use crate::failure::{Failure, Outcome, both};
use crate::observe::refresh;
use crate::pods::{PodFacts, Pods, Reading};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Action, Plan, Snapshot, plan};

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
    let engine = Box::pin(cx.observer.read_engine_again(cluster, &spec.checked)).await;
    if engine.is_some() {
        unread = match read_live(cx, stops, cluster, spec).await? {
            Some(unread) => unread,
            None => return Ok(false),
        };
    }

    // No outside system: the same plan on the live state.
    let mut fresh = refresh(snapshot, cluster, &cx.observer.pods);
    if let Some(engine) = engine {
        fresh.engine = engine;
    }
    if fresh.ledger != snapshot.ledger {
        return Ok(false);
    }
    let confirmed = confirmed(stops, &plan(&fresh, &spec.checked.policy), &unread.uids);

    // Managers: the stop requests. Apiserver: the pods to delete.
    let stopped =
        if confirmed.is_empty() { Ok(false) } else { execute(cx, &confirmed, cluster, spec).await };
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
    let reading = Reading::of(&cluster.spec);
    let pods = read_pods(&cx.api, &cx.observer.pods, stops, &reading);
    let (live, (pods, unread)) = tokio::join!(cx.api.cluster_of(cluster), pods);
    let live = live?;
    let is_same = is_same_generation(&live, cluster);
    *cluster = spec.apply(cx.cluster.remember(live));
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
    let read = async |pod: &PodFacts| (pod.uid.clone(), api.get(&pod.namespace, &pod.name).await);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_sent_only_if_the_live_plan_has_it_and_its_pod_was_read() {
        let stop = |uid: &str, sequence| Action::Stop {
            uid: uid.into(),
            sequence,
            drain: 0,
            resume: None,
            exit: false,
        };
        let [a, b, c] = [stop("a", 1), stop("b", 1), stop("c", 1)];
        let again =
            Plan { actions: vec![stop("a", 1), stop("b", 2), stop("c", 1)], ..Plan::default() };
        let unread = BTreeSet::from(["c".to_owned()]);
        assert_eq!(confirmed(&[&a, &b, &c], &again, &unread), [&a]);
    }
}
