//! `why`: one node.

use super::ahead::place;
use super::{UNSEEN, message, phase_of, tone_of_outcome};
use crate::kubectl::ahead::Ahead;
use crate::kubectl::text::{Page, Paint, Tone, spoken, stamp, when};
use crate::kubectl::view::{Pod, View};
use stayput_restart::{Step, Time};

/// The whole page.
pub(in crate::kubectl) fn why(view: &View, pod: &Pod, now: Time, paint: Paint) -> String {
    let mut page = Page::new(paint);
    tell(view, pod, now, &mut page);
    page.into_text()
}

/// The same at the moment of a snapshot, and the node's place in what was to come.
pub(in crate::kubectl) fn why_then(view: &View, pod: &Pod, ahead: &Ahead, paint: Paint) -> String {
    let mut page = Page::new(paint);
    page.fact("seen at", stamp(ahead.seen));
    tell(view, pod, ahead.seen, &mut page);
    place(&ahead.forecast, &pod.node, &mut page);
    page.into_text()
}

fn tell(view: &View, pod: &Pod, now: Time, page: &mut Page) {
    page.fact("node", format!("{} of {}/{}", pod.node, view.namespace, view.name));
    let readiness = if pod.ready { "ready" } else { "NOT READY" };
    page.fact("pod", format!("{}, {readiness}, uid {}", pod.name, pod.uid));
    page.fact("phase", phase_of(view, pod));
    let report = view.report(&pod.node);
    if let Some(report) = report {
        if let Some(state) = &report.state {
            page.fact("engine", state);
        }
        if let Some(checksum) = &report.checksum {
            page.fact("runs on", format!("{checksum}…"));
        }
    }
    let blocked = report.is_some_and(|report| report.blocked_by.is_some());
    let tone = if blocked { Tone::Bad } else { Tone::Plain };
    if view.status.is_none() {
        page.toned("why", Tone::Heed, UNSEEN);
    } else {
        page.toned("why", tone, message(view, pod));
    }
    let cluster = view.status.as_ref().map(|status| &status.report);
    if let Some((report, rule)) =
        cluster.and_then(|report| Some((report, report.blocked.as_ref()?)))
        && !blocked
    {
        let message = report.message.as_deref().unwrap_or("-");
        page.toned("cluster", Tone::Bad, format!("blocked by {rule}: {message}"));
    }
    part(view, pod, now, page);
    match &pod.last_restart {
        Some(last) => {
            let word = format!("{} {}", last.id, last.outcome.as_str());
            page.toned("last", tone_of_outcome(last.outcome), word);
            if !last.reason.is_empty() {
                page.fact("", &last.reason);
            }
            let began = when(last.started, now);
            page.fact("", format!("began {began}, took {}", spoken(last.seconds)));
        }
        None => page.fact("last", "it was never restarted in this pod"),
    }
}

/// Its part in the restart under way.
fn part(view: &View, pod: &Pod, now: Time, page: &mut Page) {
    let Some(restart) = view.restart() else { return };
    let id = &restart.request.id;
    let Some(member) = restart.members.iter().find(|member| member.pod_uid == pod.uid) else {
        return page.fact("restart", format!("it is not part of {id}, which is under way"));
    };
    let step = match member.step {
        Step::Scheduled => "waits for its turn",
        Step::Restarting => "is being restarted",
        Step::Aborting => "is being brought back",
        Step::Finished => "is done",
    };
    page.fact("restart", format!("{id}: {step}, since {}", when(member.since, now)));
    if let Some(ending) = &member.ending
        && !ending.reason.is_empty()
    {
        page.fact("", format!("{}: {}", ending.outcome.as_str(), ending.reason));
    }
}
