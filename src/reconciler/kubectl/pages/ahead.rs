//! A dry run: the steps of a restart in their order, and whom which rule keeps from going.

use super::status;
use crate::kubectl::ahead::Ahead;
use crate::kubectl::text::{Page, Paint, Tone, nodes, stamp};
use crate::kubectl::view::View;
use stayput_restart::{
    Basis, Code, Forecast, ForecastStep, ForecastStepKind, ForecastTime, Waiting,
};

/// The whole page.
pub(in crate::kubectl) fn ahead(view: &View, ahead: &Ahead, paint: Paint) -> String {
    let mut page = Page::new(paint);
    let Ahead { seen, forecast } = ahead;
    let at = stamp(*seen);
    page.fact("cluster", format!("{}/{} as seen at {at}", view.namespace, view.name));
    page.fact("restart", basis(forecast));
    steps(forecast, &mut page);
    page.into_text()
}

/// The same for a request that is not made yet.
pub(super) fn steps(forecast: &Forecast, page: &mut Page) {
    if let Some(blocker) = &forecast.blocked_by {
        page.toned("held by", Tone::Bad, said(blocker));
    }
    for (number, step) in forecast.steps.iter().enumerate() {
        add_step(number + 1, step, page);
    }
    if forecast.steps.is_empty() {
        page.fact("steps", "none");
    }
    for (who, why) in together(&forecast.never) {
        page.toned("never", Tone::Bad, format!("{who}: {why}"));
    }
    for (who, why) in together(&forecast.waiting) {
        page.fact("not now", format!("{who}: {why}"));
    }
    if forecast.steps.iter().any(|step| step.when == ForecastTime::Later) {
        page.fact("", ASSUMED);
    }
}

/// What a dry run takes for granted.
const ASSUMED: &str = "(if every node comes back, and leaves the cluster as it is now)";

fn basis(forecast: &Forecast) -> String {
    let request = status::asked(&forecast.request);
    match forecast.basis {
        Basis::UnderWay => format!("{request}: under way"),
        Basis::Requested => format!("{request}: about to begin"),
        Basis::Hypothetical => {
            let how = forecast.request.strategy.as_str();
            format!("nobody has asked; a {how} one would do this")
        }
    }
}

/// Nodes for the same reason on one line.
fn add_step(number: usize, step: &ForecastStep, page: &mut Page) {
    let what = match step.kind {
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
    for group in step.nodes.chunk_by(|one, other| one.message == other.message) {
        let names: Vec<&str> = group.iter().map(|node| node.name.as_str()).collect();
        let why = group.first().map_or("", |node| &node.message);
        page.fact(&name, format!("{when}{what}{} ({why})", names.join(", ")));
        name.clear();
    }
}

/// `rule: sentence`.
pub(super) fn said(waiting: &Waiting) -> String {
    format!("{}: {}", waiting.code.as_str(), waiting.message)
}

/// Those that wait for the same on one line; those that are done or not concerned, only counted.
fn together(waiting: &[Waiting]) -> Vec<(String, String)> {
    let mut lines: Vec<(Vec<&str>, &Waiting)> = Vec::new();
    let mut unconcerned = 0;
    for one in waiting {
        let Some(node) = one.node.as_deref() else { continue };
        if matches!(one.code, Code::Idle | Code::Finished) {
            unconcerned += 1;
            continue;
        }
        let same = |other: &Waiting| (other.code, &other.message) == (one.code, &one.message);
        match lines.iter_mut().find(|(_, other)| same(other)) {
            Some((names, _)) => names.push(node),
            None => lines.push((vec![node], one)),
        }
    }
    for (names, _) in &mut lines {
        names.sort_unstable();
    }
    lines.sort();
    let mut lines: Vec<(String, String)> =
        lines.into_iter().map(|(names, one)| (names.join(", "), said(one))).collect();
    if unconcerned > 0 {
        lines.push((nodes(unconcerned), "done, or no part of it".into()));
    }
    lines
}

/// One node's place in it.
pub(super) fn place(forecast: &Forecast, node: &str, page: &mut Page) {
    if let Some(never) = forecast.never.iter().find(|one| one.node.as_deref() == Some(node)) {
        return page.toned("never", Tone::Bad, said(never));
    }
    let steps = forecast.steps.iter().enumerate();
    for (at, step) in steps {
        let Some(found) = step.nodes.iter().find(|one| one.name == node) else { continue };
        let what = match step.kind {
            ForecastStepKind::Restart => "restarted",
            ForecastStepKind::Stop => "stopped",
            ForecastStepKind::Start => "started",
        };
        let (at, of) = (at + 1, forecast.steps.len());
        page.fact("its turn", format!("{what} in step {at} of {of}: {}", found.message));
    }
    if let Some(one) = forecast.waiting.iter().find(|one| one.node.as_deref() == Some(node)) {
        page.fact("not now", said(one));
    }
    if let Some(blocker) = &forecast.blocked_by {
        page.toned("held by", Tone::Bad, said(blocker));
    }
}
