//! Doing: one action of a plan is one call. What came of it is read, not assumed.

mod patches;

use std::time::Duration;

use super::apiserver::{Failure, of};
use super::metrics::{Metrics, Side};
use super::observe::Eyes;
use super::pods::Facts;
use crate::cluster::SearchCluster;
use crate::engine_client::{self, EngineError, Flush};
use stayput_api::{Span, StartRequest, StopRequest};
use stayput_net::manager_client::{Answer, ClientError};
use stayput_restart::{Action, AllocationBefore, Policy, annotation};

/// How long a flush may take: it only makes recovery shorter.
const FLUSH: Duration = Duration::from_secs(30);

/// What is to be taken note of after an action.
pub(super) enum Done {
    /// A pod as it is now.
    Pod(Box<Facts>),
    /// A pod that somebody else has changed, as it is now.
    Moved(Box<Facts>),
    /// The SearchCluster as it is now.
    Cluster(Box<SearchCluster>),
    /// The cluster was flushed for the stop of this node.
    Flushed(String),
    /// The next look tells.
    Nothing,
}

/// Who carries out the actions of one plan.
pub(super) struct Hands<'a> {
    pub(super) eyes: &'a Eyes,
    pub(super) cluster: &'a SearchCluster,
    pub(super) policy: &'a Policy,
    pub(super) metrics: &'a Metrics,
}

impl Hands<'_> {
    /// Carries out one action other than the ledger's write and events, which have their own place.
    pub(super) async fn carry_out(&self, action: &Action) -> Result<Done, Failure> {
        match action {
            Action::WriteLedger(_) | Action::RecordEvent(_) => Ok(Done::Nothing),
            Action::AddFinalizer => self.patch(patches::add_finalizer(self.cluster)).await,
            Action::RemoveFinalizer => self.patch(patches::remove_finalizer(self.cluster)).await,
            Action::ClaimTrigger { phase, request } => {
                let request = serde_json::to_string(request)
                    .map_err(|error| Failure::Failed(format!("the request is no JSON: {error}")))?;
                self.patch(patches::claim(self.cluster, phase, &request)).await
            }
            Action::ClearAnnotation { key, value } => {
                self.patch(patches::clear(self.cluster, key, value)).await
            }
            Action::PatchPod { uid, changes } => {
                let Some(pod) = self.eyes.pods.by_uid(uid) else { return gone(uid) };
                let patch = patches::pod(pod, changes);
                self.patch_pod(pod, patch).await
            }
            Action::Stop { uid, sequence, drain } => {
                let Some(client) = self.eyes.managers.client(uid) else { return gone(uid) };
                let request = StopRequest {
                    sequence: Some(*sequence),
                    pod: Some(uid.clone()),
                    grace: None,
                    drain: Some(Span(*drain)),
                };
                self.told("stop", uid, client.stop(&request, None).await)
            }
            Action::Start { uid, sequence, checksum, config } => {
                let Some(client) = self.eyes.managers.client(uid) else { return gone(uid) };
                let request = StartRequest {
                    sequence: Some(*sequence),
                    pod: Some(uid.clone()),
                    checksum: checksum.clone(),
                    config: *config,
                };
                self.told("start", uid, client.start(&request, None).await)
            }
            Action::TightenAllocation { .. }
            | Action::RestoreAllocation { .. }
            | Action::Flush { .. }
            | Action::PutRecord { .. }
            | Action::ExcludeVoter { .. }
            | Action::ClearVotingExclusions
            | Action::DeleteRecord { .. } => self.at_engine(action).await,
        }
    }

    async fn patch(&self, patch: serde_json::Value) -> Result<Done, Failure> {
        let (namespace, name) = of(&self.cluster.metadata);
        let cluster = self.eyes.api.patch_cluster(namespace, name, patch).await?;
        Ok(Done::Cluster(Box::new(cluster)))
    }

    /// Somebody who was there first is looked at, and decided about anew.
    async fn patch_pod(&self, pod: &Facts, patch: serde_json::Value) -> Result<Done, Failure> {
        let label = self.cluster.spec.pods.node_name_label.as_deref();
        let api = &self.eyes.api;
        let take = |pod| Facts::of(&pod, label).map(Box::new);
        match api.patch_pod(&pod.namespace, &pod.name, patch).await {
            Ok(pod) => Ok(take(pod).map_or(Done::Nothing, Done::Pod)),
            Err(Failure::Conflict(why)) => {
                tracing::info!("somebody else was first: {why}");
                let pod = api.pod(&pod.namespace, &pod.name).await?;
                Ok(take(pod).map_or(Done::Nothing, Done::Moved))
            }
            Err(failure) => Err(failure),
        }
    }

    /// What a manager answered: a refusal is an answer, and stands in its status.
    fn told(
        &self,
        kind: &'static str,
        uid: &str,
        answer: Result<Answer, ClientError>,
    ) -> Result<Done, Failure> {
        self.metrics.count_request(Side::Manager, kind, answer.is_ok());
        match answer {
            Ok(_) => Ok(Done::Nothing),
            Err(ClientError::Refused(refused)) => {
                tracing::warn!(pod.uid = uid, request = kind, "refused: {refused}");
                Ok(Done::Nothing)
            }
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }

    async fn at_engine(&self, action: &Action) -> Result<Done, Failure> {
        let Some((client, identity)) = self.eyes.engine.client() else {
            return Err(Failure::Failed("the engine was not reached a moment ago".into()));
        };
        let (kind, result) = match action {
            Action::TightenAllocation { value, marker } => {
                let text = serde_json::to_string(marker)
                    .map_err(|error| Failure::Failed(format!("the mark is no JSON: {error}")))?;
                ("tighten", client.tighten(&setting(&marker.before), value, &text).await)
            }
            Action::RestoreAllocation { before } => {
                ("restore", client.restore(&setting(before)).await)
            }
            Action::Flush { node } => {
                let flush = client.flush(identity, FLUSH).await;
                let is_good = matches!(flush, Flush::Done { .. });
                self.metrics.count_request(Side::Engine, "flush", is_good);
                tracing::info!(node, "flushed: {flush:?}");
                return Ok(Done::Flushed(node.clone()));
            }
            Action::PutRecord { node_id, reason } => {
                let delay = Duration::from_millis(self.policy.phase_timeout.saturating_mul(2));
                ("put_record", client.put_restart_record(node_id, reason, delay).await)
            }
            Action::DeleteRecord { node_id } => {
                ("delete_record", client.delete_record(node_id).await)
            }
            Action::ExcludeVoter { node } => {
                ("exclude_voter", client.exclude_voter(identity, node).await)
            }
            Action::ClearVotingExclusions => {
                ("clear_voting_exclusions", client.clear_voting_exclusions(identity).await)
            }
            other => unreachable_action(other),
        };
        self.metrics.count_request(Side::Engine, kind, result.is_ok());
        result.map(|()| Done::Nothing).map_err(|error| Failure::Failed(error.to_string()))
    }
}

/// Not asked of the engine: see [`Hands::carry_out`].
fn unreachable_action(action: &Action) -> (&'static str, Result<(), EngineError>) {
    let message = format!("{action:?} is nothing to ask an engine for");
    ("none", Err(EngineError::Unusable(message)))
}

fn gone(uid: &str) -> Result<Done, Failure> {
    Err(Failure::NotFound(format!("the pod with uid {uid} is gone, or was never asked")))
}

fn setting(before: &AllocationBefore) -> engine_client::Allocation {
    engine_client::Allocation {
        persistent: before.persistent.clone(),
        transient: before.transient.clone(),
        marker: None,
    }
}

/// Our finalizer.
const FINALIZER: &str = annotation::FINALIZER;
