//! Rolling and immediate restarts: batch after batch.
//!
//! The rules' counts are made once and updated from batch to batch, so that a whole restart costs
//! little more than the copies of its shards. Only when a node returns that the cluster misses,
//! everything is counted again.

use std::collections::BTreeSet;

use super::working_copy::{WorkingCopy, finish};
use super::{ForecastNode, ForecastStep, ForecastStepKind, ForecastTime};
use crate::context::Context;
use crate::flow::begin;
use crate::lookup::{Lookup, NameSet};
use crate::rules::{Selection, order, reason_for_order};
use crate::{Blocker, Code, Ending, MemberStep, Pod, Policy, Snapshot, Waiting};

/// Adds a step for every batch, and returns the nodes that are never restarted.
pub(super) fn add_batches(
    working_copy: &mut WorkingCopy,
    policy: &Policy,
    is_now: bool,
    steps: &mut Vec<ForecastStep>,
) -> Vec<Waiting> {
    let mut when = if is_now { ForecastTime::Now } else { ForecastTime::Later };
    loop {
        let batches = batches(&working_copy.snapshot, policy, when, steps);
        if !batches.must_count_again {
            return batches.blocked;
        }
        when = ForecastTime::Later;
        finish(&mut working_copy.snapshot, &batches.restarted);
    }
}

/// The batches that are computed from one count.
#[derive(Debug, Default)]
struct Batches {
    /// Uids of the pods that were restarted.
    restarted: BTreeSet<String>,
    /// True if the cluster missed some of the restarted nodes: their return may unblock others.
    must_count_again: bool,
    /// The nodes that were not restarted, and why.
    blocked: Vec<Waiting>,
}

/// Adds batches until no node is left or may go, or until the last missing node is back.
fn batches(
    snapshot: &Snapshot,
    policy: &Policy,
    mut when: ForecastTime,
    steps: &mut Vec<ForecastStep>,
) -> Batches {
    let context = Context::new(snapshot, policy);
    let mut batches = Batches::default();
    let Some(restart) = &snapshot.ledger.restart else { return batches };
    let members = restart.members.iter().enumerate();
    let scheduled: Lookup<'_, usize> = members
        .filter(|(_, member)| member.step == MemberStep::Scheduled)
        .map(|(index, member)| (member.pod_uid.as_str(), index))
        .collect();
    let engine = context.index.engine().ok();
    let pods = context.index.pods().filter(|pod| scheduled.contains_key(pod.uid.as_str()));
    let mut remaining = order(pods, engine);
    let evaluation = match &restart.ending {
        Some(ending) => Err(ending_blocker(ending)),
        None => context.evaluate(&snapshot.ledger),
    };
    let mut evaluation = match evaluation {
        Ok(evaluation) => evaluation,
        Err(blocker) => {
            let own = |pod: &Pod| context.preflight(pod).err().unwrap_or_else(|| blocker.clone());
            batches.blocked = remaining.into_iter().map(|pod| waiting(pod, own(pod))).collect();
            return batches;
        }
    };
    loop {
        let mut selection = Selection::default();
        let mut chosen: NameSet<'_> = NameSet::default();
        let mut nodes = Vec::new();
        batches.blocked.clear();
        for pod in remaining.iter().copied() {
            if !evaluation.has_free_slot() {
                break;
            }
            let strategy = restart.request.strategy;
            let mut unavailable = String::new();
            let offered =
                selection.offer(&mut evaluation, pod, strategy, |pod, manager, impact| {
                    let index = scheduled[&*pod.uid];
                    unavailable.clone_from(&impact.unavailable);
                    begin(&context, &snapshot.ledger, restart, index, pod, manager, impact)
                        .map(drop)
                });
            match offered {
                Ok(()) => {
                    chosen.insert(&pod.uid);
                    let message = format!("{}{unavailable}", reason_for_order(pod, engine));
                    nodes.push(ForecastNode::new(&pod.node, message));
                }
                Err(blocker) => batches.blocked.push(waiting(pod, blocker)),
            }
        }
        if nodes.is_empty() {
            return batches;
        }
        steps.push(ForecastStep { kind: ForecastStepKind::Restart, when, nodes });
        when = ForecastTime::Later;
        for pod in remaining.iter().filter(|pod| chosen.contains(pod.uid.as_str())) {
            batches.must_count_again |= evaluation.is_unlisted(&pod.uid);
            evaluation.release_slot(&pod.uid);
            batches.restarted.insert(pod.uid.clone());
        }
        remaining.retain(|pod| !chosen.contains(pod.uid.as_str()));
        if batches.must_count_again && !remaining.iter().any(|pod| evaluation.is_unlisted(&pod.uid))
        {
            return batches;
        }
    }
}

/// The blocker of the remaining nodes of a restart that is ending.
fn ending_blocker(ending: &Ending) -> Blocker {
    let message = format!(
        "no further node is stopped: the restart ends as {} ({})",
        ending.outcome.as_str(),
        ending.reason
    );
    Blocker { code: Code::NotItsTurn, message }
}

fn waiting(pod: &Pod, blocker: Blocker) -> Waiting {
    Waiting {
        pod: Some(pod.uid.clone()),
        node: Some(pod.node.clone()),
        code: blocker.code,
        message: blocker.message.into(),
    }
}
