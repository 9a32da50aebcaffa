//! What people and the spec ask for: requests on the SearchCluster, phases on pods, changed configs.
//! What is accepted is in the ledger, once, by its id, whatever the annotation says later.

pub(super) mod accept;
pub(super) mod cancel;
pub(super) mod drift;
pub(super) mod open;
pub(super) mod people;
pub(super) mod policy_names;

use crate::changes::Changes;
use crate::{Code, Reason};

/// Reports that something a person wrote cannot be understood, and leaves it.
fn ignore_input(pod: Option<&str>, message: String) -> Changes {
    let mut changes = Changes::default();
    match pod {
        Some(uid) => changes.wait(uid, Code::InvalidInput, message.clone()),
        None => changes.wait_all(Code::InvalidInput, message.clone()),
    }
    changes.event(pod, Reason::InputIgnored, message);
    changes
}
