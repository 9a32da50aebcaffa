//! `history`: what is over, the latest first.

use super::UNSEEN;
use crate::kubectl::text::{Page, Paint, spoken, stamp};
use crate::kubectl::view::View;

/// The whole page.
pub(in crate::kubectl) fn history(view: &View) -> String {
    let mut page = Page::new(Paint::default());
    if view.history().is_empty() {
        page.line(match view.status {
            Some(_) => "no restart has ended yet",
            None => UNSEEN,
        });
        return page.into_text();
    }
    let head = ["STARTED", "TOOK", "STRATEGY", "NODES", "OUTCOME", "ID", "REASON"];
    let mut rows = vec![head.map(str::to_owned)];
    for entry in view.history().iter().rev() {
        rows.push([
            stamp(entry.started),
            spoken(entry.seconds),
            entry.strategy.as_str().to_owned(),
            entry.nodes.to_string(),
            entry.outcome.as_str().to_owned(),
            entry.id.clone(),
            entry.reason.clone(),
        ]);
    }
    page.table(&rows);
    page.into_text()
}
