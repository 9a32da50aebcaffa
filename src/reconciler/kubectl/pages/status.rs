//! `status`: one screen about a whole cluster.

use super::{UNSEEN, message, phase_of};
use crate::kubectl::text::{Page, Paint, Tone, nodes, span, stamp, when};
use crate::kubectl::view::View;
use stayput_restart::{Counts, Request, Restart, Time};

/// The whole page.
pub(in crate::kubectl) fn status(view: &View, now: Time, paint: Paint) -> String {
    let mut page = Page::new(paint);
    page.fact("cluster", format!("{}/{}", view.namespace, view.name));
    let Some(status) = &view.status else {
        page.toned("phase", Tone::Heed, "unknown");
        page.fact("", UNSEEN);
        requested(view, &mut page);
        return page.into_text();
    };
    let report = &status.report;
    let phase = match &report.progress {
        Some(progress) => format!("{}, {progress} done", report.phase),
        None => report.phase.clone(),
    };
    page.toned("phase", tone(&report.phase), phase);
    match (&report.blocked, &report.message) {
        (Some(rule), Some(message)) => {
            page.toned("blocked by", Tone::Bad, format!("{rule}: {message}"))
        }
        (Some(rule), None) => page.toned("blocked by", Tone::Bad, rule),
        // How much longer it takes stands with the restart.
        (None, Some(message)) => page.fact("", without(message, report.estimate.as_deref())),
        (None, None) => {}
    }
    if let Some(restart) = &status.ledger.restart {
        restarting(restart, now, &mut page);
        if let Some(estimate) = &report.estimate {
            page.fact("", estimate);
        }
    }
    if let Some(queued) = &status.ledger.queued {
        page.fact("then", asked(queued));
    }
    requested(view, &mut page);
    if view.paused && report.phase != "Paused" {
        page.toned("paused", Tone::Heed, "spec.paused: no further node is stopped");
    }
    page.fact("nodes", counted(&report.counts));
    for condition in &report.conditions {
        let tone = match (condition.kind.as_str(), condition.status.as_str()) {
            ("Available", "False") | ("Degraded", "True") => Tone::Bad,
            ("Available", "True") => Tone::Good,
            ("PredicatesDisabled", "True") => Tone::Heed,
            (_, _) => Tone::Plain,
        };
        // The two others stand above already.
        let name = match condition.kind.as_str() {
            "Available" => "available",
            "Degraded" if condition.status == "True" => "owed",
            // Also names that disable nothing and were meant to.
            "PredicatesDisabled" if !condition.message.is_empty() => "rules off",
            _ => continue,
        };
        let text = match name {
            "owed" | "rules off" => condition.message.clone(),
            _ => format!("{} ({}): {}", condition.status, condition.reason, condition.message),
        };
        page.toned(name, tone, text);
    }
    if let Some(last) = view.history().last() {
        let ended = Time(last.started.0).plus(last.seconds * 1000);
        page.fact(
            "last",
            format!(
                "{} {} {}, {}",
                last.strategy.as_str(),
                last.id,
                last.outcome.as_str(),
                when(ended, now)
            ),
        );
        if !last.reason.is_empty() {
            page.fact("", &last.reason);
        }
    }
    table(view, &mut page);
    page.into_text()
}

fn without<'a>(message: &'a str, estimate: Option<&str>) -> &'a str {
    let rest = estimate.and_then(|estimate| message.strip_suffix(estimate));
    rest.map_or(message, |rest| rest.trim_end_matches("; "))
}

fn tone(phase: &str) -> Tone {
    match phase {
        "Idle" => Tone::Good,
        "Blocked" | "Degraded" | "Invalid" | "Aborting" => Tone::Bad,
        _ => Tone::Heed,
    }
}

fn restarting(restart: &Restart, now: Time, page: &mut Page) {
    let members = restart.members.len();
    page.fact("restart", format!("{}; {}", asked(&restart.request), nodes(members)));
    page.fact("", format!("began {}", when(restart.started, now)));
    if let Some(ending) = &restart.ending {
        let reason = if ending.reason.is_empty() { "-" } else { &ending.reason };
        let text = format!("no further stops, it ends as {}: {reason}", ending.outcome.as_str());
        page.toned("", Tone::Heed, text);
    }
}

/// A request in a few words.
pub(super) fn asked(request: &Request) -> String {
    let mut text = format!("{} {}", request.strategy.as_str(), request.id);
    let target = &request.target;
    if !target.nodes.is_empty() {
        text = format!("{text} of {}", target.nodes.join(", "));
    }
    if let Some(role) = &target.role {
        text = format!("{text}, role {role}");
    }
    if let Some(zone) = &target.zone {
        text = format!("{text}, zone {zone}");
    }
    if let Some(moment) = request.not_before {
        text = format!("{text}, not before {}", stamp(moment));
    }
    if let Some(deadline) = request.deadline {
        text = format!("{text}, within {}", span(deadline));
    }
    match &request.by {
        Some(by) => format!("{text}, asked by {by}"),
        None => text,
    }
}

fn requested(view: &View, page: &mut Page) {
    match view.requested() {
        Some(Ok(request)) => {
            page.fact("asked", format!("{}: not taken up yet", asked(&request)));
        }
        Some(Err(message)) => page.toned("asked", Tone::Bad, message),
        None => {}
    }
}

fn counted(counts: &Counts) -> String {
    let mut text = format!("{}, {} ready", counts.pods, counts.ready);
    for (count, what) in [
        (counts.restarting, "under way"),
        (counts.scheduled, "to come"),
        (counts.stopped, "stopped"),
        (counts.pending_restart, "on another config than their sources have"),
        (counts.unreachable, "with a manager that cannot be asked"),
    ] {
        if count > 0 {
            text = format!("{text}; {count} {what}");
        }
    }
    text
}

/// The nodes worth a line: those the status lists, and those that are in a phase by now.
fn table(view: &View, page: &mut Page) {
    let listed = view.status.iter().flat_map(|status| &status.report.nodes);
    let mut rows = vec![["NODE", "PHASE", "ENGINE", "CONFIG", "WHY"].map(str::to_owned)];
    let mut row = |node: &str, phase: String, why: String| {
        let report = view.report(node);
        let of = |field: fn(&stayput_restart::NodeReport) -> &Option<String>| {
            report.and_then(|report| field(report).clone()).unwrap_or_else(|| "-".into())
        };
        let engine = of(|report| &report.state);
        rows.push([node.to_owned(), phase, engine, of(|report| &report.checksum), why]);
    };
    for report in listed {
        match view.node(&report.name) {
            Some(pod) => row(&report.name, phase_of(view, pod), message(view, pod)),
            None => row(
                &report.name,
                report.phase.clone().unwrap_or_else(|| "-".into()),
                report.message.clone().unwrap_or_else(|| "its pod is gone".into()),
            ),
        }
    }
    for pod in &view.pods {
        if view.report(&pod.node).is_none() && (pod.phase.is_some() || view.is_kept_stopped(pod)) {
            row(&pod.node, phase_of(view, pod), message(view, pod));
        }
    }
    if rows.len() > 1 {
        page.line("");
        page.table(&rows);
    }
}
