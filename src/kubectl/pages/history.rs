//! `history`: the restarts that have ended, the latest first, and changes that restarted nothing.

use super::common::{add_reconciler, add_reconciler_of_all, ignored_changes, not_processed};
use crate::cluster_view::ClusterView;
use crate::format::{rounded_duration, time_to_second};
use crate::page::{Page, Paint};
use stayput_restart::HistoryEntry;

pub(crate) fn history(view: &ClusterView) -> String {
    let mut page = Page::new(Paint::default());
    add_reconciler(view, &mut page);
    match (view.history().is_empty(), &view.status) {
        (false, _) => add_table(view, &mut page),
        (true, Some(_)) => page.line("no restart has ended yet"),
        (true, None) => page.line(not_processed(view)),
    }
    for ignored in ignored_changes(view, None) {
        page.line(ignored);
    }
    page.into_text()
}

fn add_table(view: &ClusterView, page: &mut Page) {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(view.history().iter().rev().map(row));
    page.table(&rows);
}

/// The restarts of all clusters, the latest first.
pub(crate) fn history_of_all(views: &[ClusterView]) -> String {
    let mut page = Page::new(Paint::default());
    add_reconciler_of_all(views, &mut page);
    let of = |view: &ClusterView| format!("{}/{}", view.namespace, view.name);
    let entries =
        views.iter().flat_map(|view| view.history().iter().map(move |one| (of(view), one)));
    let mut entries: Vec<(String, &HistoryEntry)> = entries.collect();
    entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.started));
    if entries.is_empty() {
        page.line("no restart has ended yet");
        return page.into_text();
    }
    let with_cluster = |cluster: String, row: [String; 7]| {
        let [started, took, strategy, nodes, outcome, id, reason] = row;
        [started, cluster, took, strategy, nodes, outcome, id, reason]
    };
    let mut rows = vec![with_cluster("CLUSTER".to_owned(), HEAD.map(str::to_owned))];
    rows.extend(entries.into_iter().map(|(cluster, entry)| with_cluster(cluster, row(entry))));
    page.table(&rows);
    page.into_text()
}

const HEAD: [&str; 7] = ["STARTED", "TOOK", "STRATEGY", "NODES", "OUTCOME", "ID", "REASON"];

fn row(entry: &HistoryEntry) -> [String; 7] {
    [
        time_to_second(entry.started),
        rounded_duration(entry.seconds),
        entry.strategy.as_str().to_owned(),
        nodes_by_step(entry),
        entry.outcome.as_str().to_owned(),
        entry.id.clone(),
        reason(entry),
    ]
}

/// Why the restart ended so, the outages that it was allowed, and the rules that it skipped.
pub(crate) fn reason(entry: &HistoryEntry) -> String {
    let skipped = if entry.skipped_rules.is_empty() {
        String::new()
    } else {
        format!("without {}", entry.skipped_rules.join(", "))
    };
    let outage = if entry.allowed_outage { "an outage was allowed" } else { "" };
    let parts = [entry.reason.as_str(), outage, &skipped];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// Number of nodes, in total and by step.
pub(crate) fn nodes_by_step(entry: &HistoryEntry) -> String {
    let steps: Vec<String> =
        entry.steps.iter().map(|(step, count)| format!("{count} {step}")).collect();
    if steps.is_empty() {
        entry.nodes.to_string()
    } else {
        format!("{} ({})", entry.nodes, steps.join(", "))
    }
}
