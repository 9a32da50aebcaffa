//! A member takes its slot: everything that its turn needs is written to the ledger at once.

use super::may_begin::is_owed_no_start;
use crate::changes::Changes;
use crate::context::Context;
use crate::flow::answers::take_sequences_above;
use crate::flow::engine::{allocation::owe_protection, voting};
use crate::flow::member::update::{freeze, step_of};
use crate::flow::observed::expected_now;
use crate::ledger::{LedgerChange, RestartChange};
use crate::rules::StopImpact;
use crate::{
    Blocker, Code, Event, Ledger, Manager, Member, MemberStep, Node, Pod, Reason, Restart,
    UpdateStep,
};

/// Writes both sequences, the expected checksum, the old process, and the debts. If the engine need not
/// answer (`terms.without_engine`) and does not, there is no old process, and nothing is changed on the
/// engine.
pub(crate) fn begin(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
    index: usize,
    pod: &Pod,
    manager: &Manager,
    terms: &StopImpact,
) -> Result<Changes, Blocker> {
    let engine = match context.index.engine() {
        Ok(engine) => Some(engine),
        Err(_) if terms.without_engine => None,
        Err(blocker) => return Err(blocker),
    };
    is_owed_no_start(context, ledger, pod)?;
    let expected = expected_now(pod, manager)?;
    let Some(member) = restart.members.get(index).filter(|one| one.pod_uid == pod.uid) else {
        let message = "it is not a member of this restart".into();
        return Err(Blocker { code: Code::NotItsTurn, message });
    };
    let node = context.index.node(&pod.node);
    let mut begun = member.clone();
    begun.step = MemberStep::Restarting;
    begun.since = context.snapshot.now;
    take_sequences_above(&mut begun, manager.sequence);
    begun.expected = expected;
    begun.ephemeral_id = node.map(|node| node.ephemeral_id.clone());
    begun.node_id = node.map(|node| node.id.clone());
    begun.master_eligible = node.is_some_and(Node::is_master_eligible);
    begun.roles = node.map(|node| node.roles.clone()).unwrap_or_default();
    begun.zone = node.and_then(|node| node.zone.clone());
    begun.update = freeze(context, restart, pod)?;
    let hands_over = voting::hands_over(context, ledger, terms)?;
    let mut changes = Changes::default();
    if let Some(engine) = engine {
        let request = &restart.request;
        match owe_protection(context, ledger, &request.id, request.strategy, &begun, engine) {
            Err(blocker) if terms.without_engine && blocker.code == Code::EngineUnreachable => {}
            owed => changes.ledger.extend(owed?),
        }
        if hands_over {
            changes.change(voting::owe_vote(&request.id, &begun));
        }
        if ledger.cluster_uuid.is_none() {
            changes.change(LedgerChange::SetClusterUuid(engine.cluster_uuid.clone()));
        }
    }
    changes.events.push(begun_event(&begun, &terms.describe(hands_over)));
    changes.change(RestartChange::SetMember { index, member: Box::new(begun) });
    changes.change(RestartChange::Begin(context.snapshot.now));
    Ok(changes)
}

/// Reports that the restart of a node begins, and what it costs.
pub(crate) fn begun_event(member: &Member, terms: &str) -> Event {
    let reason = if member.master_eligible {
        Reason::MasterRestartStarted
    } else {
        Reason::NodeRestartStarted
    };
    let message = format!("{}{terms}", describe(member));
    Event { pod: Some(member.pod_uid.clone()), reason, message }
}

/// Says how the node is restarted, and which changed fields ask for it.
fn describe(member: &Member) -> String {
    let node = &member.node;
    let because = match &member.update {
        Some(fixed) if !fixed.update.because.is_empty() => {
            format!(": {}", fixed.update.because.join("; "))
        }
        Some(_) | None => String::new(),
    };
    match step_of(member) {
        UpdateStep::Container => format!("Recreating the container of {node}{because}"),
        UpdateStep::Resize => format!("Resizing {node}{because}"),
        UpdateStep::Replace => format!("Replacing the pod of {node}{because}"),
        UpdateStep::None | UpdateStep::Relabel | UpdateStep::Restart | UpdateStep::Move => {
            format!("Restarting {node} in place{because}")
        }
    }
}
