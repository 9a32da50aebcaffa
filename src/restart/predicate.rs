//! The names of the predicates.

/// A predicate. A node is restarted only if it passes all of them. Each is one file in
/// `rules/predicates` with its name. Ten are those of nodes-orchestration.md, with the published names;
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
