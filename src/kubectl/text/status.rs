//! The pages of `status`, `why` and `history`.

use stayput_restart::{
    Condition, Counts, HistoryEntry, LastRestart, MAX_NODES, MemberStep, Report, Restart, Time,
};

use crate::format::{
    node_count, nodes_by_step, or_dash, reason_in_history, request_summary, rounded_duration,
    time_to_second, time_with_age,
};
use crate::runbook;
use crate::snapshot::DatedForecast;
use crate::text::plan::add_node;
use crate::text::{
    Page, Paint, add_options, add_outage, add_reconciler, add_reconciler_of_all, ignored_changes,
    not_processed, update, updates,
};
use crate::view::node::NodeView;
use crate::view::pod::PodView;
use crate::view::{
    ClusterView, Tone, config_from, tone_of_condition, tone_of_outcome, tone_of_phase,
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
    add_phase(view, report, &mut page);
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
        add_last_of_cluster(last, now, &mut page);
    }
    add_nodes(view, &mut page);
    add_options(view, &mut page);
    page.into_text()
}

fn add_phase(view: &ClusterView, report: &Report, page: &mut Page) {
    let phase = match &report.progress {
        Some(progress) => format!("{}, {progress} done", report.phase),
        None => report.phase.clone(),
    };
    page.toned("phase", tone_of_phase(&report.phase), phase);
    if let Some(blocker) = view.blocker() {
        page.toned("blocked by", Tone::Bad, blocker);
    } else if let Some(message) = &report.message {
        // The remaining time has its own line, with the restart.
        page.fact("", without(message, report.estimate.as_deref()));
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
    let tone = tone_of_condition(condition);
    match condition.kind.as_str() {
        "Available" => {
            let Condition { status, reason, message, .. } = condition;
            page.toned("available", tone, format!("{status} ({reason}): {message}"));
        }
        // The message of a cluster at rest is the same.
        "Degraded" if condition.status == "True" && Some(&condition.message) != message => {
            page.toned("degraded", tone, &condition.message)
        }
        // It may be False with a message: about names that disable nothing.
        "PredicatesDisabled" if !condition.message.is_empty() => {
            page.toned("rules off", tone, &condition.message);
        }
        "CertificatesValid" if condition.status == "False" => {
            page.toned("certificate", tone, &condition.message);
        }
        _ => {}
    }
}

fn add_last_of_cluster(last: &HistoryEntry, now: Time, page: &mut Page) {
    let ended = time_with_age(last.ended(), now);
    let (strategy, outcome) = (last.strategy.as_str(), last.outcome.as_str());
    page.fact("last", format!("{strategy} {} {outcome}, {ended}", last.id));
    if !last.reason.is_empty() {
        page.fact("", &last.reason);
    }
}

/// Adds a table of the nodes that are worth a line.
fn add_nodes(view: &ClusterView, page: &mut Page) {
    let mut rows = vec![["NODE", "PHASE", "ENGINE", "CONFIG", "WHY"].map(str::to_owned)];
    rows.extend(view.noted_nodes().iter().map(node_row));
    if rows.len() > 1 {
        page.line("");
        page.table(&rows);
    }
    if view.is_cut() {
        page.line(format!("(the first {MAX_NODES} nodes: the status names no more)"));
    }
    for (number, update) in updates(view).enumerate() {
        if number == 0 {
            page.line("");
        }
        page.line(update);
    }
}

fn node_row(node: &NodeView<'_>) -> [String; 5] {
    let state = node.report.and_then(|report| report.state.as_deref()).unwrap_or("-");
    let checksum = node.report.and_then(|report| report.checksum.as_deref()).unwrap_or("-");
    let [name, phase, state, checksum] =
        [node.name, node.phase_or_kept(), state, checksum].map(str::to_owned);
    [name, phase, state, checksum, node.why()]
}

pub(crate) fn status_of_all(views: &[ClusterView]) -> String {
    let mut page = Page::new(Paint::default());
    add_reconciler_of_all(views, &mut page);
    let mut rows = vec![["CLUSTER", "PHASE", "READY", "RESTART", "WHY"].map(str::to_owned)];
    rows.extend(views.iter().map(cluster_row));
    page.table(&rows);
    page.into_text()
}

fn cluster_row(view: &ClusterView) -> [String; 5] {
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
    let message = || or_dash(report.message.as_deref().unwrap_or_default()).to_owned();
    let why = view.blocker().unwrap_or_else(message);
    [name, report.phase.clone(), ready, restart, why]
}

pub(crate) fn why(view: &ClusterView, pod: &PodView, now: Time, paint: Paint) -> String {
    let mut page = Page::new(paint);
    add_pod(view, pod, now, &mut page);
    add_options(view, &mut page);
    page.into_text()
}

/// The page at the time of a snapshot, with the result of the dry run for the node.
pub(crate) fn why_in_snapshot(
    view: &ClusterView,
    pod: &PodView,
    dated: &DatedForecast,
    paint: Paint,
) -> String {
    let mut page = Page::new(paint);
    page.fact("observed at", time_to_second(dated.observed_at));
    add_pod(view, pod, dated.observed_at, &mut page);
    add_node(&dated.forecast, &pod.node, &mut page);
    page.into_text()
}

fn add_pod(view: &ClusterView, pod: &PodView, now: Time, page: &mut Page) {
    page.fact("node", format!("{} of {}/{}", pod.node, view.namespace, view.name));
    let readiness = if pod.ready { "ready" } else { "NOT READY" };
    page.fact("pod", format!("{}, {readiness}, uid {}", pod.name, pod.uid));
    add_reconciler(view, page);
    page.fact("phase", view.node(&pod.node).phase_or_kept());
    let node = view.node(&pod.node);
    let report = node.report;
    if let Some(state) = report.and_then(|report| report.state.as_ref()) {
        page.fact("engine", state);
    }
    let runs_on = report.and_then(|report| report.checksum.as_ref());
    let checksum = runs_on.map(|checksum| format!("checksum {checksum}…"));
    let objects = Some(&pod.config_from).filter(|objects| !objects.is_empty());
    let objects = objects.map(|objects| format!("made from {}", objects.join(", ")));
    let config: Vec<String> = checksum.into_iter().chain(objects).collect();
    if !config.is_empty() {
        page.fact("config", config.join(", "));
    }
    if let Some(reason) = &pod.config_unknown {
        page.fact("config", format!("its Secrets and ConfigMaps are not known: {reason}"));
    }
    if !pod.unwatched.is_empty() {
        let objects = pod.unwatched.join(", ");
        page.fact("not watched", format!("{objects}: a change restarts nothing"));
    }
    for ignored in ignored_changes(view, runs_on.map(String::as_str)) {
        page.fact("ignored", ignored);
    }
    if let Some(revision) = &pod.actual_revision {
        let made_from = format!("{revision}; its label names another revision, which it is to get");
        page.fact("made from", made_from);
    }
    let step = report.and_then(|report| Some((report.step?, &report.because)));
    if let Some(update) = step.and_then(|(step, because)| update(step, because)) {
        page.fact("template", update);
    }
    if view.status.is_none() {
        page.toned("why", Tone::Warning, not_processed(view));
    } else {
        let tone = if node.is_blocked() || node.is_down() { Tone::Bad } else { Tone::Neutral };
        page.toned("why", tone, node.why());
    }
    if let Some(blocker) = view.blocker().filter(|_| !node.is_blocked()) {
        page.toned("cluster", Tone::Bad, format!("blocked by {blocker}"));
    }
    let disabled = view.condition("PredicatesDisabled").filter(|one| one.status == "True");
    if let Some(condition) = disabled {
        page.toned("rules off", Tone::Warning, &condition.message);
    }
    add_outage(view, page);
    add_runbook(view, pod, page);
    add_part_in_restart(view, pod, now, page);
    match &pod.last_restart {
        Some(last) => add_last_restart(last, now, page),
        None => page.fact("last", "its engine was never restarted in this pod"),
    }
}

/// Adds the page of the runbook about the node, or else about the cluster.
fn add_runbook(view: &ClusterView, pod: &PodView, page: &mut Page) {
    let node = view.node(&pod.node);
    let is_down = node.is_down().then_some("nodes_down");
    let of_node = node.report.and_then(|report| report.blocked_by.as_deref());
    let waits_for = node.report.and_then(|report| report.waits_for.as_deref());
    let addresses = [is_down, of_node.or(view.blocked_by()).or(waits_for)].into_iter().flatten();
    for (address, at) in addresses.filter_map(runbook::address).zip(0..) {
        page.fact(if at == 0 { "runbook" } else { "" }, address);
    }
}

/// Adds the node's part in the restart under way.
fn add_part_in_restart(view: &ClusterView, pod: &PodView, now: Time, page: &mut Page) {
    let Some(restart) = view.restart() else { return };
    let id = &restart.request.id;
    let Some(member) = view.node(&pod.node).member() else {
        return page.fact("restart", format!("not part of {id}, which is under way"));
    };
    let step = match member.step {
        MemberStep::Scheduled => "waits for its turn",
        MemberStep::Restarting => "is being restarted",
        MemberStep::GivingBack => "is not stopped now and gives its slot back",
        MemberStep::Aborting => "aborts: its engine is being started again",
        MemberStep::Finished => "is finished",
    };
    page.fact("restart", format!("{id}: {step}, since {}", time_with_age(member.since, now)));
    if let Some(ending) = &member.ending
        && !ending.reason.is_empty()
    {
        page.fact("", format!("{}: {}", ending.outcome.as_str(), ending.reason));
    }
}

fn add_last_restart(last: &LastRestart, now: Time, page: &mut Page) {
    let outcome = format!("{} {}", last.id, last.outcome.as_str());
    page.toned("last", tone_of_outcome(last.outcome), outcome);
    if !last.reason.is_empty() {
        page.fact("", &last.reason);
    }
    let started = time_with_age(last.started, now);
    page.fact("", format!("started {started}, took {}", rounded_duration(last.seconds)));
}

pub(crate) fn history(view: &ClusterView) -> String {
    let mut page = Page::new(Paint::default());
    add_reconciler(view, &mut page);
    if view.status.is_none() {
        page.line(not_processed(view));
    } else if view.history().is_empty() {
        page.line("no restart has ended yet");
    } else {
        let mut rows = vec![HISTORY_HEAD.map(str::to_owned)];
        rows.extend(view.history().iter().rev().map(history_row));
        page.table(&rows);
    }
    for ignored in ignored_changes(view, None) {
        page.line(ignored);
    }
    page.into_text()
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
    let mut rows = vec![with_cluster("CLUSTER".to_owned(), HISTORY_HEAD.map(str::to_owned))];
    rows.extend(
        entries.into_iter().map(|(cluster, entry)| with_cluster(cluster, history_row(entry))),
    );
    page.table(&rows);
    page.into_text()
}

const HISTORY_HEAD: [&str; 7] = ["STARTED", "TOOK", "STRATEGY", "NODES", "OUTCOME", "ID", "REASON"];

fn history_row(entry: &HistoryEntry) -> [String; 7] {
    [
        time_to_second(entry.started),
        rounded_duration(entry.seconds),
        entry.strategy.as_str().to_owned(),
        nodes_by_step(entry),
        entry.outcome.as_str().to_owned(),
        entry.id.clone(),
        reason_in_history(entry),
    ]
}
