//! What keeps a restart that has gone forward from its end: a node that cannot be brought to the
//! config that was frozen for it.

use super::active;
use crate::context::Context;
use crate::flow::observed::{expected_now, has_joined, is_over_time};
use crate::{Blocker, Code, Direction, Manager, Member, Restart, Strategy};
use stayput_api::State;
use stayput_api::checksum::short;

/// What keeps a request from taking a restart's place.
pub(in crate::flow) struct Obstacle {
    /// Id of the request.
    pub(super) asked: String,
    pub(in crate::flow) message: String,
}

/// Whether a person may have another restart take the place of this one.
pub(super) fn has_stranded(context: &Context<'_>, restart: &Restart) -> bool {
    restart.request.strategy == Strategy::Coordinated
        && active(restart).any(|(_, member)| is_stranded(context, restart, member))
}

/// Whether a member can no longer be brought to what was frozen for it: nothing of ours takes
/// it there, and what is mounted and declared has moved on, or what runs was stopped once already.
pub(super) fn is_stranded(context: &Context<'_>, restart: &Restart, member: &Member) -> bool {
    if restart.direction != Direction::Forward || restart.frozen.is_none() {
        return false;
    }
    let pod = context.index.pod(&member.pod_uid);
    let (Some(pod), Ok(manager)) = (pod, context.index.manager(&member.pod_uid)) else {
        return false;
    };
    if is_on_another(manager, member) {
        return true;
    }
    let moved = manager.mounted != member.expected
        && expected_now(pod, manager).is_ok_and(|now| now != member.expected);
    let late = || is_over_time(context, member, 1) && has_joined(context, member) == Ok(false);
    moved && (!runs_as_asked(manager, member) || late())
}

/// Why a stranded member waits, and what a person can do about it.
pub(super) fn way_out(
    context: &Context<'_>,
    restart: &Restart,
    member: &Member,
    obstacle: Option<&Obstacle>,
) -> Blocker {
    let cluster = &context.snapshot.cluster;
    let (node, id) = (&member.node, &restart.request.id);
    let wanted = short(member.expected.as_deref().unwrap_or("that was mounted"));
    let manager = context.index.manager(&member.pod_uid).ok();
    let runs = manager.is_some_and(|manager| is_on_another(manager, member));
    let what = match runs {
        true => format!("{node} runs on another config than {wanted}"),
        false => {
            format!("{node} is not back, and its sources no longer have the config {wanted}")
        }
    };
    let mut ways = Vec::new();
    if !runs {
        ways.push("put that config back".to_owned());
    }
    let name = cluster.name.rsplit('/').next().unwrap_or_default();
    match obstacle {
        // Nothing is asked for any more; what a person does to it ends a node's part.
        _ if cluster.deleting => {
            ways.push(format!("stop and start the engine of {node} yourself"));
        }
        Some(Obstacle { asked, message }) => ways.push(format!(
            "wait until restart {asked} can take the place of {id}, which it cannot yet: \
             {message}"
        )),
        None => ways.push(format!(
            "ask with `kubectl stayput restart {name} --coordinated` for a restart of all on \
             what their sources have now, which takes the place of {id}"
        )),
    }
    Blocker {
        code: Code::Stranded,
        message: format!(
            "{what} that {id} starts every node with; others run on it, so nothing is turned \
             back: {}",
            ways.join(", or ")
        ),
    }
}

/// Whether a member is back, in the cluster and on what it was to be started with.
pub(super) fn is_well(context: &Context<'_>, member: &Member) -> bool {
    let manager = context.index.manager(&member.pod_uid);
    manager.is_ok_and(|manager| runs_as_asked(manager, member))
        && has_joined(context, member) == Ok(true)
}

/// Whether its engine runs, or comes up, by our start and on the config asked for.
fn runs_as_asked(manager: &Manager, member: &Member) -> bool {
    manager.sequence >= member.start_sequence && is_up(manager) && !is_on_another(manager, member)
}

/// Whether its engine runs after our stop, and not on the config asked for: whoever brought it up
/// took what was mounted then.
fn is_on_another(manager: &Manager, member: &Member) -> bool {
    let run =
        manager.run.as_ref().filter(|_| is_up(manager) && manager.sequence >= member.stop_sequence);
    member.expected.is_some() && run.is_some_and(|run| run.checksum != member.expected)
}

const fn is_up(manager: &Manager) -> bool {
    matches!(manager.state, State::Starting | State::Running)
}
