//! The compensation of a member whose engine we stopped, or may have stopped: the config and the sequences
//! that bring it back, and its outcome.

use super::update::{rollback, step_of};
use crate::context::Context;
use crate::flow::answers::has_resumed;
use crate::{Action, Compensation, Ledger, Manager, Member, Outcome, Strategy, UpdateStep};
use stayput_api::{ConfigChoice, Desired, State};

/// Chooses how to bring a member back. With `rollback` on the last good config, unless that is mounted or the
/// engine still runs on its old config; otherwise on the mounted config. `needs_a_stop`: the pod is rolled
/// back first, for which a running engine is stopped.
pub(crate) fn compensation_for(
    member: &Member,
    manager: Option<&Manager>,
    rollback: bool,
    needs_a_stop: bool,
) -> Compensation {
    let above = manager.map_or(0, |manager| manager.sequence).max(member.start_sequence) + 1;
    let start = |config| Compensation { stop_sequence: None, start_sequence: above, config };
    let Some(manager) = manager else {
        // If the engine still runs, its manager refuses this start, and the engine stays as it is.
        // If it was stopped, it must be started on this config only.
        return start(if rollback { ConfigChoice::LastGood } else { ConfigChoice::Mounted });
    };
    let last_good = manager.last_good.as_ref().filter(|_| rollback);
    let is_stopped = manager.state == State::Stopped && manager.desired == Desired::Stopped;
    if needs_a_stop && !is_stopped && manager.sequence >= member.stop_sequence {
        let returns = last_good.is_some() && manager.mounted.as_ref() != last_good;
        let config = if returns { ConfigChoice::LastGood } else { ConfigChoice::Mounted };
        return Compensation { stop_sequence: Some(above), start_sequence: above + 1, config };
    }
    let Some(last_good) = last_good else {
        return start(ConfigChoice::Mounted);
    };
    match manager.state {
        // The engine runs: on its old config, or on the config of our start.
        State::Starting | State::Running => {
            let run = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
            let is_stopped_by_us =
                manager.sequence >= member.start_sequence || has_resumed(manager, member);
            if run == Some(last_good) || !is_stopped_by_us {
                return start(ConfigChoice::Mounted);
            }
            let config = ConfigChoice::LastGood;
            Compensation { stop_sequence: Some(above), start_sequence: above + 1, config }
        }
        // The engine is to be started again.
        State::Stopped
        | State::Stopping
        | State::Killing
        | State::Backoff
        | State::Failed
        | State::Stuck => {
            let is_mounted = manager.mounted.as_ref() == Some(last_good);
            start(if is_mounted { ConfigChoice::Mounted } else { ConfigChoice::LastGood })
        }
    }
}

/// True if members are brought back to the last good config: a coordinated restart turns back as a whole,
/// whatever the policy sets for single nodes (`rollback`).
pub(crate) fn rolls_back(rollback: bool, ledger: &Ledger) -> bool {
    let restart = ledger.restart.as_ref();
    rollback || restart.is_some_and(|one| one.request.strategy == Strategy::Coordinated)
}

/// The start that brings a member back.
pub(crate) fn start_of_compensation(member: &Member, back: &Compensation) -> Action {
    Action::Start {
        uid: member.pod_uid.clone(),
        sequence: back.start_sequence,
        checksum: None,
        config: back.config,
    }
}

/// The outcome of a member that comes back on this config: rolled back if that is the last good one, or if
/// its pod is as it was before an update for which it was stopped. Aborted in any case if we deleted the pod
/// to replace it, or if the apiserver refuses to roll the pod back.
pub(crate) fn outcome_of(context: &Context<'_>, member: &Member, config: ConfigChoice) -> Outcome {
    let pod = context.index.pod(&member.pod_uid);
    let is_stopped = match context.index.manager(&member.pod_uid) {
        Ok(manager) => manager.sequence >= member.stop_sequence,
        Err(_) => rollback::is_due_of(member, pod),
    };
    match config {
        _ if pod.is_none() && step_of(member) == UpdateStep::Replace => Outcome::Aborted,
        _ if member.is_not_set_back() => Outcome::Aborted,
        ConfigChoice::LastGood => Outcome::RolledBack,
        ConfigChoice::Mounted if is_stopped && rollback::has_undo(member) => Outcome::RolledBack,
        ConfigChoice::Mounted => Outcome::Aborted,
    }
}
