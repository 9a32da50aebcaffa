//! Restarts a cluster whose engines run and have no master. Waiting does not repair it: the certificates have
//! expired, or the config lets the engines find nobody. A coordinated restart whose request allows an outage
//! then begins without an answer of the engine: it can take nothing more from the cluster.

use super::active;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::RestartChange;
use crate::{Code, Restart};

/// The need of a coordinated restart for an engine with a master, to begin.
pub(super) enum Master {
    Needed,
    /// Not decided yet: the changes that record since when there is no master, or that wait for one.
    Awaited(Box<Changes>),
    /// There has been no master for a phase, and the request allows an outage.
    Waived,
}

/// Decides if this restart needs an engine with a master to begin. The time without a master counts from the
/// plan that first found none, which is written to the ledger.
pub(super) fn master(context: &Context<'_>, restart: &Restart) -> Master {
    let is_without = context.snapshot.no_master && context.index.engine().is_err();
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    match restart.stuck_since {
        _ if !restart.request.allow_outage => Master::Needed,
        Some(_) if !is_without => {
            Master::Awaited(Box::new(Changes::of_ledger(RestartChange::SetStuck(None))))
        }
        None if !is_without => Master::Needed,
        None => Master::Awaited(Box::new(Changes::of_ledger(RestartChange::SetStuck(Some(now))))),
        Some(since) if now.since(since) >= phase => Master::Waived,
        Some(since) => {
            let mut changes = Changes::default();
            let message = format!(
                "the engines run and have no master; if none is elected until {}, all nodes are \
                 restarted without one",
                since.plus(phase)
            );
            for (_, member) in active(restart) {
                changes.wait(&member.pod_uid, Code::EngineUnreachable, message.clone());
            }
            changes.wait_all(Code::EngineUnreachable, message);
            Master::Awaited(Box::new(changes))
        }
    }
}
