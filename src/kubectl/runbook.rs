//! The runbook: a page for each code that blocks and for each alert, and pages for all other codes. It
//! is part of the program, because the documents may not be at hand when it is needed.

/// A page: its name, the other names that lead to it, and its text.
struct Page {
    /// The name of a code's page is the code.
    name: &'static str,
    /// Alerts of `deploy/monitoring/rules.yaml`, and codes without a page of their own.
    others: &'static [&'static str],
    text: &'static str,
}

/// Makes pages of rows: the name of a page, and the other names that lead to it.
macro_rules! pages {
    ($($name:literal $($other:literal)*;)*) => {
        &[$(Page {
            name: $name,
            others: &[$($other),*],
            text: include_str!(concat!("../../docs/runbook/", $name, ".md")),
        }),*]
    };
}

/// The table of the runbook.
static PAGES: &[Page] = pages! {
    "allocation" "StayputAllocationLimited";
    "certificate" "StayputCertificateExpires" "StayputServedCertificateExpires";
    "config_unknown";
    "data_tier_with_higher_priority_must_be_upgraded_first";
    "debts" "StayputDebts";
    "declaration_failed";
    "declaration_refused";
    "decode_failed" "StayputDecodeFailed";
    "do_not_delete_all_members_of_a_tier";
    "do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded";
    "do_not_delete_pods_with_same_shards";
    "do_not_interrupt_running_snapshot";
    "do_not_restart_healthy_node_if_MaxUnavailable_reached";
    "engine_busy";
    "engine_held" "checksum_mismatch" "ended_by_itself" "ended_with_manager" "journal_unavailable"
        "journal_unreadable" "no_last_good" "prepare_failed" "resume_refused" "spawn_failed"
        "stage_failed" "start_failed" "temp_dir_failed" "too_many_restarts" "unknown"
        "wrong_config";
    "engine_unreachable";
    "foreign_controller";
    "foreign_object";
    "gate_closed";
    "if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas";
    "interfered";
    "invalid_input";
    "invalid_spec";
    "leave_refused";
    "live_mismatch";
    "liveness_would_kill";
    "log_lines_lost" "StayputLogLinesLost";
    "manager_error" "StayputManagerError" "api" "config_watch" "key_files" "key_watch" "temp_dir"
        "thread" "upgrade";
    "manager_refusal" "body_too_large" "forbidden" "invalid_body" "invalid_query"
        "method_not_allowed" "not_at_rest" "not_found" "pod_unknown" "request_timeout"
        "sequence_jump" "sequence_reused" "stale_sequence" "superseded" "too_many_waiting"
        "unauthenticated" "unavailable" "upgrade_refused";
    "manager_unreachable";
    "needs_coordinated";
    "no_pods";
    "nodes_down" "StayputNodesDown" "backoff" "crash_looping" "failed" "not_in_cluster"
        "pod_missing" "stopped" "stuck";
    "not_durable" "StayputJournalNotDurable";
    "not_listed";
    "one_master_at_a_time";
    "only_restart_healthy_node_if_green_or_yellow";
    "operator_replaces";
    "outdated_definition";
    "overlapping_selectors";
    "owner_will_replace";
    "paused";
    "pod_gone";
    "pod_not_started";
    "pods_unlisted";
    "predicates_disabled" "StayputPredicatesDisabled";
    "quorum";
    "reconciler_absent" "StayputReconcilerAbsent";
    "request_failed";
    "require_started_replica";
    "restart_blocked" "StayputRestartBlocked";
    "skip_already_terminating_pods";
    "source_absent";
    "stopped_long" "StayputNodeStoppedLong";
    "stranded";
    "unreplicated_index";
    "waiting" "aborting" "another_in_progress" "barrier" "config_not_mounted" "draining" "finished"
        "giving_back" "handing_over" "idle" "joining" "kept_stopped" "killing" "leaving"
        "new_container" "not_before" "not_its_turn" "not_ready" "not_started" "outside_window"
        "pending_restart" "preparing" "recording" "recovering" "relabelling" "resizing"
        "restoring_allocation" "server_lingers" "sources_unknown" "starting" "stop_signal_sent"
        "stopped_by_request" "stopping" "stragglers" "terminating" "thread_dump"
        "update_not_allowed" "update_tried" "update_unknown";
    "would_not_fit";
    "wrong_cluster";
    "wrong_pod";
};

/// All names that the command takes: the names of pages, and codes and alerts that lead to one.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PAGES.iter().flat_map(|page| [page.name].into_iter().chain(page.others.iter().copied()))
}

/// The page about a name, one of [`names`].
fn page(name: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.name == name || page.others.contains(&name))
}

/// The text of the page about a name, one of [`names`].
pub(crate) fn about(name: &str) -> Option<&'static str> {
    page(name).map(|page| page.text)
}

/// Address of the page about a code, if there is one.
pub(crate) fn address(code: &str) -> Option<String> {
    let page = page(code)?.name;
    Some(format!("docs/runbook/{page}.md, or: kubectl stayput runbook {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_leads_to_one_page() {
        let mut all: Vec<&str> = names().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
