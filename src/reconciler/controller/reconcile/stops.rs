//! Live reads before a stop request or the deletion of a pod: the plan must ask for the same on what
//! they return.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::SearchCluster;
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::join_limited;
use crate::controller::pods::{Facts, Pods, Reading};
use stayput_restart::{Action, Plan};

/// Whether live reads must confirm it.
pub(super) const fn need_live_reads(action: &Action) -> bool {
    matches!(action, Action::Stop { .. } | Action::DeletePod { .. })
}

/// The pods of such actions that could not be read.
#[derive(Default)]
pub(super) struct Unread {
    pub(super) uids: BTreeSet<String>,
    /// Why the last of them could not be read.
    pub(super) failure: Option<ApiError>,
}

/// Reads the pods of these stop requests once more.
pub(super) async fn read_pods(
    api: &Apiserver,
    known: &Pods,
    stops: &[&Action],
    reading: &Reading,
) -> (Vec<Facts>, Unread) {
    let pods: Vec<Arc<Facts>> =
        stops.iter().filter_map(|stop| known.by_uid(stop.pod()?).cloned()).collect();
    let read = async |pod: &Facts| (pod.uid.clone(), api.get(&pod.namespace, &pod.name).await);
    let read: Vec<_> = join_limited(pods.iter().map(|pod| read(pod)).collect()).await;
    let (mut live, mut unread) = (Vec::new(), Unread::default());
    for (uid, pod) in read {
        match pod {
            Ok(pod) => live.extend(Facts::of(&pod, reading)),
            Err(failure) => {
                unread.uids.insert(uid);
                unread.failure = Some(failure);
            }
        }
    }
    (live, unread)
}

/// The stops that the plan made from live reads asks for as well, of pods that could be read.
pub(super) fn confirmed<'a>(
    stops: &[&'a Action],
    again: &Plan,
    unread: &BTreeSet<String>,
) -> Vec<&'a Action> {
    let is_read = |stop: &Action| stop.pod().is_some_and(|uid| !unread.contains(uid));
    let is_confirmed = |stop: &&Action| again.actions.contains(stop) && is_read(stop);
    stops.iter().copied().filter(is_confirmed).collect()
}

/// Whether it is the same object with the same spec.
pub(in crate::controller) fn is_same_generation(
    live: &SearchCluster,
    known: &SearchCluster,
) -> bool {
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
