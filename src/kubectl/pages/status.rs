//! `status`: one screen about a whole cluster.

use super::common::{
    add_options, add_outage, add_reconciler, message, not_processed, phase_of, request_summary,
    update,
};
use crate::cluster_view::ClusterView;
use crate::config_from::config_from;
use crate::format::{node_count, or_dash, time_with_age};
use crate::page::{Page, Paint, Tone};
use stayput_restart::{
    Condition, Counts, HistoryEntry, MAX_NODES, NodeReport, Report, Restart, Time,
};

pub(crate) fn status(view: &ClusterView, now: Time, paint: Paint) -> String {
    let mut page = Page::new(paint);
    page.fact("cluster", format!("{}/{}", view.namespace, view.name));
    add_reconciler(view, &mut page);
    let Some(status) = &view.status else {
        page.toned("phase", Tone::Warning, "unknown");
        page.fact("", not_processed(view));
        add_requested(view, &mut page);
        return page.into_text();
    };
    let report = &status.report;
    add_phase(report, &mut page);
    if let Some(restart) = &status.ledger.restart {
        add_restart(restart, now, &mut page);
        if let Some(estimate) = &report.estimate {
            page.fact("", estimate);
        }
        add_outage(view, &mut page);
    }
    if let Some(queued) = &status.ledger.queued {
        page.fact("queued", request_summary(queued));
    }
    add_requested(view, &mut page);
    if view.paused && report.phase != "Paused" {
        page.toned("paused", Tone::Warning, "spec.paused is true: no further node is stopped");
    }
    page.fact("nodes", counts(view, &report.counts));
    if let Some(config) = config_from(view) {
        page.fact("config", config);
    }
    for condition in &report.conditions {
        add_condition(condition, report.message.as_ref(), &mut page);
    }
    if let Some(last) = view.history().last() {
        add_last_restart(last, now, &mut page);
    }
    add_nodes(view, &mut page);
    add_options(view, &mut page);
    page.into_text()
}

fn add_phase(report: &Report, page: &mut Page) {
    let phase = match &report.progress {
        Some(progress) => format!("{}, {progress} done", report.phase),
        None => report.phase.clone(),
    };
    let tone = match report.phase.as_str() {
        "Idle" => Tone::Good,
        "Blocked" | "Degraded" | "Invalid" | "Aborting" => Tone::Bad,
        _ => Tone::Warning,
    };
    page.toned("phase", tone, phase);
    match (&report.blocked, &report.message) {
        (Some(code), Some(message)) => {
            page.toned("blocked by", Tone::Bad, format!("{code}: {message}"))
        }
        (Some(code), None) => page.toned("blocked by", Tone::Bad, code),
        // The remaining time has its own line, with the restart.
        (None, Some(message)) => page.fact("", without(message, report.estimate.as_deref())),
        (None, None) => {}
    }
}

fn without<'a>(message: &'a str, estimate: Option<&str>) -> &'a str {
    let rest = estimate.and_then(|estimate| message.strip_suffix(estimate));
    rest.map_or(message, |rest| rest.trim_end_matches("; "))
}

fn add_restart(restart: &Restart, now: Time, page: &mut Page) {
    let nodes = node_count(restart.members.len());
    page.fact("restart", format!("{}; {nodes}", request_summary(&restart.request)));
    page.fact("", format!("started {}", time_with_age(restart.started, now)));
    if let Some(ending) = &restart.ending {
        let (outcome, reason) = (ending.outcome.as_str(), or_dash(&ending.reason));
        let text = format!("no further node is stopped; it will end as {outcome}: {reason}");
        page.toned("", Tone::Warning, text);
    }
}

fn add_requested(view: &ClusterView, page: &mut Page) {
    match view.requested() {
        Some(Ok(request)) => {
            page.fact("requested", format!("{}: not accepted yet", request_summary(&request)));
        }
        Some(Err(error)) => page.toned("requested", Tone::Bad, error.to_string()),
        None => {}
    }
}

fn counts(view: &ClusterView, counts: &Counts) -> String {
    let mut text = format!("{}, {} ready", view.pods.len(), view.ready());
    for (count, what) in [
        (counts.down, "DOWN"),
        (counts.restarting, "under way"),
        (counts.scheduled, "waiting"),
        (counts.stopped, "stopped"),
        (counts.pending_restart, "on another config than their sources have"),
        (counts.pending_update, "with another template to come"),
        (counts.unreachable, "with a manager that cannot be reached"),
    ] {
        if count > 0 {
            text = format!("{text}; {count} {what}");
        }
    }
    text
}

/// Adds a condition, unless the lines above have said the same.
fn add_condition(condition: &Condition, message: Option<&String>, page: &mut Page) {
    let is_true = condition.status == "True";
    match condition.kind.as_str() {
        "Available" => {
            let tone = match condition.status.as_str() {
                "True" => Tone::Good,
                "False" => Tone::Bad,
                _ => Tone::Neutral,
            };
            let Condition { status, reason, message, .. } = condition;
            page.toned("available", tone, format!("{status} ({reason}): {message}"));
        }
        // The message of a cluster at rest is the same.
        "Degraded" if is_true && Some(&condition.message) != message => {
            page.toned("degraded", Tone::Bad, &condition.message)
        }
        // It may be False with a message: about names that disable nothing.
        "PredicatesDisabled" if !condition.message.is_empty() => {
            let tone = if is_true { Tone::Warning } else { Tone::Neutral };
            page.toned("rules off", tone, &condition.message);
        }
        "CertificatesValid" if condition.status == "False" => {
            page.toned("certificate", Tone::Bad, &condition.message);
        }
        _ => {}
    }
}

fn add_last_restart(last: &HistoryEntry, now: Time, page: &mut Page) {
    let ended = time_with_age(last.started.plus(last.seconds * 1000), now);
    let (strategy, outcome) = (last.strategy.as_str(), last.outcome.as_str());
    page.fact("last", format!("{strategy} {} {outcome}, {ended}", last.id));
    if !last.reason.is_empty() {
        page.fact("", &last.reason);
    }
}

/// Adds a table of the nodes that the status lists, and those with a phase that it does not list yet.
fn add_nodes(view: &ClusterView, page: &mut Page) {
    let listed = view.status.iter().flat_map(|status| &status.report.nodes);
    let mut rows = vec![["NODE", "PHASE", "ENGINE", "CONFIG", "WHY"].map(str::to_owned)];
    for report in listed {
        let (phase, message) = match view.pod_of_node(&report.name) {
            Some(pod) => (phase_of(view, pod), message(view, pod)),
            None => (
                report.phase.clone().unwrap_or_else(|| "-".into()),
                report.message.clone().unwrap_or_else(|| "its pod no longer exists".into()),
            ),
        };
        rows.push(row(&report.name, phase, Some(report), message));
    }
    for pod in &view.pods {
        let is_listed = view.node_report(&pod.node).is_some();
        if !is_listed && (pod.phase.is_some() || view.is_kept_stopped(pod)) {
            rows.push(row(&pod.node, phase_of(view, pod), None, message(view, pod)));
        }
    }
    if rows.len() > 1 {
        page.line("");
        page.table(&rows);
    }
    if view.is_cut() {
        page.line(format!("(the first {MAX_NODES} nodes: the status names no more)"));
    }
    add_updates(view, page);
}

/// Adds the changes of pod templates that the nodes lack, or are getting.
fn add_updates(view: &ClusterView, page: &mut Page) {
    let listed = view.status.iter().flat_map(|status| &status.report.nodes);
    let updates = listed.filter_map(|node| Some((node, update(node.step?, &node.because)?)));
    for (number, (node, update)) in updates.enumerate() {
        if number == 0 {
            page.line("");
        }
        page.line(format!("{}: {update}", node.name));
    }
}

fn row(node: &str, phase: String, report: Option<&NodeReport>, message: String) -> [String; 5] {
    let state = report.and_then(|report| report.state.clone());
    let checksum = report.and_then(|report| report.checksum.clone());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    [node.to_owned(), phase, or_dash(state), or_dash(checksum), message]
}
