//! The regions of the page of a cluster.

use maud::{Markup, html};
use stayput_restart::{HistoryEntry, MAX_NODES, Outcome, Report, Restart, Time, debts_due};

use crate::format::{
    NOT_PROCESSED, nodes_by_step, or_dash, reason_in_history, request_summary, rounded_duration,
};
use crate::html::picture::{class_of, sign_of};
use crate::html::{badge, class, code, prose, sign, table_head, time};
use crate::view::live::{PageModel, Source};
use crate::view::node::NodeView;
use crate::view::{ClusterView, Tone, finished, tone_of_condition, tone_of_outcome, tone_of_phase};

/// Title of the browser's tab.
pub(crate) fn title(model: &PageModel) -> Markup {
    let view = &model.view;
    html! { (phase(model)) " – " (view.namespace) "/" (view.name) }
}

/// Text that is read aloud when it changes.
pub(crate) fn news(model: &PageModel) -> Markup {
    let progress = model.view.report().and_then(|report| report.progress.as_ref());
    html! {
        (phase(model))
        @if let Some(progress) = progress { ", " (progress) " done" }
        @if let Some(code) = model.view.blocked_by() { ", blocked by " (code) }
    }
}

fn phase(model: &PageModel) -> &str {
    match (&model.source, &model.view.status) {
        (Source::Deleted, _) => "Deleted",
        (Source::Lost(_), _) => "Not live",
        (Source::Live, None) => "Unknown",
        (Source::Live, Some(status)) => &status.report.phase,
    }
}

pub(crate) fn summary(model: &PageModel) -> Markup {
    let view = &model.view;
    let absent = html! {
        @if let Some(warning) = view.reconciler.warning() { p.text.bad { (prose(&warning)) } }
    };
    let Some(status) = &view.status else {
        return html! { (absent) p { (badge(Tone::Warning, "Unknown")) " " (prose(NOT_PROCESSED)) } };
    };
    let report = &status.report;
    html! {
        (absent)
        p.phase {
            (badge(tone_of_phase(&report.phase), &report.phase))
            @if let Some(restart) = view.restart() { " " (progress(restart)) }
            @if let Some(estimate) = &report.estimate { span.muted { (estimate) } }
        }
        (why(report))
        dl.facts {
            @if let Some(restart) = view.restart() { (facts(restart)) }
            @if let Some(queued) = view.queued() { dt { "Queued" } dd.text { (request_summary(queued)) } }
            @match view.requested() {
                Some(Ok(request)) => {
                    dt { "Requested" } dd.text { (request_summary(&request)) ": not accepted yet" }
                },
                Some(Err(error)) => { dt { "Requested" } dd.text.bad { (error.to_string()) } },
                None => {},
            }
            @if view.paused { dt { "Paused" } dd { "no further node is stopped" } }
            @if view.deleting { dt { "Deleting" } dd { "it is being deleted" } }
            dt { "Pods" } dd { (view.pods.len()) ", " (view.ready()) " ready" }
            @if let Some(absent) = &report.source_absent { dt { "Config" } dd.text { (prose(absent)) } }
            (certificates(view))
        }
    }
}

/// Why the next node waits: the rule, its message, and a link to the runbook.
fn why(report: &Report) -> Markup {
    let message = report.message.as_deref();
    html! {
        @match (&report.blocked, message) {
            (Some(rule), _) => {
                div.why {
                    h3 { "Why the next node waits: " (code(rule)) }
                    p.text { (prose(or_dash(message.unwrap_or_default()))) }
                }
            },
            (None, Some(message)) => p.text { (prose(message)) },
            (None, None) => {},
        }
    }
}

fn progress(restart: &Restart) -> Markup {
    let all = restart.members.len();
    let done = finished(restart);
    html! {
        progress value=(done) max=(all) aria-label="Nodes that are done" {}
        " " (restart.request.strategy.as_str()) ", " (done) " of " (all) " done "
    }
}

fn facts(restart: &Restart) -> Markup {
    html! {
        dt { "Restart" } dd.text { (request_summary(&restart.request)) }
        dt { "Started" } dd { (time(restart.started)) }
        @if let Some(ending) = &restart.ending {
            dt { "Will end" }
            dd.text {
                "no further node is stopped; as " (ending.outcome.as_str()) ": "
                (prose(or_dash(&ending.reason)))
            }
        }
    }
}

/// When the certificates expire, or their problems.
fn certificates(view: &ClusterView) -> Markup {
    let condition = view.condition("CertificatesValid");
    html! {
        @if let Some(condition) = condition {
            dt { "Certificates" }
            dd.text {
                @match condition.status.as_str() {
                    "True" => (badge(Tone::Good, "valid")),
                    "False" => (badge(Tone::Bad, &condition.reason)),
                    _ => (badge(Tone::Warning, "not known")),
                }
                " " (prose(&condition.message))
            }
        }
    }
}

pub(crate) fn nodes(model: &PageModel) -> Markup {
    let view = &model.view;
    let listed: Vec<NodeView<'_>> = view.listed_nodes().collect();
    html! {
        @if listed.is_empty() { p.muted { "Every node is simply running." } }
        @else {
            table {
                (table_head(&["Node", "State", "Phase", "Engine", "Code", "Why"]))
                tbody { @for node in &listed { (node_row(node)) } }
            }
            @if view.is_cut() {
                p.muted { "The first " (MAX_NODES) " nodes: the status names no more." }
            }
        }
    }
}

fn node_row(node: &NodeView<'_>) -> Markup {
    let report = node.report;
    let because = report.map(|report| report.because.join("; ")).unwrap_or_default();
    html! {
        tr id={ "why-" (node.name) } tabindex="-1" {
            th scope="row" { (node.name) }
            td {
                @if node.pod.is_some() {
                    @let state = node.state();
                    span class={ "badge " (class_of(state)) } {
                        span.sign aria-hidden="true" { (sign_of(state)) } (state.word())
                    }
                } @else { "no pod" }
            }
            td { (node.phase().unwrap_or("–")) }
            td { (report.and_then(|report| report.state.as_deref()).unwrap_or("–")) }
            td { @if let Some(why) = node.code() { (code(why)) } @else { "–" } }
            td.text {
                (prose(node.message().as_deref().unwrap_or("–")))
                @if !because.is_empty() { br; span.muted { (because) } }
            }
        }
    }
}

pub(crate) fn lines(model: &PageModel) -> Markup {
    html! {
        @if model.lines.is_empty() { p.muted { "Nothing has changed since this page was opened." } }
        ol.lines reversed {
            @for line in model.lines.iter().rev() {
                li class=(class(line.tone)) {
                    (time(line.time)) " "
                    span.sign aria-hidden="true" { (sign(line.tone)) }
                    @if let Some(node) = &line.node { strong { (node) } " " }
                    span.text { (prose(&line.message)) }
                }
            }
        }
    }
}

pub(crate) fn fresh(model: &PageModel) -> Markup {
    let at = time(model.fresh);
    let (tone, text) = match &model.source {
        Source::Live => (Tone::Good, html! { "Live, read at " (at) "." }),
        Source::Deleted => (
            Tone::Bad,
            html! { "This SearchCluster is deleted. This page shows its last known state." },
        ),
        Source::Lost(why) => {
            (Tone::Bad, html! { "Not live. Last read at " (at) ". " span.text { (why) } })
        }
    };
    html! { p class={ "fresh " (class(tone)) } {
        span.sign aria-hidden="true" { (sign(tone)) } (text)
    } }
}

pub(crate) fn debts(view: &ClusterView) -> Markup {
    let due = view.status.as_ref().map(|status| debts_due(&status.ledger)).unwrap_or_default();
    html! {
        @if due.is_empty() { p.muted { "Nothing has to be undone." } }
        @else {
            p { "Not undone yet, and tried again until it is: " (code("debts")) }
            ul.debts { @for debt in &due { li.text { (prose(debt)) } } }
        }
    }
}

pub(crate) fn conditions(view: &ClusterView) -> Markup {
    let all = view.conditions();
    html! {
        @if all.is_empty() { p.muted { "There are none yet." } }
        @else {
            table {
                (table_head(&["Condition", "Status", "Reason", "Since"]))
                tbody {
                    @for one in all {
                        tr {
                            th scope="row" { (one.kind) }
                            td { (badge(tone_of_condition(one), &one.status)) }
                            td.text {
                                (one.reason)
                                @if !one.message.is_empty() { br; span.muted { (prose(&one.message)) } }
                            }
                            td { (time(one.last_transition_time)) }
                        }
                    }
                }
            }
        }
    }
}

/// Width of the line, and of the narrowest mark.
const WIDTH: u64 = 600;
const MARK: u64 = 6;

pub(crate) fn history(view: &ClusterView) -> Markup {
    let all = view.history();
    html! {
        @if all.is_empty() { p.muted { "No restart has ended yet." } }
        @else {
            (timeline(all))
            table {
                (table_head(&["Started", "Took", "Strategy", "Nodes", "Outcome"]))
                tbody { @for entry in all.iter().rev() { (history_row(entry)) } }
            }
        }
    }
}

fn history_row(entry: &HistoryEntry) -> Markup {
    html! {
        tr {
            td { (time(entry.started)) }
            td { (rounded_duration(entry.seconds)) }
            td { (entry.strategy.as_str()) }
            td { (nodes_by_step(entry)) }
            td.text {
                (badge(tone_of_outcome(entry.outcome), entry.outcome.as_str()))
                @let reason = reason_in_history(entry);
                @if !reason.is_empty() { br; (prose(&reason)) }
                br; span.muted { (entry.id) }
            }
        }
    }
}

/// When each restart was, and how long it took. A restart that is not `done` is lower, so that color is
/// not needed to see it.
fn timeline(all: &[HistoryEntry]) -> Markup {
    let begin = all.iter().map(|entry| entry.started).min().unwrap_or_default();
    let end = all.iter().map(HistoryEntry::ended).max().unwrap_or_default();
    let length = end.since(begin).max(1);
    let at = |time: Time| {
        let share = u128::from(time.since(begin)) * u128::from(WIDTH - MARK) / u128::from(length);
        u64::try_from(share).unwrap_or(WIDTH)
    };
    let done = all.iter().filter(|entry| entry.outcome == Outcome::Done).count();
    let count = all.len();
    let words = format!("{count} restarts, {done} of them done; the table below has the same");
    html! {
        svg.timeline viewBox={ "0 0 " (WIDTH) " 34" } role="img" aria-label=(words) {
            line x1="0" y1="17" x2=(WIDTH) y2="17" class="axis" {}
            @for entry in all {
                @let x = at(entry.started);
                @let width = at(entry.ended()).saturating_sub(x).max(MARK);
                @let y = if entry.outcome == Outcome::Done { 4 } else { 20 };
                rect x=(x) y=(y) width=(width) height="10" rx="2"
                    class=(class(tone_of_outcome(entry.outcome))) {}
            }
        }
    }
}
