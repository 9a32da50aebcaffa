//! Executes a plan's actions: each is one call. Its effect shows at the next observation; it is not assumed.

pub(super) mod patches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use stayput_engine::{EngineClient, EngineError, Flush};
use stayput_http::manager_client::{Answer, ClientError, ManagerClient};
use stayput_kube_access::apiserver::Objects;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{
    Action, AllocationBefore, Change, Ledger, Marker, UpdateStep, annotation, drain_request,
    start_request, stop_request,
};
use tokio::time::{Instant, timeout};

use crate::apiserver::{ApiError, namespaced_name, only};
use crate::concurrency::join_limited;
use crate::context::Context;
use crate::declared::ShrinkingSets;
use crate::execute::patches::On;
use crate::failure::{Failure, Outcome, both};
use crate::lease::Lease;
use crate::metrics::{Metrics, Side};
use crate::observe::Observer;
use crate::pods::{PodFacts, Reading};

/// Time limit of a flush: it only makes recovery shorter.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for a manager's answer to a drain request.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time from the first action in which annotations and labels of pods are still written: where webhooks are
/// slow and pods many, the next reconcile writes the rest, and looks at the nodes before.
const PATCHING_WINDOW: Duration = Duration::from_secs(2);

/// Changes by key or container.
type Changes = BTreeMap<String, Change>;

/// The answer to one action.
enum Answered {
    /// The time was over before the action's turn.
    NoTurn,
    /// A pod as our patch has left it.
    Patched(Box<PodFacts>),
    /// A pod that a decision waits for: as our patch has left it, or as another client has, which changed it
    /// first.
    Changed(Box<PodFacts>),
    /// The SearchCluster as our patch has left it.
    Cluster(Box<SearchCluster>),
    /// The indices were flushed for the stop of this node.
    Flushed(String),
    /// No new state to store.
    Done,
}

/// Results of several actions, for the caller to remember.
pub(super) struct Executed {
    /// Pods as the apiserver returned them.
    pub(super) pods: Vec<PodFacts>,
    /// The SearchCluster as the apiserver returned it last.
    pub(super) cluster: Option<SearchCluster>,
    /// Names of nodes for whose stops the indices were flushed.
    pub(super) flushed: Vec<String>,
    pub(super) outcome: Outcome,
}

/// Executes the actions of one plan.
pub(super) struct Executor<'a> {
    pub(super) observer: &'a Observer,
    pub(super) cluster: &'a SearchCluster,
    pub(super) metrics: &'a Metrics,
    pub(super) lease: &'a Lease,
    /// The parts of pods that are read.
    pub(super) reading: Option<&'a Reading>,
}

impl<'a> Executor<'a> {
    pub(super) fn new(cx: &'a Context, cluster: &'a SearchCluster) -> Self {
        let (metrics, lease) = (&*cx.clients.metrics, &cx.clients.lease);
        let reading = cx.pod_watch.reading();
        Self { observer: &cx.observer, cluster, metrics, lease, reading }
    }
}

impl Executor<'_> {
    /// Executes all actions at the same time. One that fails does not stop another.
    pub(super) async fn execute_all(&self, actions: &[&Action]) -> Executed {
        let calls = actions.iter().filter(|action| !matches!(action, Action::RecordEvent(_)));
        let end = Instant::now() + PATCHING_WINDOW;
        let turn = async |action: &Action| {
            if Instant::now() >= end && self.may_wait(action) {
                Ok(Answered::NoTurn)
            } else {
                self.execute(action).await
            }
        };
        let answers = join_limited(calls.map(|action| turn(action)).collect()).await;
        let (mut pods, mut cluster, mut flushed) = (Vec::new(), None, Vec::new());
        let (mut outcome, mut acted) = (Ok(false), false);
        for answer in answers {
            match answer {
                // An annotation that shows a phase: no decision waits for it.
                Ok(Answered::Patched(facts)) => pods.push(*facts),
                Ok(Answered::Changed(facts)) => {
                    pods.push(*facts);
                    acted = true;
                }
                Ok(Answered::Cluster(changed)) => {
                    cluster = Some(*changed);
                    acted = true;
                }
                Ok(Answered::Flushed(node)) => {
                    flushed.push(node);
                    acted = true;
                }
                Ok(Answered::Done) => acted = true,
                Ok(Answered::NoTurn) => {}
                // The watch reports what has happened to the object.
                Err(failure) if failure.is_not_found() => {
                    tracing::info!("action skipped, its object is gone: {failure}");
                }
                Err(failure) => {
                    tracing::warn!("action failed: {failure}");
                    outcome = both(outcome, Err(failure));
                }
            }
        }
        Executed { pods, cluster, flushed, outcome: both(outcome, Ok(acted)) }
    }

    /// True if no node waits for the action.
    fn may_wait(&self, action: &Action) -> bool {
        match action {
            Action::PatchPod { .. } => true,
            Action::PatchMetadata { uid, .. } => !self.is_under_way(uid),
            _ => false,
        }
    }

    /// Executes one action. Does not write the ledger or events.
    async fn execute(&self, action: &Action) -> Result<Answered, Failure> {
        match action {
            Action::WriteLedger(_) | Action::RecordEvent(_) => Ok(Answered::Done),
            // Apiserver.
            Action::AddFinalizer => self.patch(patches::add_finalizer(self.cluster)).await,
            Action::RemoveFinalizer => self.patch(patches::remove_finalizer(self.cluster)).await,
            Action::ClaimTrigger { phase, request } => {
                let request = encode("the request", request)?;
                self.patch(patches::claim(self.cluster, phase, &request)).await
            }
            Action::ClearAnnotation { key, value } => {
                self.patch(patches::clear(self.cluster, key, value)).await
            }
            Action::PatchPod { uid, changes } => self.annotate(uid, changes).await,
            Action::PatchMetadata { uid, labels, annotations } => {
                let is_revision = action.gives_revision();
                self.relabel(uid, labels, annotations, is_revision).await
            }
            Action::PatchImages { uid, images } => self.change_images(uid, images).await,
            Action::Resize { uid, resources } => self.resize(uid, resources).await,
            Action::DeletePod { uid } => self.delete(uid).await,
            // Managers.
            Action::Drain { uid, sequence } => self.drain(uid, *sequence).await,
            Action::Stop { uid, sequence, drain, resume, exit }
            | Action::EndDrain { uid, sequence, drain, resume, exit } => {
                let request = stop_request(uid, *sequence, *drain, resume.as_ref(), *exit);
                let answer = self.client(uid)?.stop(&request, None).await;
                self.manager_answer("stop", uid, answer)
            }
            Action::Start { uid, sequence, checksum, config } => {
                let request = start_request(uid, *sequence, checksum.as_deref(), *config);
                let answer = self.client(uid)?.start(&request, None).await;
                self.manager_answer("start", uid, answer)
            }
            // Engine.
            Action::TightenAllocation { value, marker } => self.tighten(value, marker).await,
            Action::RestoreAllocation { before } => {
                let (client, _) = self.engine()?;
                self.ask_engine("restore", client.restore(&setting(before))).await
            }
            Action::Flush { node } => self.flush(node).await,
            Action::PutRecord { node_id, reason, allocation_delay } => {
                let (client, _) = self.engine()?;
                let delay = Duration::from_millis(*allocation_delay);
                let put = client.put_restart_record(node_id, reason, delay);
                self.ask_engine("put_record", put).await
            }
            Action::DeleteRecord { node_id } => {
                let (client, _) = self.engine()?;
                self.ask_engine("delete_record", client.delete_record(node_id)).await
            }
            Action::ExcludeVoter { node } => {
                let (client, identity) = self.engine()?;
                self.ask_engine("exclude_voter", client.exclude_voter(identity, node)).await
            }
            Action::ClearVotingExclusions => {
                let (client, identity) = self.engine()?;
                let clear = client.clear_voting_exclusions(identity);
                self.ask_engine("clear_voting_exclusions", clear).await
            }
            Action::ExcludeNames { persistent, transient } => {
                let (client, _) = self.engine()?;
                tracing::info!("nodes excluded from allocation: {action:?}");
                let exclude = client.exclude_names(persistent.as_ref(), transient.as_ref());
                self.ask_engine("exclude_names", exclude).await
            }
            // Apiserver: StatefulSets of a declared cluster.
            Action::RemoveNode { set, replicas } => {
                self.shrinking_sets()?.remove_node(&self.observer.api, set, *replicas).await?;
                self.metrics.count_nodes(UpdateStep::Move.name(), 1);
                Ok(Answered::Done)
            }
            Action::RemoveNodeSet { set } => {
                self.shrinking_sets()?.remove_set(&self.observer.api, set).await?;
                Ok(Answered::Done)
            }
        }
    }

    /// Changes our annotations of a pod.
    async fn annotate(&self, uid: &str, changes: &Changes) -> Result<Answered, Failure> {
        let pod = self.pod(uid)?;
        // The end of a restart waits for the results of its nodes.
        let is_result = changes.get(annotation::SHOWN).is_some_and(|one| one.wanted.is_none());
        let answered = if is_result { Answered::Changed } else { Answered::Patched };
        match self.pods(pod).patch(&pod.name, patches::pod(pod, changes)).await {
            Ok(pod) => Ok(self.facts(&pod).map_or(Answered::Done, answered)),
            Err(error) => self.read_if_changed(pod, error).await,
        }
    }

    /// Changes labels and annotations of a pod to those of its template.
    async fn relabel(
        &self,
        uid: &str,
        labels: &Changes,
        annotations: &Changes,
        is_revision: bool,
    ) -> Result<Answered, Failure> {
        let pod = self.pod(uid)?;
        let patch = patches::revision(pod, labels, annotations);
        let changed = self.pods(pod).patch(&pod.name, patch).await;
        // A restart counts its nodes itself when it ends.
        if changed.is_ok() && is_revision && !self.is_under_way(uid) {
            self.metrics.count_nodes(UpdateStep::Relabel.name(), 1);
        }
        self.update(pod, changed).await
    }

    async fn change_images(&self, uid: &str, images: &Changes) -> Result<Answered, Failure> {
        let pod = self.pod(uid)?;
        let patch = patches::images(pod, On::ThisVersion, images)?;
        self.update(pod, self.pods(pod).patch(&pod.name, patch).await).await
    }

    /// Changes CPU and memory of a living pod.
    async fn resize(&self, uid: &str, resources: &Changes) -> Result<Answered, Failure> {
        let pod = self.pod(uid)?;
        let patch = patches::resources(pod, On::ThisVersion, resources)?;
        let changed = self.pods(pod).patch_subresource("resize", &pod.name, patch).await;
        self.update(pod, changed).await
    }

    /// Deletes a pod. One that changed since it was read may not have to go any more.
    async fn delete(&self, uid: &str) -> Result<Answered, Failure> {
        let pod = self.pod(uid)?;
        let version = pod.version.to_string();
        match self.pods(pod).delete(&pod.name, only(Some(uid), Some(&version))).await {
            Ok(()) => Ok(Answered::Done),
            Err(error) => self.read_if_changed(pod, error).await,
        }
    }

    /// Limits shard allocation, with a marker beside it.
    async fn tighten(&self, value: &str, marker: &Marker) -> Result<Answered, Failure> {
        let (client, _) = self.engine()?;
        let text = encode("the allocation marker", marker)?;
        let before = setting(&marker.before);
        self.ask_engine("tighten", client.tighten(&before, value, &text)).await
    }

    /// Flushes all indices before the stop of this node. A failure is only logged.
    async fn flush(&self, node: &str) -> Result<Answered, Failure> {
        let (client, identity) = self.engine()?;
        let flush = self.with_lease(client.flush(identity, FLUSH_TIMEOUT)).await?;
        let is_done = matches!(flush, Flush::Done { .. });
        self.metrics.count_request(Side::Engine, "flush", is_done);
        match flush {
            Flush::NotKnown(why) => tracing::warn!(node, "not flushed: {why}"),
            Flush::Done { .. } => tracing::info!(node, "flush: {flush:?}"),
        }
        Ok(Answered::Flushed(node.to_owned()))
    }

    async fn patch(&self, patch: json_patch::Patch) -> Result<Answered, Failure> {
        let (namespace, name) = namespaced_name(&self.cluster.metadata);
        let cluster = self.observer.api.objects(namespace).patch(name, patch).await?;
        Ok(Answered::Cluster(Box::new(cluster)))
    }

    /// True if the pod is that of a member under way.
    fn is_under_way(&self, uid: &str) -> bool {
        let ledger = self.cluster.status.as_ref().map(|status| &status.ledger);
        ledger.is_some_and(|ledger| ledger.under_way().any(|member| member.pod_uid == uid))
    }

    fn client(&self, uid: &str) -> Result<&ManagerClient, Failure> {
        if let Some(client) = self.observer.facts.managers.client(uid) {
            return Ok(client);
        }
        let pod = self.pod(uid)?.name.clone();
        let status = self.observer.facts.managers.of(uid);
        let why = status.err().map_or_else(|| "it has no client".into(), |unknown| unknown.message);
        Err(Failure::NoClient { pod, why })
    }

    fn pod(&self, uid: &str) -> Result<&PodFacts, Failure> {
        Ok(self.observer.pods.by_uid(uid).ok_or_else(|| gone(uid))?.as_ref())
    }

    /// The pods of the namespace of this one.
    fn pods(&self, pod: &PodFacts) -> Objects<Pod> {
        self.observer.api.objects(&pod.namespace)
    }

    /// The result of a call that changes a pod which a decision waits for.
    async fn update(
        &self,
        pod: &PodFacts,
        changed: Result<Pod, ApiError>,
    ) -> Result<Answered, Failure> {
        match changed {
            Ok(changed) => Ok(self.facts(&changed).map_or(Answered::Done, Answered::Changed)),
            Err(error) => self.read_if_changed(pod, error).await,
        }
    }

    /// Reads the pod for the next decision if another client has changed it first; passes on other errors.
    async fn read_if_changed(&self, pod: &PodFacts, error: ApiError) -> Result<Answered, Failure> {
        if !error.is_conflict() {
            return Err(error.into());
        }
        tracing::info!("another client wrote first, reading again: {error}");
        let pod = self.pods(pod).get(&pod.name).await?;
        Ok(self.facts(&pod).map_or(Answered::Done, Answered::Changed))
    }

    fn facts(&self, pod: &Pod) -> Option<Box<PodFacts>> {
        PodFacts::of(pod, self.reading?).map(Box::new)
    }

    /// Asks a manager to drain. A failure is only logged, since nothing waits for a drain ahead of a stop:
    /// without it the node drains after the stop.
    async fn drain(&self, uid: &str, sequence: u64) -> Result<Answered, Failure> {
        let client = self.client(uid)?;
        let request = drain_request(uid, sequence);
        let answer = timeout(DRAIN_TIMEOUT, client.drain(&request)).await;
        self.metrics.count_request(Side::Manager, "drain", matches!(answer, Ok(Ok(_))));
        let error = match answer {
            Ok(Ok(_)) => return Ok(Answered::Done),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::info!(pod.uid = uid, "the node drains only after its stop: {error}");
        Ok(Answered::Done)
    }

    /// Turns a manager's answer into a result. A refusal that the status shows is no failure: the next
    /// observation reads it. A refusal of the request itself (a field or a route that an older manager does
    /// not know) is nowhere else, and so a failure.
    fn manager_answer(
        &self,
        kind: &'static str,
        uid: &str,
        answer: Result<Answer, ClientError>,
    ) -> Result<Answered, Failure> {
        self.metrics.count_request(Side::Manager, kind, answer.is_ok());
        match answer {
            Ok(_) => Ok(Answered::Done),
            Err(ClientError::Refused(refused)) if refused.problem.code.is_shown_in_status() => {
                tracing::warn!(pod.uid = uid, request = kind, "the manager refused: {refused}");
                Ok(Answered::Done)
            }
            Err(ClientError::Refused(source)) => {
                let pod = self.pod(uid).map_or_else(|_| uid.to_owned(), |pod| pod.name.clone());
                Err(Failure::NotTaken { pod, request: kind, source })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The observed engine, and a client of it. Fails without the Lease.
    fn engine(&self) -> Result<(Arc<EngineClient>, &stayput_engine::Engine), Failure> {
        if !self.lease.is_held() {
            return Err(Failure::LeaseLost);
        }
        self.observer.facts.engine.client().ok_or(Failure::EngineNotObserved)
    }

    /// The node sets from which nodes leave. Fails without the Lease: another replica may have changed them.
    fn shrinking_sets(&self) -> Result<&ShrinkingSets, Failure> {
        if !self.lease.is_held() {
            return Err(Failure::LeaseLost);
        }
        self.observer.shrinking_sets.as_ref().ok_or(Failure::StatusOvertaken)
    }

    async fn ask_engine(
        &self,
        kind: &'static str,
        request: impl Future<Output = Result<(), EngineError>>,
    ) -> Result<Answered, Failure> {
        let result = self.with_lease(request).await?;
        self.metrics.count_request(Side::Engine, kind, result.is_ok());
        result?;
        Ok(Answered::Done)
    }

    /// The result of a call, unless the Lease is lost before.
    async fn with_lease<T>(&self, call: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.lease.lost() => Err(Failure::LeaseLost),
            result = call => Ok(result),
        }
    }
}

fn gone(uid: &str) -> Failure {
    Failure::PodGone(uid.to_owned())
}

fn encode(what: &'static str, value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|source| Failure::Encode { what, source })
}

fn setting(before: &AllocationBefore) -> stayput_engine::Allocation {
    stayput_engine::Allocation {
        persistent: before.persistent.clone(),
        transient: before.transient.clone(),
        ..stayput_engine::Allocation::default()
    }
}

/// The nodes for whose stops the indices were flushed in the restart under way.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    restart: Option<String>,
    nodes: BTreeSet<String>,
}

impl Flushes {
    /// Forgets the flushes of another restart.
    pub(crate) fn keep_for(&mut self, ledger: &Ledger) {
        let id = ledger.restart.as_ref().map(|restart| restart.request.id.as_str());
        if self.restart.as_deref() != id {
            self.restart = id.map(str::to_owned);
            self.nodes.clear();
        }
    }

    /// Records that the indices were flushed for these nodes.
    pub(crate) fn note(&mut self, nodes: Vec<String>) {
        self.nodes.extend(nodes);
    }

    /// Names of the nodes.
    pub(crate) fn nodes(&self) -> &BTreeSet<String> {
        &self.nodes
    }
}

#[cfg(test)]
mod tests;
