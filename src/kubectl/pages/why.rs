//! `why`: one page about one node.

use super::common::{
    add_options, add_outage, add_reconciler, ignored_changes, message, not_processed, phase_of,
    tone_of_outcome, update,
};
use super::forecast::add_node;
use crate::cluster_view::ClusterView;
use crate::forecast::DatedForecast;
use crate::format::{rounded_duration, time_to_second, time_with_age};
use crate::page::{Page, Paint, Tone};
use crate::pod_view::PodView;
use crate::runbook;
use stayput_restart::{LastRestart, MemberStep, Time};

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
    page.fact("phase", phase_of(view, pod));
    let report = view.node_report(&pod.node);
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
    let step = report.and_then(|report| Some((report.step?, &report.because)));
    if let Some(update) = step.and_then(|(step, because)| update(step, because)) {
        page.fact("template", update);
    }
    let is_blocked = report.is_some_and(|report| report.blocked_by.is_some());
    let is_down = report.is_some_and(|report| report.down.is_some());
    if view.status.is_none() {
        page.toned("why", Tone::Warning, not_processed(view));
    } else {
        let tone = if is_blocked || is_down { Tone::Bad } else { Tone::Neutral };
        page.toned("why", tone, message(view, pod));
    }
    if !is_blocked {
        add_cluster_blocker(view, page);
    }
    add_disabled(view, page);
    add_outage(view, page);
    add_runbook(view, pod, page);
    add_restart(view, pod, now, page);
    match &pod.last_restart {
        Some(last) => add_last_restart(last, now, page),
        None => page.fact("last", "its engine was never restarted in this pod"),
    }
}

/// Adds the reason that blocks the cluster as a whole.
fn add_cluster_blocker(view: &ClusterView, page: &mut Page) {
    let report = view.status.as_ref().map(|status| &status.report);
    let Some((report, code)) = report.and_then(|report| Some((report, report.blocked.as_ref()?)))
    else {
        return;
    };
    let message = report.message.as_deref().unwrap_or("-");
    page.toned("cluster", Tone::Bad, format!("blocked by {code}: {message}"));
}

/// Adds the rules that are not evaluated, and how to enable them again.
fn add_disabled(view: &ClusterView, page: &mut Page) {
    let conditions = view.status.iter().flat_map(|status| &status.report.conditions);
    let mut disabled = conditions
        .filter(|condition| condition.kind == "PredicatesDisabled" && condition.status == "True");
    if let Some(condition) = disabled.next() {
        page.toned("rules off", Tone::Warning, &condition.message);
    }
}

/// Adds the page of the runbook about the node, or else about the cluster.
fn add_runbook(view: &ClusterView, pod: &PodView, page: &mut Page) {
    let report = view.status.as_ref().map(|status| &status.report);
    let node = view.node_report(&pod.node);
    let of_node = node.and_then(|node| node.blocked_by.as_deref());
    let is_down = node.is_some_and(|node| node.down.is_some()).then_some("nodes_down");
    let of_cluster = report.and_then(|report| report.blocked.as_deref());
    let waits_for = node.and_then(|node| node.waits_for.as_deref());
    let addresses = [is_down, of_node.or(of_cluster).or(waits_for)].into_iter().flatten();
    for (address, at) in addresses.filter_map(runbook::address).zip(0..) {
        page.fact(if at == 0 { "runbook" } else { "" }, address);
    }
}

/// Adds the node's part in the restart under way.
fn add_restart(view: &ClusterView, pod: &PodView, now: Time, page: &mut Page) {
    let Some(restart) = view.restart() else { return };
    let id = &restart.request.id;
    let Some(member) = restart.members.iter().find(|member| member.pod_uid == pod.uid) else {
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
