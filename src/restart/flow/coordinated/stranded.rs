//! What keeps a restart that has gone forward from its end: a node that cannot be brought to the
//! config that was frozen for it.

use super::supersede::Obstacle;
use crate::planner::Planner;
use crate::{Blocker, Code, Direction, Manager, Member, Restart, Strategy};
use stayput_api::State;
use stayput_api::checksum::short;

impl Planner<'_> {
    /// Whether a person may have another restart take the place of this one.
    pub(super) fn has_stranded(&self, restart: &Restart) -> bool {
        restart.request.strategy == Strategy::Coordinated
            && Self::active(restart).any(|(_, member)| self.is_stranded(restart, member))
    }

    /// Whether a member can no longer be brought to what was frozen for it: it is not on its way
    /// there, and what is mounted and declared has moved on, or what runs was stopped once already.
    pub(super) fn is_stranded(&self, restart: &Restart, member: &Member) -> bool {
        if restart.direction != Direction::Forward || restart.frozen.is_none() {
            return false;
        }
        let pod = self.view.pod(&member.pod_uid);
        let (Some(pod), Ok(manager)) = (pod, self.view.manager(&member.pod_uid)) else {
            return false;
        };
        if is_on_another(manager, member) {
            return true;
        }
        let moved = manager.mounted != member.expected
            && Self::expected_now(pod, manager).is_ok_and(|now| now != member.expected);
        let late = || self.is_over_time(member, 1) && matches!(self.has_joined(member), Ok(false));
        moved && (!runs_as_asked(manager, member) || late())
    }

    /// Why a stranded member waits, and what a person can do about it.
    pub(super) fn way_out(
        &self,
        restart: &Restart,
        member: &Member,
        obstacle: Option<&Obstacle>,
    ) -> Blocker {
        let cluster = &self.snapshot.cluster;
        let (node, id) = (&member.node, &restart.request.id);
        let wanted = short(member.expected.as_deref().unwrap_or("that was mounted"));
        let manager = self.view.manager(&member.pod_uid).ok();
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
            // Nothing is asked for any more; a person's own hand ends a node's part.
            _ if cluster.deleting => {
                ways.push(format!("stop and start the engine of {node} by hand"));
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
    pub(super) fn is_well(&self, member: &Member) -> bool {
        let manager = self.view.manager(&member.pod_uid);
        manager.is_ok_and(|manager| runs_as_asked(manager, member))
            && matches!(self.has_joined(member), Ok(true))
    }
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
