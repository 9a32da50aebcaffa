//! What a change of the ledger means, for logs and metrics.

use std::collections::BTreeSet;

use crate::reconciler::metrics::Metrics;
use crate::restart::{Ledger, Member, Step, Time};

/// Counts and logs what is in `after` and not in `before`.
pub(super) fn note(cluster: &str, before: &Ledger, after: &Ledger, now: Time, metrics: &Metrics) {
    let new = after.history.iter().filter(|entry| !before.history.contains(entry));
    for entry in new {
        metrics.count_restart(entry.outcome.as_str(), entry.strategy.as_str());
        tracing::info!(
            cluster,
            restart = entry.id,
            outcome = entry.outcome.as_str(),
            seconds = entry.seconds,
            nodes = entry.nodes,
            "restart over: {}",
            entry.reason
        );
    }
    let Some(restart) = after.restart.as_ref().or(before.restart.as_ref()) else { return };
    let strategy = restart.request.strategy.as_str();
    for member in &restart.members {
        let was = before.restart.as_ref().and_then(|restart| same(&restart.members, member));
        let step = was.map(|member| member.step);
        if step == Some(member.step) {
            continue;
        }
        let (cluster, id, node) = (cluster, restart.request.id.as_str(), member.node.as_str());
        tracing::info!(
            cluster,
            restart = id,
            node,
            step = word(member.step),
            stop = member.stop,
            start = member.start,
            "ledger written"
        );
        let ended = member.step == Step::Finished && was.is_some_and(Member::is_under_way);
        if ended {
            let milliseconds = u32::try_from(now.since(member.since)).unwrap_or(u32::MAX);
            metrics.observe_node(strategy, f64::from(milliseconds) / 1000.0);
        }
    }
}

/// How many debts there are that nobody under way is going to settle.
pub(super) fn debts_due(ledger: &Ledger) -> usize {
    let members = ledger.restart.iter().flat_map(|restart| &restart.members);
    let under_way: BTreeSet<&str> = members
        .filter(|member| member.is_under_way())
        .map(|member| member.pod_uid.as_str())
        .collect();
    let is_due = |uid: &String| !under_way.contains(uid.as_str());
    let debts = &ledger.debts;
    let allocation = debts.allocation.iter().filter(|debt| debt.holders.iter().all(is_due)).count();
    debts.start.iter().filter(|debt| is_due(&debt.pod_uid)).count()
        + debts.records.iter().filter(|debt| is_due(&debt.pod_uid)).count()
        + allocation
}

fn same<'a>(members: &'a [Member], member: &Member) -> Option<&'a Member> {
    members.iter().find(|one| one.pod_uid == member.pod_uid)
}

const fn word(step: Step) -> &'static str {
    match step {
        Step::Scheduled => "scheduled",
        Step::Restarting => "restarting",
        Step::Aborting => "aborting",
        Step::Finished => "finished",
    }
}
