//! A dry run: the steps of a restart in their order, and which rule blocks which nodes.

use super::common::{add_options, only_restarted, request_summary, update};
use crate::cluster_view::ClusterView;
use crate::forecast::DatedForecast;
use crate::format::{node_count, time_to_second};
use crate::page::{Page, Paint, Tone};
use stayput_restart::{
    Basis, Code, Forecast, ForecastNode, ForecastStep, ForecastStepKind, ForecastTime, Waiting,
};

/// Assumption of a dry run.
const ASSUMPTION: &str =
    "(assuming that every node comes back and nothing else in the cluster changes)";

pub(crate) fn forecast(view: &ClusterView, dated: &DatedForecast, paint: Paint) -> String {
    let mut page = Page::new(paint);
    let DatedForecast { observed_at, forecast } = dated;
    let at = time_to_second(*observed_at);
    page.fact("cluster", format!("{}/{}, observed at {at}", view.namespace, view.name));
    page.fact("restart", basis(forecast));
    add_steps(forecast, &mut page);
    add_options(view, &mut page);
    page.into_text()
}

/// Adds the steps, and the nodes without a step.
pub(super) fn add_steps(forecast: &Forecast, page: &mut Page) {
    if let Some(blocker) = &forecast.blocked_by {
        page.toned("blocked by", Tone::Bad, code_and_message(blocker));
    }
    for (number, step) in (1..).zip(&forecast.steps) {
        add_step(number, step, page);
    }
    if forecast.steps.is_empty() {
        page.fact("steps", "none");
    } else {
        page.fact("", only_restarted());
    }
    for (nodes, message) in grouped(&forecast.not_yet) {
        page.toned("not yet", Tone::Warning, format!("{nodes}: {message}"));
    }
    for (nodes, message) in grouped(&forecast.never) {
        page.toned("never", Tone::Bad, format!("{nodes}: {message}"));
    }
    for (nodes, message) in grouped(&forecast.waiting) {
        page.fact("waiting", format!("{nodes}: {message}"));
    }
    add_other_updates(&forecast.other_updates, page);
    if forecast.steps.iter().any(|step| step.when == ForecastTime::Later) {
        page.fact("", ASSUMPTION);
    }
}

/// Adds the template changes that no step carries out; nodes that lack the same share a line.
fn add_other_updates(nodes: &[ForecastNode], page: &mut Page) {
    for group in nodes.chunk_by(is_alike) {
        let names: Vec<&str> = group.iter().map(|node| node.name.as_str()).collect();
        let Some(first) = group.first() else { continue };
        let update = update(first.step, &first.because).unwrap_or_default();
        page.fact("template", format!("{} ({}): {update}", names.join(", "), first.message));
    }
}

/// True if two nodes get the same step for the same reason.
fn is_alike(one: &ForecastNode, other: &ForecastNode) -> bool {
    (&one.message, one.step, &one.because) == (&other.message, other.step, &other.because)
}

fn basis(forecast: &Forecast) -> String {
    let request = request_summary(&forecast.request);
    match forecast.basis {
        Basis::UnderWay => format!("{request}: under way"),
        Basis::Requested => format!("{request}: about to begin"),
        Basis::Hypothetical => {
            let strategy = forecast.request.strategy.as_str();
            format!("none requested; a {strategy} restart would do this")
        }
    }
}

/// Adds one step; nodes that go for the same reason share a line.
fn add_step(number: usize, step: &ForecastStep, page: &mut Page) {
    let action = match step.kind {
        ForecastStepKind::Restart => "",
        ForecastStepKind::Stop => "stop ",
        ForecastStepKind::Start => "start ",
    };
    let when = match step.when {
        ForecastTime::UnderWay => "under way: ",
        ForecastTime::Now => "now: ",
        ForecastTime::Later => "",
    };
    let mut name = format!("step {number}");
    for group in step.nodes.chunk_by(is_alike) {
        let nodes: Vec<&str> = group.iter().map(|node| node.name.as_str()).collect();
        let reason = group.first().map_or("", |node| &node.message);
        page.fact(&name, format!("{when}{action}{} ({reason})", nodes.join(", ")));
        name.clear();
        if let Some(update) = group.first().and_then(|node| update(node.step, &node.because)) {
            page.fact("", update);
        }
    }
}

fn code_and_message(waiting: &Waiting) -> String {
    format!("{}: {}", waiting.code.as_str(), waiting.message)
}

/// Nodes with the same reason to wait, with the reason. Finished nodes and those outside the restart are
/// only counted.
fn grouped(waiting: &[Waiting]) -> Vec<(String, String)> {
    let mut lines: Vec<(Vec<&str>, &Waiting)> = Vec::new();
    let mut unconcerned = 0;
    for one in waiting {
        let Some(node) = one.node.as_deref() else { continue };
        if matches!(one.code, Code::Idle | Code::Finished) {
            unconcerned += 1;
            continue;
        }
        let is_same = |other: &Waiting| (other.code, &other.message) == (one.code, &one.message);
        match lines.iter_mut().find(|(_, other)| is_same(other)) {
            Some((nodes, _)) => nodes.push(node),
            None => lines.push((vec![node], one)),
        }
    }
    for (nodes, _) in &mut lines {
        nodes.sort_unstable();
    }
    lines.sort();
    let text = |(nodes, one): (Vec<&str>, &Waiting)| (nodes.join(", "), code_and_message(one));
    let mut lines: Vec<(String, String)> = lines.into_iter().map(text).collect();
    if unconcerned > 0 {
        lines.push((node_count(unconcerned), "finished, or not part of the restart".into()));
    }
    lines
}

/// Adds the result of a dry run for one node.
pub(super) fn add_node(forecast: &Forecast, node: &str, page: &mut Page) {
    let is_node = |waiting: &&Waiting| waiting.node.as_deref() == Some(node);
    if let Some(never) = forecast.never.iter().find(is_node) {
        return page.toned("never", Tone::Bad, code_and_message(never));
    }
    if let Some(not_yet) = forecast.not_yet.iter().find(is_node) {
        page.toned("not yet", Tone::Warning, code_and_message(not_yet));
    }
    let count = forecast.steps.len();
    for (number, step) in (1..).zip(&forecast.steps) {
        let Some(planned) = step.nodes.iter().find(|planned| planned.name == node) else {
            continue;
        };
        let action = match step.kind {
            ForecastStepKind::Restart => "restarted",
            ForecastStepKind::Stop => "stopped",
            ForecastStepKind::Start => "started",
        };
        let number: usize = number;
        page.fact("dry run", format!("{action} in step {number} of {count}: {}", planned.message));
        if let Some(update) = update(planned.step, &planned.because) {
            page.fact("", update);
        }
    }
    if let Some(waiting) = forecast.waiting.iter().find(is_node) {
        page.fact("waiting", code_and_message(waiting));
    }
    if let Some(blocker) = &forecast.blocked_by {
        page.toned("blocked by", Tone::Bad, code_and_message(blocker));
    }
}
