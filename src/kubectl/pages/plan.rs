//! `plan` without a dry run: the next nodes according to the status, and the reasons why nodes wait.

use super::common::{add_options, message, not_processed, only_restarted, request_summary, update};
use super::dry_run::{ORDER_LIMITS, add_order};
use crate::cluster_view::ClusterView;
use crate::format::node_count;
use crate::page::{Page, Paint, Tone};
use stayput_restart::{Code, Member, MemberStep, OnConfigChange, Report, Restart, UpdateStep};

/// The page; `no_forecast` is the reason why there is no dry run.
pub(crate) fn plan(view: &ClusterView, no_forecast: &str, paint: Paint) -> String {
    let mut page = Page::new(paint);
    let Some(status) = &view.status else {
        page.line(not_processed(view));
        return page.into_text();
    };
    let report = &status.report;
    if let Some(code) = &report.blocked {
        let message = report.message.as_deref().unwrap_or("-");
        page.toned("blocked by", Tone::Bad, format!("{code}: {message}"));
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
    add_updates(report, &mut page);
    if let Some(queued) = &status.ledger.queued {
        page.fact("queued", request_summary(queued));
    }
    page.fact("no dry run", no_forecast);
    add_options(view, &mut page);
    page.into_text()
}

fn add_members(view: &ClusterView, restart: &Restart, page: &mut Page) {
    page.fact("restart", request_summary(&restart.request));
    let in_steps = |steps: &[MemberStep]| -> Vec<&Member> {
        restart.members.iter().filter(|member| steps.contains(&member.step)).collect()
    };
    let message_of = |node: &str| match view.pod_of_node(node) {
        Some(pod) => message(view, pod),
        None => "its pod no longer exists".into(),
    };
    for member in in_steps(&[MemberStep::Restarting, MemberStep::GivingBack, MemberStep::Aborting])
    {
        page.fact("under way", format!("{}: {}", member.node, message_of(&member.node)));
    }
    let order = view.restart_order();
    let place = |member: &&Member| order.iter().position(|pod| pod.uid == member.pod_uid);
    let mut waiting = in_steps(&[MemberStep::Scheduled]);
    waiting.sort_by_key(|member| place(member).unwrap_or(usize::MAX));
    for member in &waiting {
        page.fact("waiting", format!("{}: {}", member.node, message_of(&member.node)));
    }
    if waiting.len() > 1 {
        page.fact("", ORDER_LIMITS);
    }
    page.fact("finished", node_count(in_steps(&[MemberStep::Finished]).len()));
}

/// Adds the changes of pod templates that the nodes lack, or are getting.
fn add_updates(report: &Report, page: &mut Page) {
    let updates = report.nodes.iter().filter_map(|node| {
        let update = update(node.step?, &node.because)?;
        Some(format!("{}: {update}", node.name))
    });
    for update in updates {
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
        page.fact("waiting", format!("{}: {}", pod.node, message(view, pod)));
    }
}
