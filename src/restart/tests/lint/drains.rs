//! A drain begins ahead only of a stop that is being prepared, of a node that has a slot; it ends early only if the manager has taken our stop, drains, and nobody is sent there.

use super::facts::Input;
use crate::{Action, Drain, Endpoint, MemberStep, Plan};
use stayput_api::{RequestKind, State};

/// What kube-proxy is left to follow.
const PROXY_DELAY: u64 = 500;

pub(super) fn begin(facts: &Input, plan: &Plan, uid: &str, sequence: u64, wrong: &mut Vec<String>) {
    let member = facts
        .restart()
        .and_then(|restart| restart.members.iter().find(|member| member.pod_uid == uid));
    let (Some(member), Some(manager)) = (member, facts.manager(uid)) else {
        wrong.push(format!("{uid} drains, which has no slot or is not known"));
        return;
    };
    let name = &member.node;
    if facts.policy.drain != Drain::Auto {
        wrong.push(format!("{name} drains ahead of its stop, though its time is fixed"));
    }
    if member.step != MemberStep::Restarting || member.stop_sequence != sequence {
        wrong.push(format!("{name} drains for {sequence}, which is not the stop of its slot"));
    }
    if manager.sequence >= sequence || manager.state != State::Running {
        wrong.push(format!("{name} drains ahead of a stop that was sent"));
    }
    let is_prepared = |action: &Action| match action {
        Action::Flush { node } => *node == member.node,
        // A red cluster gets no flush.
        Action::TightenAllocation { .. } | Action::PutRecord { .. } => facts.is_red(),
        _ => false,
    };
    if !plan.actions.iter().any(is_prepared) {
        wrong.push(format!("{name} drains, and its stop is not prepared"));
    }
}

pub(super) fn end(facts: &Input, uid: &str, sequence: u64, drain: u64, wrong: &mut Vec<String>) {
    let (Some(pod), Some(manager)) = (facts.pod(uid), facts.manager(uid)) else {
        wrong.push(format!("the drain of {uid} ends, which is not known"));
        return;
    };
    let name = &pod.name;
    if facts.policy.drain != Drain::Auto {
        wrong.push(format!("the drain of {name} ends early, though its time is fixed"));
    }
    let last = manager.last_request.as_ref();
    let is_taken = last.is_some_and(|last| {
        last.sequence == sequence && last.kind == RequestKind::Stop && last.accepted
    });
    if !is_taken || manager.state != State::Stopping || !manager.draining {
        wrong.push(format!("the drain of {name} ends, though it does not drain for {sequence}"));
    }
    match &pod.endpoint {
        Ok(Endpoint::Absent) => {}
        Ok(Endpoint::NotReady)
            if pod
                .unserved_since
                .is_some_and(|since| facts.snapshot.now.since(since) + drain >= PROXY_DELAY) => {}
        other => {
            wrong.push(format!("the drain of {name} ends after {drain} ms more at {other:?}"));
        }
    }
}
