//! Rolling and immediate restarts: batch after batch.
//!
//! What the rules ask about is counted once and kept up to date from batch to batch, so that a whole
//! restart costs little more than the copies of its shards. Only where a node that the cluster
//! misses has come back is everything counted anew.

use std::collections::BTreeSet;

use super::scene::{Scene, finish};
use super::{Stage, StageKind, Turn, When};
use crate::context::Context;
use crate::flow::begin;
use crate::lookup::{Lookup, Names};
use crate::rules::{Walk, order, place, preflight};
use crate::{Blocker, Code, Ending, Pod, Policy, Snapshot, Step, Waiting};

/// Adds a step for every batch, and answers for the nodes whose turn never comes.
pub(super) fn walk(
    scene: &mut Scene,
    policy: &Policy,
    is_now: bool,
    steps: &mut Vec<Stage>,
) -> Vec<Waiting> {
    let mut when = if is_now { When::Now } else { When::Later };
    loop {
        let leg = leg(&scene.snapshot, policy, when, steps);
        if !leg.is_to_be_counted_anew {
            return leg.refused;
        }
        when = When::Later;
        finish(&mut scene.snapshot, &leg.gone);
    }
}

/// As far as one count carries.
#[derive(Debug, Default)]
struct Leg {
    /// Uids of the pods that went.
    gone: BTreeSet<String>,
    /// Among them were such as the cluster misses: what they bring back may let others go.
    is_to_be_counted_anew: bool,
    /// Those that did not go, and why.
    refused: Vec<Waiting>,
}

/// Goes on until nobody is left or may go, or the last of the nodes that were missing is back.
fn leg(snapshot: &Snapshot, policy: &Policy, mut when: When, steps: &mut Vec<Stage>) -> Leg {
    let context = Context::new(snapshot, policy);
    let mut leg = Leg::default();
    let Some(restart) = &snapshot.ledger.restart else { return leg };
    let members = restart.members.iter().enumerate();
    let scheduled: Lookup<'_, usize> = members
        .filter(|(_, member)| member.step == Step::Scheduled)
        .map(|(index, member)| (member.pod_uid.as_str(), index))
        .collect();
    let engine = context.index.engine().ok();
    let pods = context.index.pods().filter(|pod| scheduled.contains_key(pod.uid.as_str()));
    let mut open = order(pods, engine);
    let looked = match &restart.ending {
        Some(ending) => Err(ends(ending)),
        None => context.evaluate(&snapshot.ledger),
    };
    let mut pass = match looked {
        Ok(pass) => pass,
        Err(refusal) => {
            let own = |pod: &Pod| preflight(pod).err().unwrap_or_else(|| refusal.clone());
            leg.refused = open.into_iter().map(|pod| waiting(pod, own(pod))).collect();
            return leg;
        }
    };
    loop {
        let mut walk = Walk::default();
        let mut chosen: Names<'_> = Names::default();
        let mut turns = Vec::new();
        leg.refused.clear();
        for pod in open.iter().copied() {
            if !pass.has_room() {
                break;
            }
            let turn =
                walk.turn(&mut pass, pod, restart.request.strategy, |pod, manager, terms| {
                    let index = scheduled[&*pod.uid];
                    begin(&context, &snapshot.ledger, restart, index, pod, manager, terms).map(drop)
                });
            match turn {
                Ok(()) => {
                    chosen.insert(&pod.uid);
                    turns.push(Turn { node: pod.node.clone(), why: place(pod, engine).into() });
                }
                Err(refusal) => leg.refused.push(waiting(pod, refusal)),
            }
        }
        if turns.is_empty() {
            return leg;
        }
        steps.push(Stage { kind: StageKind::Restart, when, turns });
        when = When::Later;
        for pod in open.iter().filter(|pod| chosen.contains(pod.uid.as_str())) {
            leg.is_to_be_counted_anew |= pass.is_missed(&pod.uid);
            pass.finish(&pod.uid);
            leg.gone.insert(pod.uid.clone());
        }
        open.retain(|pod| !chosen.contains(pod.uid.as_str()));
        if leg.is_to_be_counted_anew && !open.iter().any(|pod| pass.is_missed(&pod.uid)) {
            return leg;
        }
    }
}

/// Why nobody goes any more in a restart that comes to its end.
fn ends(ending: &Ending) -> Blocker {
    let message = format!(
        "no further node is stopped: the restart ends as {} ({})",
        ending.outcome.as_str(),
        ending.reason
    );
    Blocker { code: Code::NotItsTurn, message }
}

fn waiting(pod: &Pod, refusal: Blocker) -> Waiting {
    Waiting {
        pod: Some(pod.uid.clone()),
        node: Some(pod.node.clone()),
        code: refusal.code,
        message: refusal.message,
    }
}
