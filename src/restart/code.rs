//! Codes for programs: reasons why a node waits.

/// The code in `waiting`, in `status.nodes[].blockedBy`, in `kubectl stayput why` and in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    // Nothing is wrong.
    /// Nothing was requested.
    Idle,
    /// The node's part of this restart is done.
    Finished,
    /// The node's turn comes later.
    NotItsTurn,
    /// The request has a time before which no node is stopped.
    NotBefore,
    /// No maintenance window is open.
    OutsideWindow,
    /// Kept stopped on request.
    KeptStopped,
    /// The node leaves the cluster, and is not restarted any more.
    Leaving,
    /// The node runs on another config than its sources have, and no restart was requested yet.
    PendingRestart,
    /// The node's pod template has changed, and the step that carries it out is not allowed.
    UpdateNotAllowed,
    /// The difference between the node's pod and its owner's template is not known.
    UpdateUnknown,
    /// A restart for its pod template has ended and did not carry it out.
    UpdateTried,
    // A step takes its time.
    /// The mounted config is not the expected one yet.
    ConfigNotMounted,
    /// The node's vote is being transferred to another node.
    HandingOver,
    /// The engine has not finished preparing for the stop.
    Preparing,
    /// The engine is being stopped.
    Stopping,
    /// The kubelet makes the container of the manager anew.
    NewContainer,
    /// The kubelet puts a new size of the pod into effect.
    Resizing,
    /// Labels and annotations of the pod are being changed.
    Relabelling,
    /// The engine was started and has not joined the cluster yet.
    Joining,
    /// The node has joined and is not ready yet.
    NotReady,
    /// Allocation is being restored.
    RestoringAllocation,
    /// The node is back, and its shards recover.
    Recovering,
    /// A node gives its slot back, or has done so a short while ago.
    GivingBack,
    /// The node's restart is aborted, and its engine is being started again.
    Aborting,
    /// A coordinated restart waits for other nodes.
    Barrier,
    /// The next step is being written to the ledger.
    Recording,
    // Rules.
    /// `spec.paused`.
    Paused,
    /// A gate on the SearchCluster is closed for this restart.
    GateClosed,
    /// One of the predicates, under its name.
    Predicate(Predicate),
    /// Another node is under way.
    AnotherInProgress,
    /// A debt is not paid yet.
    Debts,
    /// The quorum would be lost.
    Quorum,
    /// An index has no replica.
    UnreplicatedIndex,
    /// A coordinated restart has gone forward, and this node cannot be brought to the config that
    /// was frozen for it.
    Stranded,
    /// The changed config needs all nodes at once, and nobody has asked for that.
    NeedsCoordinated,
    // Preflight.
    /// The manager cannot be reached.
    ManagerUnreachable,
    /// The pod has never started, so it has no manager yet.
    PodNotStarted,
    /// The manager is that of another pod.
    WrongPod,
    /// The manager's journal would not survive a crash.
    NotDurable,
    /// The pod's owner is going to replace it.
    OwnerWillReplace,
    /// An operator replaces pods of the cluster.
    OperatorReplaces,
    /// Another pod in its place would fit nowhere.
    WouldNotFit,
    /// A probe would kill the container.
    LivenessWouldKill,
    /// The manager's live globs are not the spec's.
    LiveMismatch,
    /// A source of the config is absent.
    SourceAbsent,
    /// The sources of the config are neither named nor found.
    SourcesUnknown,
    /// The manager does not know its mounted config.
    ConfigUnknown,
    /// The pod is being deleted, or is gone.
    PodGone,
    /// The engine is in a state in which it cannot be stopped.
    EngineBusy,
    /// The engine does not answer.
    EngineUnreachable,
    /// The engine does not list the node.
    NotListed,
    /// Another cluster answers.
    WrongCluster,
    /// Another controller undoes what we do.
    ForeignController,
    /// Another SearchCluster selects the same pods.
    OverlappingSelectors,
    // Input.
    /// The value of an annotation is invalid.
    InvalidInput,
    /// Another client sent the manager requests.
    Interfered,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Finished => "finished",
            Self::NotItsTurn => "not_its_turn",
            Self::NotBefore => "not_before",
            Self::OutsideWindow => "outside_window",
            Self::KeptStopped => "kept_stopped",
            Self::Leaving => "leaving",
            Self::PendingRestart => "pending_restart",
            Self::ConfigNotMounted => "config_not_mounted",
            Self::HandingOver => "handing_over",
            Self::Preparing => "preparing",
            Self::Stopping => "stopping",
            Self::UpdateNotAllowed => "update_not_allowed",
            Self::UpdateUnknown => "update_unknown",
            Self::UpdateTried => "update_tried",
            Self::NewContainer => "new_container",
            Self::Resizing => "resizing",
            Self::Relabelling => "relabelling",
            Self::Joining => "joining",
            Self::NotReady => "not_ready",
            Self::RestoringAllocation => "restoring_allocation",
            Self::Recovering => "recovering",
            Self::GivingBack => "giving_back",
            Self::Aborting => "aborting",
            Self::Barrier => "barrier",
            Self::Recording => "recording",
            Self::Paused => "paused",
            Self::GateClosed => "gate_closed",
            Self::Predicate(predicate) => predicate.name(),
            Self::AnotherInProgress => "another_in_progress",
            Self::Debts => "debts",
            Self::Quorum => "quorum",
            Self::UnreplicatedIndex => "unreplicated_index",
            Self::Stranded => "stranded",
            Self::NeedsCoordinated => "needs_coordinated",
            Self::ManagerUnreachable => "manager_unreachable",
            Self::PodNotStarted => "pod_not_started",
            Self::WrongPod => "wrong_pod",
            Self::NotDurable => "not_durable",
            Self::OwnerWillReplace => "owner_will_replace",
            Self::OperatorReplaces => "operator_replaces",
            Self::WouldNotFit => "would_not_fit",
            Self::LivenessWouldKill => "liveness_would_kill",
            Self::LiveMismatch => "live_mismatch",
            Self::SourceAbsent => "source_absent",
            Self::SourcesUnknown => "sources_unknown",
            Self::ConfigUnknown => "config_unknown",
            Self::PodGone => "pod_gone",
            Self::EngineBusy => "engine_busy",
            Self::EngineUnreachable => "engine_unreachable",
            Self::NotListed => "not_listed",
            Self::WrongCluster => "wrong_cluster",
            Self::ForeignController => "foreign_controller",
            Self::OverlappingSelectors => "overlapping_selectors",
            Self::InvalidInput => "invalid_input",
            Self::Interfered => "interfered",
        }
    }

    /// True for a rule that a node passes later without action by a person: once others are back or
    /// shards are allocated.
    pub const fn passes_by_itself(self) -> bool {
        matches!(self, Self::Predicate(_) | Self::Quorum)
    }

    /// True if the reason lasts until a time that is known.
    pub const fn waits_for_its_time(self) -> bool {
        matches!(self, Self::NotBefore | Self::OutsideWindow)
    }

    /// True if the reason lasts until a person changes something.
    pub const fn needs_a_person(self) -> bool {
        matches!(
            self,
            Self::UnreplicatedIndex
                | Self::Stranded
                | Self::NeedsCoordinated
                | Self::NotDurable
                | Self::WouldNotFit
                | Self::LivenessWouldKill
                | Self::LiveMismatch
                | Self::SourceAbsent
                | Self::WrongCluster
                | Self::ForeignController
                | Self::OverlappingSelectors
                | Self::InvalidInput
        )
    }

    /// True if a pod keeps its old template for this reason. That need not prevent a restart of
    /// its engine.
    pub(crate) const fn is_about_a_template(self) -> bool {
        matches!(self, Self::UpdateNotAllowed | Self::UpdateUnknown | Self::UpdateTried)
    }

    /// True for a rule or a fault that blocks a restart, false for a step that takes its time.
    pub const fn blocks(self) -> bool {
        match self {
            Self::Idle
            | Self::Finished
            | Self::NotItsTurn
            | Self::NotBefore
            | Self::OutsideWindow
            | Self::KeptStopped
            | Self::Leaving
            | Self::PendingRestart
            | Self::SourcesUnknown
            | Self::ConfigNotMounted
            | Self::HandingOver
            | Self::Preparing
            | Self::Stopping
            | Self::UpdateNotAllowed
            | Self::UpdateUnknown
            | Self::UpdateTried
            | Self::NewContainer
            | Self::Resizing
            | Self::Relabelling
            | Self::Joining
            | Self::NotReady
            | Self::RestoringAllocation
            | Self::Recovering
            | Self::GivingBack
            | Self::Aborting
            | Self::Barrier
            | Self::Recording
            | Self::AnotherInProgress => false,
            Self::Paused
            | Self::GateClosed
            | Self::Predicate(_)
            | Self::Debts
            | Self::Quorum
            | Self::UnreplicatedIndex
            | Self::Stranded
            | Self::NeedsCoordinated
            | Self::ManagerUnreachable
            | Self::PodNotStarted
            | Self::WrongPod
            | Self::NotDurable
            | Self::OwnerWillReplace
            | Self::OperatorReplaces
            | Self::WouldNotFit
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
            | Self::InvalidInput
            | Self::Interfered => true,
        }
    }
}

/// A predicate. A node is restarted only if it passes all of them. Each is one function in
/// `rules/predicates.rs` with its name. Ten are those of nodes-orchestration.md, with the published names;
/// the last is our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Predicate {
    /// `data_tier_with_higher_priority_must_be_upgraded_first`
    DataTier,
    /// `do_not_restart_healthy_node_if_MaxUnavailable_reached`
    MaxUnavailable,
    /// `skip_already_terminating_pods`
    Terminating,
    /// `only_restart_healthy_node_if_green_or_yellow`
    GreenOrYellow,
    /// `if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas`
    Yellow,
    /// `require_started_replica`
    StartedReplica,
    /// `one_master_at_a_time`
    OneMaster,
    /// `do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded`
    LastMaster,
    /// `do_not_delete_pods_with_same_shards`
    SameShards,
    /// `do_not_delete_all_members_of_a_tier`
    WholeTier,
    /// `do_not_interrupt_running_snapshot`
    RunningSnapshot,
}

impl Predicate {
    /// All predicates, in the order in which they are evaluated.
    pub const ALL: [Self; 11] = [
        Self::DataTier,
        Self::MaxUnavailable,
        Self::Terminating,
        Self::GreenOrYellow,
        Self::Yellow,
        Self::StartedReplica,
        Self::OneMaster,
        Self::LastMaster,
        Self::SameShards,
        Self::WholeTier,
        Self::RunningSnapshot,
    ];

    /// The predicate of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|predicate| predicate.name() == name)
    }

    /// Name of the predicate, in `status.nodes[].blockedBy`, in metrics and for disabling it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataTier => "data_tier_with_higher_priority_must_be_upgraded_first",
            Self::MaxUnavailable => "do_not_restart_healthy_node_if_MaxUnavailable_reached",
            Self::Terminating => "skip_already_terminating_pods",
            Self::GreenOrYellow => "only_restart_healthy_node_if_green_or_yellow",
            Self::Yellow => "if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas",
            Self::StartedReplica => "require_started_replica",
            Self::OneMaster => "one_master_at_a_time",
            Self::LastMaster => {
                "do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded"
            }
            Self::SameShards => "do_not_delete_pods_with_same_shards",
            Self::WholeTier => "do_not_delete_all_members_of_a_tier",
            Self::RunningSnapshot => "do_not_interrupt_running_snapshot",
        }
    }
}
