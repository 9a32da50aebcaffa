//! `history`: the restarts that have ended, the latest first, and changes that restarted nothing.

use super::common::{NOT_PROCESSED, ignored_changes};
use crate::kubectl::cluster_view::ClusterView;
use crate::kubectl::format::{rounded_duration, time_to_second};
use crate::kubectl::page::{Page, Paint};
use stayput_restart::HistoryEntry;

pub(in crate::kubectl) fn history(view: &ClusterView) -> String {
    let mut page = Page::new(Paint::default());
    match (view.history().is_empty(), &view.status) {
        (false, _) => add_table(view, &mut page),
        (true, Some(_)) => page.line("no restart has ended yet"),
        (true, None) => page.line(NOT_PROCESSED),
    }
    for ignored in ignored_changes(view, None) {
        page.line(ignored);
    }
    page.into_text()
}

fn add_table(view: &ClusterView, page: &mut Page) {
    let head = ["STARTED", "TOOK", "STRATEGY", "NODES", "OUTCOME", "ID", "REASON"];
    let mut rows = vec![head.map(str::to_owned)];
    for entry in view.history().iter().rev() {
        rows.push([
            time_to_second(entry.started),
            rounded_duration(entry.seconds),
            entry.strategy.as_str().to_owned(),
            nodes(entry),
            entry.outcome.as_str().to_owned(),
            entry.id.clone(),
            entry.reason.clone(),
        ]);
    }
    page.table(&rows);
}

/// How many nodes, and how many of them by a step beyond their process.
fn nodes(entry: &HistoryEntry) -> String {
    let steps: Vec<String> =
        entry.steps.iter().map(|(step, count)| format!("{count} {step}")).collect();
    match steps.is_empty() {
        true => entry.nodes.to_string(),
        false => format!("{} ({})", entry.nodes, steps.join(", ")),
    }
}
