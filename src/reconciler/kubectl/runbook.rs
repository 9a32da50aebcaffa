//! The runbook: a page for each code that blocks, and for each alert. It is part of the program, because
//! the documents may not be at hand when it is needed.

/// Names and texts of these pages.
macro_rules! pages {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../docs/runbook/", $name, ".md")))),*]
    };
}

/// By name, each with its text. The name of a code's page is the code.
static PAGES: &[(&str, &str)] = &pages! {
    "allocation"
    "certificate"
    "config_unknown"
    "data_tier_with_higher_priority_must_be_upgraded_first"
    "debts"
    "declaration_failed"
    "declaration_refused"
    "decode_failed"
    "do_not_delete_all_members_of_a_tier"
    "do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded"
    "do_not_delete_pods_with_same_shards"
    "do_not_interrupt_running_snapshot"
    "do_not_restart_healthy_node_if_MaxUnavailable_reached"
    "engine_busy"
    "engine_unreachable"
    "foreign_controller"
    "foreign_object"
    "gate_closed"
    "if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas"
    "interfered"
    "invalid_input"
    "invalid_spec"
    "leave_refused"
    "live_mismatch"
    "liveness_would_kill"
    "log_lines_lost"
    "manager_error"
    "manager_unreachable"
    "needs_coordinated"
    "no_pods"
    "nodes_down"
    "not_durable"
    "not_listed"
    "one_master_at_a_time"
    "only_restart_healthy_node_if_green_or_yellow"
    "outdated_definition"
    "overlapping_selectors"
    "owner_will_replace"
    "paused"
    "pod_gone"
    "pods_unlisted"
    "predicates_disabled"
    "quorum"
    "reconciler_absent"
    "request_failed"
    "require_started_replica"
    "skip_already_terminating_pods"
    "source_absent"
    "stopped_long"
    "stranded"
    "unreplicated_index"
    "would_not_fit"
    "wrong_cluster"
    "wrong_pod"
};

/// The names of all pages.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(name, _)| *name)
}

/// The text of a page.
pub(super) fn page(name: &str) -> Option<&'static str> {
    PAGES.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// Where to read what to do about a code; none if it has no page.
pub(super) fn address(code: &str) -> Option<String> {
    page(code).map(|_| format!("docs/runbook/{code}.md, or: kubectl stayput runbook {code}"))
}
