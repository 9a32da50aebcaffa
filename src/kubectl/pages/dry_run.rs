//! `restart --dry-run`: the effect of a request, and the order of nodes as far as it is known without
//! the engine.

use super::common::{add_options, request_summary};
use super::forecast::add_steps;
use crate::cluster_view::ClusterView;
use crate::forecast::DatedForecast;
use crate::page::{Page, Paint};
use crate::pod_view::PodView;
use stayput_restart::{Request, Strategy};

/// Remark on how the order shown can differ from the restart's own.
pub(super) const ORDER_LIMITS: &str = "(data nodes go before master-eligible nodes and the elected master goes last, which only the \
     engine knows)";

/// The page without a forecast, with the reason for that.
pub(crate) fn dry_run(
    view: &ClusterView,
    request: &Request,
    forecast: Result<&DatedForecast, &String>,
) -> String {
    let mut page = Page::new(Paint::default());
    page.fact("request", request_summary(request));
    if let Some(restart) = view.restart() {
        let id = &restart.request.id;
        page.fact("waits", format!("until restart {id}, which is under way, has ended"));
    }
    if view.paused {
        page.fact("waits", "until spec.paused is false");
    }
    match forecast {
        Ok(dated) => {
            add_steps(&dated.forecast, &mut page);
            add_options(view, &mut page);
        }
        Err(why) => {
            add_order(view, request, &mut page);
            page.fact("no dry run", why);
        }
    }
    page.line("This is a dry run: nothing was requested.");
    page.into_text()
}

/// Adds the nodes in their order.
pub(super) fn add_order(view: &ClusterView, request: &Request, page: &mut Page) {
    let target = &request.target;
    let is_meant = |pod: &&&PodView| target.nodes.is_empty() || target.nodes.contains(&pod.node);
    let order = view.restart_order();
    let order: Vec<&str> = order.iter().filter(is_meant).map(|pod| pod.node.as_str()).collect();
    let names = order.join(", ");
    let is_coordinated = request.strategy == Strategy::Coordinated;
    if is_coordinated {
        page.fact("nodes", format!("{names}: all are stopped before any is started"));
    } else {
        page.fact("order", names);
    }
    if target.is_by_engine() {
        page.fact("", "(only those with the role or zone, which only the engine knows)");
    }
    if !is_coordinated && order.len() > 1 {
        page.fact("", ORDER_LIMITS);
    }
    let kept = view.pods.iter().filter(|pod| view.is_kept_stopped(pod));
    let kept: Vec<&str> = kept.map(|pod| pod.node.as_str()).collect();
    if !kept.is_empty() {
        page.fact("left out", format!("{}: kept stopped", kept.join(", ")));
    }
}
