//! The runbook: a page for each code that blocks and for each alert, and pages for all other codes. It
//! is part of the program, because the documents may not be at hand when it is needed.

/// Names and texts of these pages.
macro_rules! pages {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../docs/runbook/", $name, ".md")))),*]
    };
}

/// Pages by name, each with its text. The name of a code's page is the code.
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
    "engine_held"
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
    "manager_refusal"
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
    "pod_not_started"
    "pods_unlisted"
    "predicates_disabled"
    "quorum"
    "reconciler_absent"
    "request_failed"
    "require_started_replica"
    "restart_blocked"
    "skip_already_terminating_pods"
    "source_absent"
    "stopped_long"
    "stranded"
    "unreplicated_index"
    "waiting"
    "would_not_fit"
    "wrong_cluster"
    "wrong_pod"
};

/// Alerts of `deploy/monitoring/rules.yaml`, each with its page.
static ALERTS: &[(&str, &str)] = &[
    ("StayputAllocationLimited", "allocation"),
    ("StayputCertificateExpires", "certificate"),
    ("StayputDebts", "debts"),
    ("StayputDecodeFailed", "decode_failed"),
    ("StayputJournalNotDurable", "not_durable"),
    ("StayputLogLinesLost", "log_lines_lost"),
    ("StayputManagerError", "manager_error"),
    ("StayputNodeStoppedLong", "stopped_long"),
    ("StayputNodesDown", "nodes_down"),
    ("StayputPredicatesDisabled", "predicates_disabled"),
    ("StayputReconcilerAbsent", "reconciler_absent"),
    ("StayputRestartBlocked", "restart_blocked"),
    ("StayputServedCertificateExpires", "certificate"),
];

/// Codes without a page of their own, by the page that explains them.
static ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "waiting",
        &[
            "aborting",
            "another_in_progress",
            "barrier",
            "config_not_mounted",
            "draining",
            "finished",
            "giving_back",
            "handing_over",
            "idle",
            "joining",
            "kept_stopped",
            "killing",
            "leaving",
            "new_container",
            "not_before",
            "not_its_turn",
            "not_ready",
            "not_started",
            "outside_window",
            "pending_restart",
            "preparing",
            "recording",
            "recovering",
            "relabelling",
            "resizing",
            "restoring_allocation",
            "server_lingers",
            "sources_unknown",
            "starting",
            "stop_signal_sent",
            "stopped_by_request",
            "stopping",
            "stragglers",
            "terminating",
            "thread_dump",
            "update_not_allowed",
            "update_tried",
            "update_unknown",
        ],
    ),
    // Why a node is down, as the status says it.
    (
        "nodes_down",
        &[
            "backoff",
            "crash_looping",
            "failed",
            "not_in_cluster",
            "operator_replaces",
            "pod_missing",
            "stopped",
            "stuck",
        ],
    ),
    (
        "engine_held",
        &[
            "checksum_mismatch",
            "ended_by_itself",
            "ended_with_manager",
            "journal_unavailable",
            "journal_unreadable",
            "no_last_good",
            "prepare_failed",
            "resume_refused",
            "spawn_failed",
            "stage_failed",
            "start_failed",
            "temp_dir_failed",
            "too_many_restarts",
            "unknown",
            "wrong_config",
        ],
    ),
    (
        "manager_error",
        &["api", "config_watch", "key_files", "key_watch", "temp_dir", "thread", "upgrade"],
    ),
    (
        "manager_refusal",
        &[
            "body_too_large",
            "forbidden",
            "invalid_body",
            "invalid_query",
            "method_not_allowed",
            "not_at_rest",
            "not_found",
            "pod_unknown",
            "request_timeout",
            "sequence_jump",
            "sequence_reused",
            "stale_sequence",
            "superseded",
            "too_many_waiting",
            "unauthenticated",
            "unavailable",
            "upgrade_refused",
        ],
    ),
];

/// All names that the command takes: the names of pages, and codes and alerts that lead to one.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let pages = PAGES.iter().chain(ALERTS).map(|(name, _)| *name);
    pages.chain(ELSEWHERE.iter().flat_map(|(_, codes)| codes.iter().copied()))
}

/// The text of the page for a name, one of [`names`].
pub(crate) fn about(name: &str) -> Option<&'static str> {
    let name = page_about(name);
    PAGES.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// Address of the page about a code, if there is one.
pub(crate) fn address(code: &str) -> Option<String> {
    let page = page_about(code);
    about(code).map(|_| format!("docs/runbook/{page}.md, or: kubectl stayput runbook {code}"))
}

/// The name of the page about a code, if there is one: mostly the code itself.
fn page_about(name: &str) -> &str {
    let alert = ALERTS.iter().find(|(alert, _)| *alert == name).map(|(_, page)| *page);
    let elsewhere = ELSEWHERE.iter().find(|(_, codes)| codes.contains(&name));
    alert.or(elsewhere.map(|(page, _)| *page)).unwrap_or(name)
}
