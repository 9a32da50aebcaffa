//! The Kubernetes events that a plan records.

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
        match self {
            Self::HeapUnchanged
            | Self::NodeRestartAborted
            | Self::RestartAborted
            | Self::RestartSkipped
            | Self::InputIgnored
            | Self::PhaseRewritten
            | Self::DebtIncurred
            | Self::ForeignController
            | Self::CertificateNotRenewed => true,
            Self::RestartStarted
            | Self::NodeRestartStarted
            | Self::MasterRestartStarted
            | Self::SlotGivenBack
            | Self::PodRelabelled
            | Self::PodRepaired
            | Self::NodeRestarted
            | Self::RestartProgress
            | Self::RestartFinished
            | Self::RestartQueued
            | Self::RequestAdopted
            | Self::DebtPaid
            | Self::NodeStopped
            | Self::NodeStarted
            | Self::NodeLeaving
            | Self::NodeRemoved
            | Self::CertificateRenewed
            | Self::KeysRenewed => false,
        }
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
