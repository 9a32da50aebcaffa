//! Engines that run and have no master are not repaired by waiting: their certificates have expired, or
//! their config lets them find nobody. A coordinated restart whose request allows an outage begins then
//! without an answer of the engine: nothing is left that it could take from the cluster.

use super::active;
use crate::changes::Changes;
use crate::context::Context;
use crate::ledger::RestartChange;
use crate::{Code, Restart};

/// Whether a coordinated restart needs an engine with a master to begin.
pub(super) enum Master {
    Needed,
    /// There is none, which the request may allow soon: what to do now.
    Awaited(Box<Changes>),
    /// There has been none for the time of a phase, and the request allows an outage.
    Waived,
}

/// Whether this restart needs an engine with a master to begin. The time without one counts from when it
/// was seen, which is written to the ledger.
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
