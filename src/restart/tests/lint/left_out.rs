//! Nodes that a restart which the reconciler asks for itself leaves out before their turn.

use super::facts::Input;
use super::ledger_writes::should_be_stopped;
use super::updates;
use crate::{Restart, Sources, Strategy};
use stayput_api::State;

/// Whether the reconciler asks for it itself.
pub(super) fn is_own(restart: &Restart) -> bool {
    updates::is_for_updates(restart) || is_for_configs(restart)
}

/// Whether such a restart may leave this node out.
pub(super) fn may_be(facts: &Input, restart: &Restart, uid: &str) -> bool {
    if !is_for_configs(restart) {
        return updates::is_left_out(facts, restart, uid);
    }
    let is_needless =
        restart.request.strategy != Strategy::Coordinated && has_its_config(facts, uid);
    is_needless
        || is_started_later(facts, restart, uid)
        || facts.pod(uid).is_some_and(|pod| should_be_stopped(facts, pod))
}

fn is_for_configs(restart: &Restart) -> bool {
    let by = restart.request.by.as_deref();
    by.is_some_and(|by| by.starts_with("spec.restart.onConfigChange"))
}

/// It is down, and its start is owed on a config that others run on and its sources do not have.
fn is_started_later(facts: &Input, restart: &Restart, uid: &str) -> bool {
    let mut debts = facts.snapshot.ledger.debts.start.iter();
    let is_held = debts.any(|debt| debt.pod_uid == uid && debt.checksum.is_some());
    restart.request.strategy == Strategy::Coordinated && is_held
}

/// It runs, on what its sources have now.
fn has_its_config(facts: &Input, uid: &str) -> bool {
    let Some(Sources::Checksum(wanted)) = facts.pod(uid).map(|pod| &pod.sources) else {
        return false;
    };
    facts.manager(uid).filter(|manager| manager.state == State::Running).is_some_and(|manager| {
        let runs_on = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
        runs_on == Some(wanted)
    })
}
