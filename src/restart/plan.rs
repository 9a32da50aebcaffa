//! The result of a decision: actions, and for every other node the reason to wait.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::annotation::ACTUAL_REVISION;
use crate::{AllocationBefore, Change, Code, Ledger, Marker, Request};
use stayput_api::{ConfigChoice, DrainRequest, Span, StartRequest, StopRequest};

/// The label of a pod that names the revision of its owner that it was made from.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// The actions for now, and the reasons why the other nodes wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Actions, each one write or one request. A plan that writes the ledger only writes it and records
    /// events. Actions that need the new ledger come in the next plan.
    pub actions: Vec<Action>,
    /// Every pod without an action, and the reason why the cluster as a whole waits.
    pub waiting: Vec<Waiting>,
    /// Delay until the next plan if nothing changes before, in milliseconds.
    pub requeue_after: u64,
}

/// The start that a manager makes by itself after a stop, unless it accepts a later request before.
/// If the reconciler or the apiserver is lost, the node is down for minutes only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// Delay after the stop was accepted, in milliseconds.
    pub after: u64,
    /// Checksum that the config must have.
    pub checksum: Option<String>,
}

/// One write or one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Replace the ledger in the SearchCluster's status, on the version it was read from.
    WriteLedger(Box<Ledger>),
    /// Record a Kubernetes event, after the ledger is written.
    RecordEvent(Event),
    /// Put our finalizer on the SearchCluster.
    AddFinalizer,
    /// Remove our finalizer from the SearchCluster.
    RemoveFinalizer,
    /// Replace the phase a person wrote on the SearchCluster by this request, and put our finalizer
    /// there, in one patch that requires the phase to be still there.
    ClaimTrigger {
        /// The phase as it stands.
        phase: String,
        /// The request in its place.
        request: Request,
    },
    /// Remove an annotation from the SearchCluster, if it still has this value.
    ClearAnnotation {
        /// Key of the annotation.
        key: String,
        /// Value of the annotation.
        value: String,
    },
    /// Change annotations of a pod: one patch that requires uid and the values seen.
    PatchPod {
        /// Uid of the pod.
        uid: String,
        /// By key: the value seen (`None`: absent) and the value wanted (`None`: removed).
        changes: BTreeMap<String, Change>,
    },
    /// Change labels and annotations of a pod to those of a revision, and its label of the revision: one
    /// patch that requires uid and the values seen.
    PatchMetadata {
        /// Uid of the pod.
        uid: String,
        /// Labels, with that of the revision.
        labels: BTreeMap<String, Change>,
        /// Annotations.
        annotations: BTreeMap<String, Change>,
    },
    /// Change images of a pod: the kubelet makes these containers anew. One patch that requires uid and
    /// the values seen.
    PatchImages {
        /// Uid of the pod.
        uid: String,
        /// Images by container.
        images: BTreeMap<String, Change>,
    },
    /// Change `resources` of a pod through `pods/resize`. One patch that requires uid and the values
    /// seen.
    Resize {
        /// Uid of the pod.
        uid: String,
        /// Resources by container, as JSON with sorted keys.
        resources: BTreeMap<String, Change>,
    },
    /// Delete a pod, on uid and the version that was seen; its owner makes another one.
    DeletePod {
        /// Uid of the pod.
        uid: String,
    },
    /// `POST /es/drain`: the node is not ready while its stop is prepared. If no stop follows, its
    /// manager is ready again by itself.
    Drain {
        /// Uid of the pod.
        uid: String,
        /// Sequence of the stop that follows.
        sequence: u64,
    },
    /// `POST /es/stop`.
    Stop {
        /// Uid of the pod.
        uid: String,
        /// Sequence of the request.
        sequence: u64,
        /// Time in which the node is not ready before its stop signal, in milliseconds.
        drain: u64,
        /// The start that the manager makes by itself if no start is sent, unless the engine is to
        /// stay stopped.
        resume: Option<Resume>,
        /// True if the manager ends after the stop, so that the kubelet creates a new container.
        exit: bool,
    },
    /// Send the same `POST /es/stop` again, with a shorter drain: no clients come any more.
    EndDrain {
        /// Uid of the pod.
        uid: String,
        /// Sequence of the stop.
        sequence: u64,
        /// Remaining time in which the node is not ready, in milliseconds.
        drain: u64,
        /// Start after the stop, unchanged.
        resume: Option<Resume>,
        /// Value of `exit` in the stop, unchanged.
        exit: bool,
    },
    /// `POST /es/start`.
    Start {
        /// Uid of the pod.
        uid: String,
        /// Sequence of the request.
        sequence: u64,
        /// Checksum the engine must be started with.
        checksum: Option<String>,
        /// The config to start on.
        config: ConfigChoice,
    },
    /// Tighten the engine's allocation setting and set our marker, in one request.
    TightenAllocation {
        /// The setting to set; where `before.transient` is set, the transient one as well.
        value: String,
        /// The marker.
        marker: Marker,
    },
    /// Set the allocation setting back and remove our marker, in one request.
    RestoreAllocation {
        /// The values to restore.
        before: AllocationBefore,
    },
    /// Flush, before the stop of this node; best effort.
    Flush {
        /// Name of the node to be stopped; a coordinated restart has one flush, for `*`.
        node: String,
    },
    /// Announce the restart of a node to the engine.
    PutRecord {
        /// Id of the node.
        node_id: String,
        /// The SearchCluster and the restart's id.
        reason: String,
        /// Time after the stop in which the copies of the node are not made elsewhere, in milliseconds:
        /// as long as the node may take to be back.
        allocation_delay: u64,
    },
    /// Exclude this node from voting.
    ExcludeVoter {
        /// Name of the node.
        node: String,
    },
    /// Remove all voting exclusions.
    ClearVotingExclusions,
    /// Delete a record of ours.
    DeleteRecord {
        /// Id of the node.
        node_id: String,
    },
    /// Exclude nodes from allocation: set `cluster.routing.allocation.exclude._name`.
    ExcludeNames {
        /// The persistent value, if it changes; an inner `None` unsets it.
        persistent: Option<Option<String>>,
        /// The transient value, if it changes; an inner `None` unsets it.
        transient: Option<Option<String>>,
    },
    /// Lower the count of a StatefulSet by one, on the version that was read: the node with the highest
    /// ordinal is removed.
    RemoveNode {
        /// Name of the node set.
        set: String,
        /// Number of nodes afterwards.
        replicas: u32,
    },
    /// Delete a StatefulSet without pods, on the version that was read.
    RemoveNodeSet {
        /// Name of the node set.
        set: String,
    },
}

impl Action {
    /// True if the action gives a pod the label of another revision, and the pod is as that says. Digests of
    /// its container's sources are written by the same kind of patch.
    pub fn gives_revision(&self) -> bool {
        let Self::PatchMetadata { labels, annotations, .. } = self else { return false };
        let actual = annotations.get(ACTUAL_REVISION);
        labels.contains_key(REVISION_LABEL) && actual.is_none_or(|change| change.wanted.is_none())
    }

    /// Uid of the pod that the action changes; an event is about a pod, and does not change it.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::PatchPod { uid, .. }
            | Self::PatchMetadata { uid, .. }
            | Self::PatchImages { uid, .. }
            | Self::Resize { uid, .. }
            | Self::DeletePod { uid }
            | Self::Stop { uid, .. }
            | Self::Drain { uid, .. }
            | Self::EndDrain { uid, .. }
            | Self::Start { uid, .. } => Some(uid),
            Self::WriteLedger(_)
            | Self::RecordEvent(_)
            | Self::AddFinalizer
            | Self::RemoveFinalizer
            | Self::ClaimTrigger { .. }
            | Self::ClearAnnotation { .. }
            | Self::TightenAllocation { .. }
            | Self::RestoreAllocation { .. }
            | Self::Flush { .. }
            | Self::PutRecord { .. }
            | Self::ExcludeVoter { .. }
            | Self::ClearVotingExclusions
            | Self::DeleteRecord { .. }
            | Self::ExcludeNames { .. }
            | Self::RemoveNode { .. }
            | Self::RemoveNodeSet { .. } => None,
        }
    }
}

/// A node, or the cluster as a whole, and the reason why it waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[schemars(rename = "WaitingOutput")]
pub struct Waiting {
    /// Uid of the pod; absent for the whole cluster.
    #[serde(skip)]
    pub pod: Option<String>,
    /// Name of the node; none for the cluster as a whole.
    pub node: Option<String>,
    /// The published name of the rule, or another code.
    #[serde(serialize_with = "as_name")]
    #[schemars(with = "String")]
    pub code: Code,
    // Thousands of pods may have the same. The remedy is in it, too, if the reason does not pass by itself.
    /// The reason, for people.
    pub message: Cow<'static, str>,
}

fn as_name<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

/// A Kubernetes event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    /// Uid of the event's pod; absent for the SearchCluster.
    pub pod: Option<String>,
    /// The reason, one of a fixed list.
    pub reason: Reason,
    pub message: String,
}

/// The reasons of our events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A restart was accepted and begins.
    RestartStarted,
    /// The restart of a node began.
    NodeRestartStarted,
    /// The restart of a node that can be elected began.
    MasterRestartStarted,
    /// A node is not stopped after all, and waits for its turn again.
    SlotGivenBack,
    /// A pod gets the labels and annotations of another template, and its engine goes on.
    PodRelabelled,
    /// A pod that has never started is changed or deleted for its new template.
    PodRepaired,
    /// A node is back, as its manager and the cluster say.
    NodeRestarted,
    /// A node is back with another amount of memory, and its heap is as it was.
    HeapUnchanged,
    /// The restart of a node is aborted, and its engine is started again.
    NodeRestartAborted,
    /// One more tenth of many nodes is done.
    RestartProgress,
    /// A restart has ended as done.
    RestartFinished,
    /// A restart has ended with another outcome.
    RestartAborted,
    /// A request waits for the restart under way.
    RestartQueued,
    /// A request is not carried out; or a node is skipped because the quorum would be lost.
    RestartSkipped,
    /// A request is older than the status and is not carried out.
    RequestAdopted,
    /// Something on a pod or the SearchCluster cannot be understood.
    InputIgnored,
    /// A person changed a phase, and it was written again.
    PhaseRewritten,
    /// A debt could not be paid at once.
    DebtIncurred,
    /// A debt was paid.
    DebtPaid,
    /// A node is kept stopped, or no longer.
    NodeStopped,
    /// A node that was kept stopped is started.
    NodeStarted,
    /// A node begins to leave.
    NodeLeaving,
    /// A node that leaves is empty and has no vote, and its pod is taken away.
    NodeRemoved,
    /// Another controller undoes what we do.
    ForeignController,
    /// A certificate of the managers, or their CA, was renewed.
    CertificateRenewed,
    /// The managers were given other public keys of the apiserver.
    KeysRenewed,
    /// A certificate or a key of the managers ends, and is not renewed.
    CertificateNotRenewed,
}

impl Reason {
    /// True if the event is a warning.
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::HeapUnchanged
                | Self::NodeRestartAborted
                | Self::RestartAborted
                | Self::RestartSkipped
                | Self::InputIgnored
                | Self::PhaseRewritten
                | Self::DebtIncurred
                | Self::ForeignController
                | Self::CertificateNotRenewed
        )
    }

    /// True if an annotation of the pod has the same fact since the same time: then the event is
    /// only logged.
    pub const fn is_on_the_pod(self) -> bool {
        matches!(self, Self::NodeRestarted)
    }

    /// The reason as Kubernetes shows it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RestartStarted => "RestartStarted",
            Self::NodeRestartStarted => "NodeRestartStarted",
            Self::MasterRestartStarted => "MasterRestartStarted",
            Self::SlotGivenBack => "SlotGivenBack",
            Self::PodRelabelled => "PodRelabelled",
            Self::PodRepaired => "PodRepaired",
            Self::NodeRestarted => "NodeRestarted",
            Self::HeapUnchanged => "HeapUnchanged",
            Self::NodeRestartAborted => "NodeRestartAborted",
            Self::RestartProgress => "RestartProgress",
            Self::RestartFinished => "RestartFinished",
            Self::RestartAborted => "RestartAborted",
            Self::RestartQueued => "RestartQueued",
            Self::RestartSkipped => "RestartSkipped",
            Self::RequestAdopted => "RequestAdopted",
            Self::InputIgnored => "InputIgnored",
            Self::PhaseRewritten => "PhaseRewritten",
            Self::DebtIncurred => "DebtIncurred",
            Self::DebtPaid => "DebtPaid",
            Self::NodeStopped => "NodeStopped",
            Self::NodeStarted => "NodeStarted",
            Self::NodeLeaving => "NodeLeaving",
            Self::NodeRemoved => "NodeRemoved",
            Self::ForeignController => "ForeignController",
            Self::CertificateRenewed => "CertificateRenewed",
            Self::KeysRenewed => "KeysRenewed",
            Self::CertificateNotRenewed => "CertificateNotRenewed",
        }
    }
}

/// The request for [`Action::Drain`](crate::Action::Drain).
pub fn drain_request(uid: &str, sequence: u64) -> DrainRequest {
    DrainRequest { sequence: Some(sequence), pod: Some(uid.to_owned()) }
}

/// The request for [`Action::Stop`](crate::Action::Stop) and
/// [`Action::EndDrain`](crate::Action::EndDrain); `drain` is in milliseconds.
pub fn stop_request(
    uid: &str,
    sequence: u64,
    drain: u64,
    resume: Option<&Resume>,
    exit: bool,
) -> StopRequest {
    StopRequest {
        sequence: Some(sequence),
        pod: Some(uid.to_owned()),
        drain: Some(Span(drain)),
        resume_after: resume.map(|resume| Span(resume.after)),
        resume_checksum: resume.and_then(|resume| resume.checksum.clone()),
        exit,
        ..StopRequest::default()
    }
}

/// The request for [`Action::Start`](crate::Action::Start).
pub fn start_request(
    uid: &str,
    sequence: u64,
    checksum: Option<&str>,
    config: ConfigChoice,
) -> StartRequest {
    StartRequest {
        sequence: Some(sequence),
        pod: Some(uid.to_owned()),
        checksum: checksum.map(str::to_owned),
        config,
    }
}
