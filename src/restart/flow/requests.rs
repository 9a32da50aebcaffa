//! Requests of people and of the spec: on the SearchCluster, as phases on pods, by changed configs.
//! An accepted request is in the ledger once, by its id, whatever the annotation contains later.

pub(super) mod accept;
pub(super) mod cancel;
pub(super) mod configs;
pub(super) mod drift;
mod given_up_changes;
pub(super) mod kept_phase;
mod never_started;
pub(super) mod old_phases;
pub(super) mod open;
mod own_ids;
pub(super) mod pod_phases;
pub(super) mod policy_names;
pub(super) mod update;

use crate::changes::Changes;
use crate::flow::member::update::is_for_updates;
use crate::{Code, Reason, Restart};
use drift::is_for_configs;

/// True if the reconciler requested this restart itself, for changed templates or configs.
pub(super) fn is_own(restart: &Restart) -> bool {
    is_for_updates(restart) || is_for_configs(restart)
}

/// Reports input of a person that cannot be understood, and leaves the input as it is.
fn ignore_input(pod: Option<&str>, message: String) -> Changes {
    let mut changes = Changes::default();
    match pod {
        Some(uid) => changes.wait(uid, Code::InvalidInput, message.clone()),
        None => changes.wait_all(Code::InvalidInput, message.clone()),
    }
    changes.event(pod, Reason::InputIgnored, message);
    changes
}
