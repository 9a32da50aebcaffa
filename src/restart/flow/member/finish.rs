//! The end of a member in a restart.

use super::update::kept_heap;
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::engine::{allocation, record, voting};
use crate::ledger::RestartChange;
use crate::{Ending, Ledger, Member, MemberStep, Outcome, Reason, Strategy};

/// Finishes a member, and settles its debts.
pub(crate) fn finish_member(
    context: &Context<'_>,
    ledger: &Ledger,
    index: usize,
    member: &Member,
    ending: Ending,
) -> Changes {
    let uid = &member.pod_uid;
    let mut changes = Changes::default();
    changes.ledger.extend(allocation::release(context, ledger, uid));
    changes.ledger.extend(record::settle(context, ledger, uid));
    changes.ledger.extend(voting::settle(context, ledger, uid));
    let (reason, message) = match ending.outcome {
        Outcome::Done if ending.reason.is_empty() => {
            (Reason::NodeRestarted, format!("{} is back", member.node))
        }
        Outcome::Done => {
            (Reason::NodeRestarted, format!("{} is done: {}", member.node, ending.reason))
        }
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => (
            Reason::NodeRestartAborted,
            format!("{} ended as {}: {}", member.node, ending.outcome.as_str(), ending.reason),
        ),
    };
    changes.event(Some(uid), reason, message);
    if ending.outcome == Outcome::Done
        && let Some(kept) = kept_heap(context, member)
    {
        changes.event(Some(uid), Reason::HeapUnchanged, kept);
    }
    let restart = ledger.restart.as_ref();
    let all = restart.is_some_and(|one| one.request.strategy == Strategy::Coordinated);
    // A member that only waited is left out alone, unless the restart needs all of its nodes.
    if ending.outcome != Outcome::Done && (all || member.step != MemberStep::Scheduled) {
        changes.end_with(ending.outcome, format!("{}: {}", member.node, ending.reason));
    }
    let finished = match ending.outcome {
        Outcome::Done => member.clone().done(ending),
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered | Outcome::Superseded => {
            Member {
                step: MemberStep::Finished,
                compensation: None,
                ending: Some(ending),
                ..member.clone()
            }
        }
    };
    changes.change(RestartChange::SetMember { index, member: Box::new(finished) });
    changes
}
