//! The history: restarts that have ended, and requests that never began.

use std::collections::BTreeMap;

use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::LedgerChange;
use crate::{
    Blocker, Color, Ending, HistoryEntry, Member, Outcome, Reason, Request, Restart, UpdateStep,
};

/// Reports how a restart ended, and adds it to the history. `nodes`: the number of nodes that are done.
/// `left`: a sentence on what the restart has left behind.
pub(super) fn record_end(
    context: &Context<'_>,
    restart: &Restart,
    mut ending: Ending,
    nodes: usize,
    left: Option<String>,
) -> Changes {
    let seconds = context.snapshot.now.since(restart.started) / 1000;
    let id = &restart.request.id;
    let (reason, message) = match ending.outcome {
        Outcome::Done => {
            let not_green = not_green(context);
            let health = not_green.as_deref().unwrap_or("the cluster is green");
            let s = if nodes == 1 { "" } else { "s" };
            let also = left.iter().map(|left| format!("; {left}")).collect::<String>();
            let message =
                format!("Restart {id} is done: {nodes} node{s} in {seconds} s; {health}{also}");
            let reasons: Vec<String> = not_green.into_iter().chain(left).collect();
            ending.reason = reasons.join("; ");
            (Reason::RestartFinished, message)
        }
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => {
            let reasons: Vec<String> = std::iter::once(ending.reason).chain(left).collect();
            ending.reason = reasons.join("; ");
            let message = format!("Restart {id}: {} ({})", ending.outcome.as_str(), ending.reason);
            (Reason::RestartAborted, message)
        }
    };
    let mut changes = Changes::default();
    changes.event(None, reason, message);
    changes.change(LedgerChange::AddHistory(HistoryEntry {
        id: id.clone(),
        strategy: restart.request.strategy,
        outcome: ending.outcome,
        reason: ending.reason,
        started: restart.started,
        began: restart.began,
        seconds,
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
        steps: steps(restart),
        skipped_rules: restart.request.skip_rules.clone(),
        allowed_outage: restart.request.allow_outage,
    }));
    changes
}

/// Number of nodes restarted by each step, by its name.
fn steps(restart: &Restart) -> BTreeMap<String, u32> {
    let is_done = |member: &&Member| {
        member.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Done)
    };
    let mut steps = BTreeMap::new();
    for member in restart.members.iter().filter(is_done) {
        let step = member.done_by.unwrap_or(UpdateStep::Restart);
        *steps.entry(step.name().to_owned()).or_default() += 1;
    }
    steps
}

/// Sentence on the health of the cluster at this moment, unless it is green.
fn not_green(context: &Context<'_>) -> Option<String> {
    let health = context
        .index
        .engine()
        .and_then(|engine| engine.health.as_ref().map_err(Blocker::engine_unreachable));
    let health = match health {
        Ok(health) => health,
        Err(blocker) => {
            return Some(format!("the cluster's health was not known: {}", blocker.message));
        }
    };
    let color = match health.color {
        Color::Green => return None,
        Color::Yellow => "yellow",
        Color::Red => "red",
        Color::Unknown => "of unknown health",
    };
    let copies = match health.unassigned + health.initializing {
        0 => String::new(),
        1 => ", 1 shard copy not started".to_owned(),
        many => format!(", {many} shard copies not started"),
    };
    Some(format!("the cluster was not green yet: {color}{copies}"))
}

/// History entry of a request that ended before it began.
pub(super) fn record_unbegun(
    context: &Context<'_>,
    request: &Request,
    outcome: Outcome,
    reason: String,
) -> LedgerChange {
    LedgerChange::AddHistory(HistoryEntry {
        id: request.id.clone(),
        strategy: request.strategy,
        outcome,
        reason,
        started: context.snapshot.now,
        began: None,
        seconds: 0,
        nodes: 0,
        steps: BTreeMap::new(),
        skipped_rules: request.skip_rules.clone(),
        allowed_outage: request.allow_outage,
    })
}
