//! While a node that is being stopped drains: its stop signal is sent as soon as Services send it no
//! requests any more. If nothing of this is known, its manager ends the drain by itself.

use crate::context::Context;
use crate::{Action, Drain, Endpoint, Manager, Pod, Resume};

/// How long kube-proxy may take to follow an EndpointSlice, in milliseconds: by default it writes its
/// rules at most once a second.
const PROXY_DELAY: u64 = 1_000;

/// The shorter drain of the stop with this sequence, if it is known that it may be shorter. It is sent
/// at each look until the drain is over, a second at most: no field of a manager's status says when a
/// drain ends, and a repeated stop changes and writes nothing.
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
        Ok(Endpoint::NotReady) => PROXY_DELAY,
        Ok(Endpoint::Ready) | Err(_) => return None,
    };
    Some(Action::EndDrain { uid: pod.uid.clone(), sequence, drain, resume, exit })
}

/// What the stop of this node waits for, if it drains.
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
