//! The drain of a node begins while its stop is prepared. The stop signal is sent as soon as Services send
//! the node no requests any more; if that is unknown, the manager ends the drain by itself.

use crate::context::Context;
use crate::{Action, Drain, Endpoint, Manager, Member, Pod, Resume};
use stayput_api::State;

/// Time that kube-proxy has to follow an EndpointSlice, in milliseconds. By default it writes its rules at
/// once, but at most once a second: after another change within that second it may take up to half a second
/// longer.
const PROXY_DELAY: u64 = 500;

/// The drain request ahead of a member's stop, sent when the preparation begins. Nothing waits for it: an
/// older manager does not know the request, and drains after the stop only.
pub(super) fn begin_drain(
    context: &Context<'_>,
    member: &Member,
    manager: &Manager,
) -> Option<Action> {
    let (uid, sequence) = (member.pod_uid.clone(), member.stop_sequence);
    let serves = context.policy.drain == Drain::Auto && manager.state == State::Running;
    serves.then_some(Action::Drain { uid, sequence })
}

/// The request that shortens the drain of the stop with this sequence, if the drain is known to be needlessly
/// long. Every plan sends it until the drain is over, half a second at most: no field of a manager's status
/// says when a drain ends, and a repeated stop changes and writes nothing.
pub(super) fn end_drain(
    context: &Context<'_>,
    pod: &Pod,
    manager: &Manager,
    sequence: u64,
    resume: Option<Resume>,
    exit: bool,
) -> Option<Action> {
    if !is_automatic(context, manager) || manager.sequence != sequence {
        return None;
    }
    let drain = match pod.endpoint {
        Ok(Endpoint::Absent) => 0,
        Ok(Endpoint::NotReady) => {
            let since = pod.unserved_since.unwrap_or(context.snapshot.now);
            PROXY_DELAY.saturating_sub(context.snapshot.now.since(since))
        }
        Ok(Endpoint::Ready) | Err(_) => return None,
    };
    Some(Action::EndDrain { uid: pod.uid.clone(), sequence, drain, resume, exit })
}

/// Reason why the stop of this node waits, if the node drains.
pub(super) fn describe(context: &Context<'_>, pod: &Pod, manager: &Manager) -> Option<String> {
    if !is_automatic(context, manager) {
        return None;
    }
    let most = Drain::LONGEST / 1000;
    Some(match &pod.endpoint {
        Ok(Endpoint::Ready) => {
            format!("it is not ready until no Service sends requests to it, at most {most} s")
        }
        Ok(Endpoint::NotReady | Endpoint::Absent) => {
            "no Service sends requests to it any more; its engine is being stopped".into()
        }
        Err(unknown) => format!(
            "it is not ready for {most} s, since it is not known whether Services still send \
             requests to it: {}",
            unknown.message
        ),
    })
}

fn is_automatic(context: &Context<'_>, manager: &Manager) -> bool {
    context.policy.drain == Drain::Auto && manager.draining
}
