//! The look at rest: asks the engine little and seldom, for settings that a late request of ours has left,
//! and for the nodes that it lists. A reconciler that has just begun asks as well, because it knows of no
//! requests of the one before it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Observer;
use super::engine::Ours;
use super::snapshot::full_name;
use crate::pods::PodFacts;
use crate::status::ledger_of;
use stayput_api::State;
use stayput_kube_access::cluster::{SearchCluster, SearchClusterSpec};
use stayput_restart::{Pod, Time, has_leftovers};

/// Interval between two looks.
const INTERVAL: Duration = Duration::from_secs(60);
/// Time limit of all answers together: requests of people wait meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a node whose pod is ready to join the cluster, in milliseconds.
const TIME_TO_JOIN: u64 = 60_000;

/// Results of the last look at rest.
#[derive(Debug, Default)]
pub(super) struct LookAtRest {
    /// Time of the look, if it found nothing of ours.
    at: Option<Instant>,
    /// Nodes of pods that the cluster did not list in its last answer.
    unlisted: BTreeSet<String>,
}

impl LookAtRest {
    fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= INTERVAL)
    }

    /// True if the node of this pod serves, as far as pod and manager show, outside of the cluster. Then the
    /// engine is read as long as the looks show it, so that it stays in the report.
    pub(super) fn shows_outside(&self, facts: &PodFacts, pod: &Pod, now: Time) -> bool {
        let has_time_to_join =
            facts.ready_since.is_some_and(|since| now.since(since) < TIME_TO_JOIN);
        // A manager that does not answer hides an engine that may run.
        let may_run = pod.manager.as_ref().map_or(true, |manager| manager.state == State::Running);
        let is_expected = facts.ready && !facts.terminating && !has_time_to_join && may_run;
        is_expected && self.unlisted.contains(&facts.node)
    }
}

impl Observer {
    /// Looks, if that is due. True if the engine has changes of ours that the ledger does not explain; a part
    /// that cannot be read is checked the next time.
    pub(crate) async fn looks_at_rest(
        &mut self,
        cluster: &SearchCluster,
        spec: &SearchClusterSpec,
    ) -> bool {
        if !self.look_at_rest.is_due() {
            return false;
        }
        self.look_at_rest.at = Some(Instant::now());
        let found = timeout(ANSWER_TIMEOUT, self.look(cluster, spec)).await.unwrap_or_default();
        if found {
            self.look_at_rest.at = None;
        }
        found
    }

    async fn look(&mut self, cluster: &SearchCluster, spec: &SearchClusterSpec) -> bool {
        let pods: Vec<Arc<PodFacts>> = self.pods.iter().cloned().collect();
        let ledger = ledger_of(cluster);
        let endpoints = self.endpoints_of(&ledger, spec);
        let ours = Ours {
            cluster_uuid: ledger.cluster_uuid.as_deref(),
            nodes: pods.iter().map(|pod| pod.node.as_str()).collect(),
        };
        let reach = self.credentials.engine(&spec.engine).await;
        // First, so that the next requests go to the cluster of these pods.
        match self.facts.engine.unlisted(reach, endpoints.clone(), &ours, &self.metrics).await {
            Ok(unlisted) => self.look_at_rest.unlisted = unlisted,
            Err(error) => tracing::debug!("the engine cannot be asked for its nodes: {error}"),
        }
        let reach = self.credentials.engine(&spec.engine).await;
        match self.facts.engine.changes(reach, endpoints, &self.metrics).await {
            Ok((allocation, records)) => {
                has_leftovers(&full_name(&cluster.metadata), &ledger, &allocation, &records)
            }
            Err(error) => {
                tracing::debug!("the engine cannot be asked for what was left there: {error}");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::Reading;
    use stayput_restart::Unknown;

    #[test]
    fn the_first_look_is_at_once_and_the_next_a_minute_later() {
        assert!(LookAtRest::default().is_due());
        let before =
            |span| LookAtRest { at: Instant::now().checked_sub(span), ..LookAtRest::default() };
        assert!(!before(INTERVAL - Duration::from_secs(5)).is_due());
        assert!(before(INTERVAL).is_due());
    }

    #[test] // proves RESTART-113
    fn who_is_not_listed_has_a_minute_to_join_from_when_its_pod_is_ready() {
        let looked = LookAtRest { unlisted: ["logs-0".to_owned()].into(), ..LookAtRest::default() };
        let facts = |name: &str, ready: &str| {
            let pod = serde_json::json!({
                "metadata": {"name": name, "namespace": "n", "uid": "u", "resourceVersion": "1"},
                "status": {"conditions": [{
                    "type": "Ready", "status": ready, "lastTransitionTime": "2026-11-21T03:00:00Z",
                }]},
            });
            let pod = serde_json::from_value(pod).unwrap();
            PodFacts::of(&pod, &Reading::default()).unwrap()
        };
        let after =
            |seconds: u64| Time::parse("2026-11-21T03:00:00Z").unwrap().plus(seconds * 1000);
        let silent = |facts: &PodFacts| Pod {
            manager: Err(Unknown { message: "no answer".into() }),
            ..crate::observe::snapshot::pod(facts)
        };
        let outside =
            |facts: &PodFacts, seconds| looked.shows_outside(facts, &silent(facts), after(seconds));
        let ready = facts("logs-0", "True");
        assert!(!outside(&ready, 59) && outside(&ready, 60));
        assert!(!outside(&facts("logs-1", "True"), 60), "it is listed");
        assert!(!outside(&facts("logs-0", "False"), 60), "the engine is read anyway");
        let mut terminating = ready;
        terminating.terminating = true;
        assert!(!outside(&terminating, 60));
    }
}
