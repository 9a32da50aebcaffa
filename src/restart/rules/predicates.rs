//! The predicates: one file and one function each, under its name. All but
//! `do_not_interrupt_running_snapshot` are those of nodes-orchestration.md; each of these describes how
//! it differs from the published predicate because the pod stays ("in place"). A predicate checks one
//! candidate against the state of the cluster ([`Evaluation`]) and returns a message for people if it
//! blocks.

mod data_tier_with_higher_priority_must_be_upgraded_first;
mod do_not_delete_all_members_of_a_tier;
mod do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded;
mod do_not_delete_pods_with_same_shards;
mod do_not_interrupt_running_snapshot;
mod do_not_restart_healthy_node_if_max_unavailable_reached;
mod if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas;
mod one_master_at_a_time;
mod only_restart_healthy_node_if_green_or_yellow;
mod require_started_replica;
mod skip_already_terminating_pods;

use std::fmt::{self, Display};

use super::more_shards;
use super::{evaluation::Evaluation, peer::Peer};
use crate::blocker::{Blocker, Check, refuse};
use crate::{Code, Predicate};

/// Evaluates one predicate, unless it is disabled.
pub(super) fn check(
    predicate: Predicate,
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if evaluation.disabled.contains(predicate) {
        return Ok(());
    }
    let rule = match predicate {
        Predicate::DataTier => data_tier_with_higher_priority_must_be_upgraded_first::data_tier_with_higher_priority_must_be_upgraded_first,
        Predicate::MaxUnavailable => do_not_restart_healthy_node_if_max_unavailable_reached::do_not_restart_healthy_node_if_max_unavailable_reached,
        Predicate::Terminating => skip_already_terminating_pods::skip_already_terminating_pods,
        Predicate::GreenOrYellow => only_restart_healthy_node_if_green_or_yellow::only_restart_healthy_node_if_green_or_yellow,
        Predicate::Yellow => if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas::if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas,
        Predicate::StartedReplica => require_started_replica::require_started_replica,
        Predicate::OneMaster => one_master_at_a_time::one_master_at_a_time,
        Predicate::LastMaster => do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded::do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded,
        Predicate::SameShards => do_not_delete_pods_with_same_shards::do_not_delete_pods_with_same_shards,
        Predicate::WholeTier => do_not_delete_all_members_of_a_tier::do_not_delete_all_members_of_a_tier,
        Predicate::RunningSnapshot => do_not_interrupt_running_snapshot::do_not_interrupt_running_snapshot,
    };
    rule(evaluation, candidate)
}

/// The end of a message that says "waits": advice in case it waits forever.
pub(super) fn disable_hint(predicate: Predicate) -> impl Display {
    fmt::from_fn(move |f| {
        write!(
            f,
            "if that never happens, repair what it waits for; as a last resort, disable \
             the rule with spec.restart.disabledPredicates: [{}]",
            predicate.name()
        )
    })
}

pub(super) fn block(predicate: Predicate, message: impl Into<String>) -> Check {
    refuse(Code::Predicate(predicate), message)
}
