//! The nodes that are not simply ready: why each waits, and what to do.

use maud::{Markup, html};

use super::state::State;
use super::text::{code, prose};
use crate::ui::page_model::PageModel;
use stayput_restart::{MAX_NODES, NodeReport};

pub(super) fn nodes(model: &PageModel) -> Markup {
    let view = &model.view;
    let listed: Vec<&NodeReport> =
        view.status.iter().flat_map(|status| &status.report.nodes).collect();
    html! {
        @if listed.is_empty() { p.muted { "Every node is simply running." } }
        @else {
            table {
                thead { tr {
                    @for name in ["Node", "State", "Phase", "Engine", "Code", "Why"] {
                        th scope="col" { (name) }
                    }
                } }
                tbody { @for node in &listed { (row(model, node)) } }
            }
            @if view.is_cut() {
                p.muted { "The first " (MAX_NODES) " nodes: the status names no more." }
            }
        }
    }
}

fn row(model: &PageModel, node: &NodeReport) -> Markup {
    let view = &model.view;
    let pod = view.pod_of_node(&node.name);
    let phase = pod.and_then(|pod| pod.phase.as_deref()).or(node.phase.as_deref());
    // The pages of the runbook about nodes that are down have one name.
    let down = node.down.as_ref().map(|_| "nodes_down");
    html! {
        tr id={ "why-" (node.name) } tabindex="-1" {
            th scope="row" { (node.name) }
            td { @match pod {
                Some(pod) => {
                    @let state = State::of(view, pod);
                    span class={ "badge " (state.class()) } {
                        span.sign aria-hidden="true" { (state.sign()) } (state.word())
                    }
                },
                None => "no pod",
            } }
            td { (phase.unwrap_or("–")) }
            td { (node.state.as_deref().unwrap_or("–")) }
            td { @match down.or(node.blocked_by.as_deref()).or(node.waits_for.as_deref()) {
                Some(why) => (code(why)),
                None => "–",
            } }
            td.text {
                (prose(node.message.as_deref().unwrap_or("–")))
                @if !node.because.is_empty() { br; span.muted { (node.because.join("; ")) } }
            }
        }
    }
}
