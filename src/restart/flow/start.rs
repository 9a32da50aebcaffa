//! The `start` phase of one node: from stopped to proven in the cluster.

use super::member::was_refused;
use super::{Move, wait};
use crate::planner::Planner;
use crate::{Action, Code, Ending, Manager, Member, Pod};
use stayput_api::{ConfigChoice, State};

impl Planner<'_> {
    /// Our stop was taken; from here to the start that is answered.
    pub(super) fn start_again(&mut self, member: &Member, pod: &Pod, manager: &Manager) -> Move {
        if self.is_over_time(member, 2) {
            return Move::Abort(format!("not started in time: {}", told(manager)));
        }
        if manager.state != State::Stopped {
            if self.is_over_time(member, 1) && !is_ending(manager.state) {
                return Move::Abort(format!("not stopped in time: {}", told(manager)));
            }
            return wait(Code::Stopping, format!("its engine is {}", manager.state.as_str()));
        }
        if self.lists_old_process(member) {
            return wait(Code::StillListed, "stopped, but the cluster still lists its old process");
        }
        if let Some(turn) = self.until_mounted(member, pod, manager, true) {
            return turn;
        }
        self.tell_to_start(member)
    }

    /// Our start of a member, on what it is expected to be started with.
    pub(super) fn tell_to_start(&mut self, member: &Member) -> Move {
        self.act(Action::Start {
            uid: member.pod_uid.clone(),
            sequence: member.start_sequence,
            checksum: member.expected.clone(),
            config: ConfigChoice::Mounted,
        });
        Move::Acted
    }

    /// Our start was judged; from here to the proof that a new process serves.
    pub(super) fn prove(&mut self, member: &Member, pod: &Pod, manager: &Manager) -> Move {
        if was_refused(manager, member.start_sequence) {
            // Nothing was started. The same request is judged afresh.
            return self.start_again(member, pod, manager);
        }
        if let Some(reason) = failing(manager, member) {
            return Move::Abort(reason);
        }
        if self.is_over_time(member, 2) {
            return Move::Abort(format!("not back in time: {}", told(manager)));
        }
        match self.has_joined(member) {
            Err(turn) => return turn,
            Ok(false) => return wait(Code::Joining, "started; the cluster does not list it yet"),
            Ok(true) => {}
        }
        if manager.state != State::Running || manager.ready == Some(false) {
            return wait(Code::NotReady, "it has joined and is not ready yet");
        }
        match self.clean_up(member) {
            Some(turn) => turn,
            None => Move::Finish(Ending::done()),
        }
    }

    /// Whether the cluster lists a new process of this node.
    pub(super) fn has_joined(&self, member: &Member) -> Result<bool, Move> {
        self.view.engine().map_err(Move::Wait)?;
        Ok(self.lists_new_process(member))
    }

    /// The same, where an engine that cannot be asked lists nobody.
    pub(super) fn lists_new_process(&self, member: &Member) -> bool {
        let node = self.view.node(&member.node);
        node.is_some_and(|node| member.ephemeral_id.as_ref() != Some(&node.ephemeral_id))
    }

    /// Whether the cluster lists the process that the member had before its turn. An engine that
    /// cannot be asked (it may have been this one) says nothing against the manager's word.
    pub(super) fn lists_old_process(&self, member: &Member) -> bool {
        let node = self.view.node(&member.node);
        node.is_some_and(|node| member.ephemeral_id.as_ref() == Some(&node.ephemeral_id))
    }
}

/// Why a start that was accepted has failed, if it has.
pub(super) fn failing(manager: &Manager, member: &Member) -> Option<String> {
    match manager.state {
        State::Failed | State::Backoff => {
            let exit = manager.last_exit.as_ref();
            let code = exit.map_or(String::new(), |exit| format!(" with code {}", exit.code));
            let why = manager.reason.as_deref();
            Some(why.map_or_else(
                || format!("the engine ended{code} before it was back"),
                str::to_owned,
            ))
        }
        State::Starting | State::Running => {
            let run = manager.run.as_ref()?;
            (member.expected.is_some() && run.checksum != member.expected).then(|| {
                format!(
                    "its engine runs with {}, not with {}",
                    run.checksum.as_deref().unwrap_or("a config that is not certain"),
                    member.expected.as_deref().unwrap_or_default()
                )
            })
        }
        // Between the answer and the spawn, or on the way down by somebody's hand.
        State::Stopped | State::Stopping | State::Killing | State::Stuck => None,
    }
}

/// Whether the state leads to stopped by itself.
pub(super) const fn is_ending(state: State) -> bool {
    matches!(state, State::Stopping | State::Killing)
}

/// The manager's own word on its engine.
pub(super) fn told(manager: &Manager) -> String {
    let state = format!("its engine is {}", manager.state.as_str());
    manager.reason.as_ref().map_or(state.clone(), |why| format!("{state}: {why}"))
}
