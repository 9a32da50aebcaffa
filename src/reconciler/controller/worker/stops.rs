//! Stops: sent only on what was read live right before.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Worker;
use super::pass::{Outcome, both};
use crate::cluster::{Checked, SearchCluster};
use crate::controller::apiserver::Failure;
use crate::controller::bounded::together;
use crate::controller::observe::refresh;
use crate::controller::pods::Facts;
use stayput_restart::{Action, Snapshot, plan};

impl Worker {
    /// Reads the SearchCluster and the pods once more, plans once more, and sends the stops that
    /// are in that plan as well. Whether any was sent.
    pub(super) async fn stop(
        &mut self,
        snapshot: &Snapshot,
        stops: &[&Action],
        cluster: &mut Arc<SearchCluster>,
        checked: &Checked,
    ) -> Outcome {
        let (namespace, name) = self.key.clone();
        let live = self.api.cluster(&namespace, &name).await?;
        let same = live.metadata.uid == cluster.metadata.uid
            && live.metadata.generation == cluster.metadata.generation;
        *cluster = self.take(live);
        if !same {
            return Ok(false);
        }
        let (unread, failure) = self.read_pods(stops, cluster).await;
        let fresh = refresh(snapshot, cluster, &self.eyes.pods);
        if fresh.ledger != snapshot.ledger {
            return Ok(false);
        }
        let again = plan(&fresh, &checked.policy);
        let still: Vec<&Action> =
            stops.iter().copied().filter(|stop| again.actions.contains(stop)).collect();
        let is_read = |stop: &&Action| stop.pod().is_some_and(|uid| !unread.contains(uid));
        let still: Vec<&Action> = still.into_iter().filter(is_read).collect();
        let stopped = match still.is_empty() {
            true => Ok(false),
            false => self.carry_out(&still, cluster, &checked.policy).await,
        };
        both(stopped, failure.map_or(Ok(false), Err))
    }

    /// Reads the pods once more; uids of those that could not be read, and why.
    async fn read_pods(
        &mut self,
        stops: &[&Action],
        cluster: &SearchCluster,
    ) -> (BTreeSet<String>, Option<Failure>) {
        let label = cluster.spec.pods.node_name_label.as_deref();
        let pods: Vec<Arc<Facts>> =
            stops.iter().filter_map(|stop| self.eyes.pods.by_uid(stop.pod()?).cloned()).collect();
        let api = &self.api;
        let read = async |pod: &Facts| (pod.uid.clone(), api.pod(&pod.namespace, &pod.name).await);
        let read: Vec<_> = together(pods.iter().map(|pod| read(pod)).collect()).await;
        let (mut unread, mut why) = (BTreeSet::new(), None);
        for (uid, pod) in read {
            match pod {
                Ok(pod) => {
                    if let Some(facts) = Facts::of(&pod, label) {
                        self.eyes.pods.put(facts);
                    }
                }
                Err(failure) => {
                    unread.insert(uid);
                    why = Some(failure);
                }
            }
        }
        (unread, why)
    }
}
