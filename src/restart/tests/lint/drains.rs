//! A drain ends early only if the manager has taken our stop, drains, and nobody is sent there.

use super::facts::Facts;
use crate::{Drain, Endpoint};
use stayput_api::{RequestKind, State};

pub(super) fn end(facts: &Facts, uid: &str, sequence: u64, drain: u64, wrong: &mut Vec<String>) {
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
        Ok(Endpoint::NotReady) if drain > 0 => {}
        other => {
            wrong.push(format!("the drain of {name} ends after {drain} ms more at {other:?}"));
        }
    }
}
