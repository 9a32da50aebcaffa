//! `status -A`: all clusters, one in a line.

use super::common::{add_reconciler_of_all, not_processed};
use crate::cluster_view::ClusterView;
use crate::page::{Page, Paint};

pub(crate) fn status_of_all(views: &[ClusterView]) -> String {
    let mut page = Page::new(Paint::default());
    add_reconciler_of_all(views, &mut page);
    let mut rows = vec![["CLUSTER", "PHASE", "READY", "RESTART", "WHY"].map(str::to_owned)];
    rows.extend(views.iter().map(row));
    page.table(&rows);
    page.into_text()
}

fn row(view: &ClusterView) -> [String; 5] {
    let name = format!("{}/{}", view.namespace, view.name);
    let Some(status) = &view.status else {
        return [name, "unknown".into(), "-".into(), "-".into(), not_processed(view)];
    };
    let report = &status.report;
    let ready = format!("{}/{}", report.counts.ready, report.counts.pods);
    let restart = match (view.restart(), view.queued()) {
        (Some(restart), _) => {
            let strategy = restart.request.strategy.as_str();
            format!("{}, {}", restart.request.id, report.progress.as_deref().unwrap_or(strategy))
        }
        (None, Some(queued)) => format!("{} waits", queued.id),
        (None, None) => "-".into(),
    };
    let why = match (&report.blocked, &report.message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.clone(),
        (None, Some(message)) if !message.is_empty() => message.clone(),
        (None, _) => "-".into(),
    };
    [name, report.phase.clone(), ready, restart, why]
}
