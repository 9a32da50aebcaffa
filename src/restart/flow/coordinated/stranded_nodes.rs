//! Stranded nodes cannot be started on the config that was frozen for them; a restart that only goes forward
//! cannot end while it has one.

use super::active;
use crate::context::Context;
use crate::flow::observed::{expected_now, has_joined, is_over_time};
use crate::snapshot::namespace_and_name;
use crate::{Blocker, Code, Direction, Manager, Member, Restart, Strategy};
use stayput_api::State;
use stayput_api::checksum::short;

/// A queued request that cannot supersede a restart, and the reason.
pub(crate) struct Obstacle {
    /// Id of the queued request.
    pub(super) asked: String,
    pub(crate) message: String,
}

/// True if a coordinated restart has a stranded member, so that a person may request another restart that
/// supersedes it.
pub(super) fn has_stranded(context: &Context<'_>, restart: &Restart) -> bool {
    restart.request.strategy == Strategy::Coordinated
        && active(restart).any(|(_, member)| is_stranded(context, restart, member))
}

/// True if a member can no longer be started on the config that was frozen for it: the mounted config and the
/// sources have changed, or its engine was already stopped once and runs on another config.
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

/// The blocker of a stranded member: why it waits, and what a person can do about it.
pub(super) fn stranded_blocker(
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
    let what = if runs {
        format!("{node} runs on another config than {wanted}")
    } else {
        format!("{node} is not back, and its sources no longer have the config {wanted}")
    };
    let mut ways = Vec::new();
    if !runs {
        ways.push("put that config back".to_owned());
    }
    let (namespace, name) = namespace_and_name(&cluster.name);
    match obstacle {
        // A deleted SearchCluster accepts no requests; a stop or start by a person ends the node's
        // part.
        _ if cluster.deleting => {
            ways.push(format!("stop and start the engine of {node} yourself"));
        }
        Some(Obstacle { asked, message }) => ways.push(format!(
            "wait until restart {asked} can take the place of {id}, which it cannot yet: \
             {message}"
        )),
        None => ways.push(format!(
            "ask with `kubectl stayput -n {namespace} restart {name} --coordinated` for a restart of all \
             nodes on the config in their sources, which replaces {id}"
        )),
    }
    Blocker {
        code: Code::Stranded,
        message: format!(
            "{what} that {id} starts every node with; others run on it, so no node is reverted: {}",
            ways.join(", or ")
        ),
    }
}

/// True if a member is back in the cluster, on the config that was frozen for it.
pub(super) fn is_back(context: &Context<'_>, member: &Member) -> bool {
    let manager = context.index.manager(&member.pod_uid);
    manager.is_ok_and(|manager| runs_as_asked(manager, member))
        && has_joined(context, member) == Ok(true)
}

/// True if the member's engine runs, or is starting, because of our start and on the requested config.
fn runs_as_asked(manager: &Manager, member: &Member) -> bool {
    manager.sequence >= member.start_sequence && is_up(manager) && !is_on_another(manager, member)
}

/// True if the member's engine runs after our stop on another config than requested: another client started
/// it on the config that was mounted then.
fn is_on_another(manager: &Manager, member: &Member) -> bool {
    let run =
        manager.run.as_ref().filter(|_| is_up(manager) && manager.sequence >= member.stop_sequence);
    member.expected.is_some() && run.is_some_and(|run| run.checksum != member.expected)
}

const fn is_up(manager: &Manager) -> bool {
    matches!(manager.state, State::Starting | State::Running)
}
