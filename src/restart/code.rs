//! Why a node is not acted on: one word each, for programs.

use super::Predicate;

/// The word in `waiting`, in `status.nodes[].blockedBy`, in `kubectl stayput why` and in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    // Nothing is wrong.
    /// Nothing was asked.
    Idle,
    /// It is done in this restart.
    Finished,
    /// Its turn comes later.
    NotItsTurn,
    /// The request says not before.
    NotBefore,
    /// Kept stopped on request.
    KeptStopped,
    /// Sources differ from the run's config and nobody has asked for a restart yet.
    PendingRestart,
    // What was asked takes its time.
    /// The mounted config is not the expected one yet.
    ConfigNotMounted,
    /// Its vote is being handed over to another node.
    HandingOver,
    /// The engine has not finished preparing for the stop.
    Preparing,
    /// The engine is being stopped.
    Stopping,
    /// The engine still lists the stopped node.
    StillListed,
    /// The engine was told to run and has not joined yet.
    Joining,
    /// It has joined and is not ready yet.
    NotReady,
    /// Allocation is being set back.
    RestoringAllocation,
    /// It is on the way back.
    Aborting,
    /// A coordinated restart waits for others.
    Barrier,
    /// The next step is written down first.
    Recording,
    // Rules.
    /// `spec.paused`.
    Paused,
    /// One of the ten predicates, under its published name.
    Predicate(Predicate),
    /// Another node is under way.
    AnotherInProgress,
    /// Something is owed.
    Debts,
    /// A majority would be lost.
    Quorum,
    /// An index has no replica.
    UnreplicatedIndex,
    /// A coordinated restart has gone forward, and this node cannot be brought to the config that
    /// was frozen for it.
    Stranded,
    /// The restart costs an outage that was not allowed.
    OutageNotAllowed,
    /// The request's deadline has passed.
    DeadlinePassed,
    // Preflight.
    /// The manager cannot be reached.
    ManagerUnreachable,
    /// The manager is that of another pod.
    WrongPod,
    /// The manager's journal would not survive a crash.
    NotDurable,
    /// The owner is going to replace the pod.
    OwnerWillReplace,
    /// A probe would kill the container.
    LivenessWouldKill,
    /// The manager's live globs are not the spec's.
    LiveMismatch,
    /// A source of the config is absent.
    SourceAbsent,
    /// The manager does not know its mounted config.
    ConfigUnknown,
    /// The pod is being deleted, or is gone.
    PodGone,
    /// The engine's process is in no state to be stopped.
    EngineBusy,
    /// The engine cannot be asked.
    EngineUnreachable,
    /// The engine does not list the node.
    NotListed,
    /// Another cluster answers.
    WrongCluster,
    /// Another controller undoes what we do.
    ForeignController,
    /// Another SearchCluster selects the same pods.
    OverlappingSelectors,
    /// The selector finds no pods.
    NoPods,
    // Input.
    /// An annotation holds what cannot be understood.
    InvalidInput,
    /// Somebody else gave the manager orders.
    Interfered,
}

impl Code {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Finished => "finished",
            Self::NotItsTurn => "not_its_turn",
            Self::NotBefore => "not_before",
            Self::KeptStopped => "kept_stopped",
            Self::PendingRestart => "pending_restart",
            Self::ConfigNotMounted => "config_not_mounted",
            Self::HandingOver => "handing_over",
            Self::Preparing => "preparing",
            Self::Stopping => "stopping",
            Self::StillListed => "still_listed",
            Self::Joining => "joining",
            Self::NotReady => "not_ready",
            Self::RestoringAllocation => "restoring_allocation",
            Self::Aborting => "aborting",
            Self::Barrier => "barrier",
            Self::Recording => "recording",
            Self::Paused => "paused",
            Self::Predicate(predicate) => predicate.name(),
            Self::AnotherInProgress => "another_in_progress",
            Self::Debts => "debts",
            Self::Quorum => "quorum",
            Self::UnreplicatedIndex => "unreplicated_index",
            Self::Stranded => "stranded",
            Self::OutageNotAllowed => "outage_not_allowed",
            Self::DeadlinePassed => "deadline_passed",
            Self::ManagerUnreachable => "manager_unreachable",
            Self::WrongPod => "wrong_pod",
            Self::NotDurable => "not_durable",
            Self::OwnerWillReplace => "owner_will_replace",
            Self::LivenessWouldKill => "liveness_would_kill",
            Self::LiveMismatch => "live_mismatch",
            Self::SourceAbsent => "source_absent",
            Self::ConfigUnknown => "config_unknown",
            Self::PodGone => "pod_gone",
            Self::EngineBusy => "engine_busy",
            Self::EngineUnreachable => "engine_unreachable",
            Self::NotListed => "not_listed",
            Self::WrongCluster => "wrong_cluster",
            Self::ForeignController => "foreign_controller",
            Self::OverlappingSelectors => "overlapping_selectors",
            Self::NoPods => "no_pods",
            Self::InvalidInput => "invalid_input",
            Self::Interfered => "interfered",
        }
    }

    /// Whether it stands for a rule that lets a node pass once others are back or shards are where
    /// they belong, without anybody doing something about it.
    pub const fn passes_by_itself(self) -> bool {
        matches!(self, Self::Predicate(_) | Self::Quorum)
    }

    /// Whether it stands for a rule or a fault that keeps a restart from going on, as against
    /// something that takes its time.
    pub const fn blocks(self) -> bool {
        match self {
            Self::Idle
            | Self::Finished
            | Self::NotItsTurn
            | Self::NotBefore
            | Self::KeptStopped
            | Self::PendingRestart
            | Self::ConfigNotMounted
            | Self::HandingOver
            | Self::Preparing
            | Self::Stopping
            | Self::StillListed
            | Self::Joining
            | Self::NotReady
            | Self::RestoringAllocation
            | Self::Aborting
            | Self::Barrier
            | Self::Recording
            | Self::AnotherInProgress => false,
            Self::Paused
            | Self::Predicate(_)
            | Self::Debts
            | Self::Quorum
            | Self::UnreplicatedIndex
            | Self::Stranded
            | Self::OutageNotAllowed
            | Self::DeadlinePassed
            | Self::ManagerUnreachable
            | Self::WrongPod
            | Self::NotDurable
            | Self::OwnerWillReplace
            | Self::LivenessWouldKill
            | Self::LiveMismatch
            | Self::SourceAbsent
            | Self::ConfigUnknown
            | Self::PodGone
            | Self::EngineBusy
            | Self::EngineUnreachable
            | Self::NotListed
            | Self::WrongCluster
            | Self::ForeignController
            | Self::OverlappingSelectors
            | Self::NoPods
            | Self::InvalidInput
            | Self::Interfered => true,
        }
    }
}
