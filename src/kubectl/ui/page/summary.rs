//! The state of the cluster, the restart under way, and why its next node waits.

use maud::{Markup, html};

use super::text::{badge, code, prose, time};
use crate::format::or_dash;
use crate::page::Tone;
use crate::pages::{NOT_PROCESSED, request_summary};
use crate::ui::page_model::{PageModel, Source};
use stayput_restart::{MemberStep, Report, Restart};

/// Title of the browser's tab.
pub(super) fn title(model: &PageModel) -> Markup {
    let view = &model.view;
    html! { (phase(model)) " – " (view.namespace) "/" (view.name) }
}

/// Text that is read aloud when it changes.
pub(super) fn news(model: &PageModel) -> Markup {
    let report = model.view.status.as_ref().map(|status| &status.report);
    let progress = report.and_then(|report| report.progress.as_ref());
    let blocked = report.and_then(|report| report.blocked.as_ref());
    html! {
        (phase(model))
        @if let Some(progress) = progress { ", " (progress) " done" }
        @if let Some(code) = blocked { ", blocked by " (code) }
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

pub(super) fn summary(model: &PageModel) -> Markup {
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
            (badge(tone(&report.phase), &report.phase))
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
            (certificates(report))
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
    let done = restart.members.iter().filter(|member| member.step == MemberStep::Finished).count();
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
fn certificates(report: &Report) -> Markup {
    let condition = report.conditions.iter().find(|one| one.kind == "CertificatesValid");
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

pub(super) fn tone(phase: &str) -> Tone {
    match phase {
        "Idle" => Tone::Good,
        "Blocked" | "Degraded" | "Invalid" | "Aborting" => Tone::Bad,
        _ => Tone::Warning,
    }
}
