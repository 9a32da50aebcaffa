//! `plan`: what would happen next and why the others wait; and what a request would ask.

use super::{UNSEEN, message, status};
use crate::kubectl::ahead::Ahead;
use crate::kubectl::text::{Page, Paint, Tone, nodes};
use crate::kubectl::view::{Pod, View};
use stayput_restart::{Member, OnConfigChange, Request, Restart, Step, Strategy};

/// The whole page, from the words the reconciler has left; `blind` is why there is no dry run.
pub(in crate::kubectl) fn plan(view: &View, blind: &str, paint: Paint) -> String {
    let mut page = Page::new(paint);
    let Some(status) = &view.status else {
        page.line(UNSEEN);
        return page.into_text();
    };
    let report = &status.report;
    if let Some(rule) = &report.blocked {
        let message = report.message.as_deref().unwrap_or("-");
        page.toned("blocked by", Tone::Bad, format!("{rule}: {message}"));
    }
    match (&status.ledger.restart, view.requested()) {
        (Some(restart), _) => members(view, restart, &mut page),
        (None, Some(Ok(request))) => {
            page.fact("next", format!("{} is taken up", status::asked(&request)));
            steps(view, &request, &mut page);
        }
        (None, Some(Err(message))) => page.toned("next", Tone::Bad, message),
        (None, None) => idle(view, report.counts.pending_restart, &mut page),
    }
    if let Some(queued) = &status.ledger.queued {
        page.fact("then", status::asked(queued));
    }
    page.fact("no dry run", blind);
    page.into_text()
}

fn members(view: &View, restart: &Restart, page: &mut Page) {
    page.fact("restart", status::asked(&restart.request));
    let of = |steps: &[Step]| -> Vec<&Member> {
        restart.members.iter().filter(|member| steps.contains(&member.step)).collect()
    };
    let why = |node: &str| match view.node(node) {
        Some(pod) => message(view, pod),
        None => "its pod is gone".into(),
    };
    for member in of(&[Step::Restarting, Step::Aborting]) {
        page.fact("now", format!("{}: {}", member.node, why(&member.node)));
    }
    let scheduled = of(&[Step::Scheduled]);
    let order = view.in_order();
    let place = |member: &&Member| order.iter().position(|pod| pod.uid == member.pod_uid);
    let mut waiting = scheduled;
    waiting.sort_by_key(|member| place(member).unwrap_or(usize::MAX));
    for member in &waiting {
        page.fact("waits", format!("{}: {}", member.node, why(&member.node)));
    }
    if waiting.len() > 1 {
        page.fact("", ORDER);
    }
    let done = of(&[Step::Finished]).len();
    page.fact("done", nodes(done));
}

fn idle(view: &View, pending: u32, page: &mut Page) {
    let text = match (view.on_config_change, pending) {
        (_, 0) => "nothing: nobody has asked, and every node runs on its config".to_owned(),
        (OnConfigChange::None, count) => format!(
            "nothing: nobody has asked; {} on another config than the sources have, see \
             `kubectl stayput restart {}`",
            if count == 1 { "1 node runs".to_owned() } else { format!("{count} nodes run") },
            view.name
        ),
        (OnConfigChange::Rolling | OnConfigChange::Coordinated, count) => format!(
            "{} with another config than the sources have will be restarted \
             (spec.restart.onConfigChange)",
            nodes(count as usize)
        ),
    };
    page.fact("next", text);
    for pod in view.pods.iter().filter(|pod| view.is_kept_stopped(pod)) {
        page.fact("waits", format!("{}: {}", pod.node, message(view, pod)));
    }
}

/// Where our order can differ from the restart's own.
const ORDER: &str = "(in this order, except that data nodes go before master-eligible ones and the \
                     elected master goes last, which only the engine can tell)";

/// What a request would do (`restart --dry-run`).
pub(in crate::kubectl) fn asked(view: &View, request: &Request, ahead: Option<&Ahead>) -> String {
    let mut page = Page::new(Paint::default());
    page.fact("asks", status::asked(request));
    if let Some(restart) = view.restart() {
        let id = &restart.request.id;
        page.fact("waits", format!("until restart {id}, which is under way, is over"));
    }
    if view.paused {
        page.fact("waits", "until spec.paused is false");
    }
    match ahead {
        Some(ahead) => super::ahead::steps(&ahead.forecast, &mut page),
        None => steps(view, request, &mut page),
    }
    page.line("Nothing was asked: this is a dry run.");
    page.into_text()
}

/// The nodes in order.
fn steps(view: &View, request: &Request, page: &mut Page) {
    let target = &request.target;
    let meant = |pod: &&&Pod| target.nodes.is_empty() || target.nodes.contains(&pod.node);
    let order = view.in_order();
    let order: Vec<&str> = order.iter().filter(meant).map(|pod| pod.node.as_str()).collect();
    let names = order.join(", ");
    let is_rolling = request.strategy != Strategy::Coordinated;
    if is_rolling {
        page.fact("order", names);
    } else {
        page.fact("nodes", format!("{names}, all stopped before any is started"));
    }
    if target.is_by_engine() {
        page.fact("", "(those of them that have the role or zone, which the engine tells)");
    }
    if is_rolling && order.len() > 1 {
        page.fact("", ORDER);
    }
    let kept =
        view.pods.iter().filter(|pod| view.is_kept_stopped(pod)).map(|pod| pod.node.as_str());
    let kept: Vec<&str> = kept.collect();
    if !kept.is_empty() {
        page.fact("left out", format!("{}: kept stopped", kept.join(", ")));
    }
}
