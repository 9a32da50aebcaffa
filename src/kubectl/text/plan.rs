//! The pages of `plan` and of `restart --dry-run`.

use stayput_restart::{
    Basis, Code, Forecast, ForecastNode, ForecastStep, ForecastStepKind, ForecastTime,
    OnConfigChange, Report, Request, Restart, Strategy, UpdateStep, Waiting,
};

use crate::format::{node_count, request_summary, time_to_second};
use crate::snapshot::DatedForecast;
use crate::text::{Page, Paint, add_options, not_processed, only_restarted, update, updates};
use crate::view::pod::PodView;
use crate::view::{ClusterView, Tone, finished};

/// The page; `no_forecast` is the reason why there is no dry run.
pub(crate) fn plan(view: &ClusterView, no_forecast: &str, paint: Paint) -> String {
    let mut page = Page::new(paint);
    let Some(status) = &view.status else {
        page.line(not_processed(view));
        return page.into_text();
    };
    let report = &status.report;
    if let Some(blocker) = view.blocker() {
        page.toned("blocked by", Tone::Bad, blocker);
    }
    for node in report.nodes.iter().filter(|node| node.down.is_some()) {
        let message = node.message.as_deref().unwrap_or("-");
        page.toned("down", Tone::Bad, format!("{}: {message}", node.name));
    }
    match (&status.ledger.restart, view.requested()) {
        (Some(restart), _) => add_members(view, restart, &mut page),
        (None, Some(Ok(request))) => {
            page.fact("next", request_summary(&request));
            add_order(view, &request, &mut page);
        }
        (None, Some(Err(error))) => page.toned("next", Tone::Bad, error.to_string()),
        (None, None) => add_idle(view, report, &mut page),
    }
    add_updates(view, report, &mut page);
    if let Some(queued) = &status.ledger.queued {
        page.fact("queued", request_summary(queued));
    }
    page.fact("no dry run", no_forecast);
    add_options(view, &mut page);
    page.into_text()
}

fn add_members(view: &ClusterView, restart: &Restart, page: &mut Page) {
    page.fact("restart", request_summary(&restart.request));
    for member in restart.members.iter().filter(|member| member.is_under_way()) {
        page.fact("under way", format!("{}: {}", member.node, view.node(&member.node).why()));
    }
    let waiting = view.scheduled();
    for member in &waiting {
        page.fact("waiting", format!("{}: {}", member.node, view.node(&member.node).why()));
    }
    if waiting.len() > 1 {
        page.fact("", ORDER_LIMITS);
    }
    page.fact("finished", node_count(finished(restart)));
}

/// Adds the changes of pod templates that the nodes lack, or are getting.
fn add_updates(view: &ClusterView, report: &Report, page: &mut Page) {
    for update in updates(view) {
        page.fact("template", update);
    }
    if report.nodes.iter().any(|node| node.step == Some(UpdateStep::Restart)) {
        page.fact("", only_restarted());
    }
}

fn add_idle(view: &ClusterView, report: &Report, page: &mut Page) {
    let text = match (view.on_config_change, report.counts.pending_restart) {
        (_, 0) if report.counts.pending_update > 0 && report.blocked.is_none() => {
            report.message.clone().unwrap_or_else(|| "pods get another template".to_owned())
        }
        (_, 0) => "nothing: no restart is requested, and every node runs on its config".to_owned(),
        (_, count) if view.is_blocked_by(Code::NeedsCoordinated) => format!(
            "nothing by itself: {} on another config than their sources have; all nodes need it at \
             once, an outage: `{} --coordinated`",
            node_count(count as usize),
            view.command("restart")
        ),
        (OnConfigChange::None, count) => format!(
            "nothing: no restart is requested; {} on another config than their sources have: \
             restart with `{}`",
            if count == 1 { "1 node runs".to_owned() } else { format!("{count} nodes run") },
            view.command("restart")
        ),
        (OnConfigChange::Rolling | OnConfigChange::Coordinated | OnConfigChange::Auto, count) => {
            format!(
                "{} on another config than their sources have will be restarted \
                 (spec.restart.onConfigChange)",
                node_count(count as usize)
            )
        }
    };
    page.fact("next", text);
    for pod in view.pods.iter().filter(|pod| view.is_kept_stopped(pod)) {
        page.fact("waiting", format!("{}: {}", pod.node, view.node(&pod.node).why()));
    }
}

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
fn add_steps(forecast: &Forecast, page: &mut Page) {
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
pub(crate) fn add_node(forecast: &Forecast, node: &str, page: &mut Page) {
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

/// Remark on how the order shown can differ from the restart's own.
const ORDER_LIMITS: &str = "(data nodes go before master-eligible nodes and the elected master goes last, which only the \
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
fn add_order(view: &ClusterView, request: &Request, page: &mut Page) {
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
