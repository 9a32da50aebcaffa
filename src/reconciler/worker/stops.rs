//! Stops: sent only on what was read live right before.

use std::sync::Arc;

use super::Worker;
use super::pass::Outcome;
use crate::cluster::{Checked, SearchCluster};
use crate::reconciler::apiserver::Failure;
use crate::reconciler::bounded::together;
use crate::reconciler::observe::refresh;
use crate::reconciler::pods::Facts;
use crate::restart::{Action, Snapshot, plan};

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
        self.read_pods(stops, cluster).await?;
        let fresh = refresh(snapshot, cluster, &self.eyes.pods);
        if fresh.ledger != snapshot.ledger {
            return Ok(false);
        }
        let again = plan(&fresh, &checked.policy);
        let still: Vec<&Action> =
            stops.iter().copied().filter(|stop| again.actions.contains(stop)).collect();
        if still.is_empty() {
            return Ok(false);
        }
        self.carry_out(&still, cluster, checked).await
    }

    async fn read_pods(
        &mut self,
        stops: &[&Action],
        cluster: &SearchCluster,
    ) -> Result<(), Failure> {
        let label = cluster.spec.pods.node_name_label.as_deref();
        let pods: Vec<Arc<Facts>> =
            stops.iter().filter_map(|stop| self.eyes.pods.by_uid(stop.pod()?).cloned()).collect();
        let api = &self.api;
        let read = async |pod: &Facts| api.pod(&pod.namespace, &pod.name).await;
        let read: Vec<_> = together(pods.iter().map(|pod| read(pod)).collect()).await;
        for pod in read {
            if let Some(facts) = Facts::of(&pod?, label) {
                self.eyes.pods.put(facts);
            }
        }
        Ok(())
    }
}
