//! A member takes its slot: everything that its turn needs is written to the ledger at once. A zone is
//! restarted as a whole or not at all: its nodes get their slots in one write, and no node is stopped
//! before all can be.

use crate::changes::{Changes, Wait, Waits};
use crate::flow::answers::take_sequences_above;
use crate::flow::begin::{Candidates, is_owed_no_start};
use crate::flow::engine::{owe_protection, voting};
use crate::flow::member::give_back::not_just_given_back;
use crate::flow::member::replaced::until_started;
use crate::flow::member::update::frozen_update::freeze;
use crate::flow::member::update::step_of;
use crate::flow::observed::{describe_zone, expected_now};
use crate::flow::turn::TurnView;
use crate::index::NameSet;
use crate::ledger::{LedgerChange, RestartChange};
use crate::rules::{Evaluation, NAMED, StopImpact, list_names};
use crate::{
    Blocker, Code, Event, Ledger, Manager, Member, MemberStep, Node, Pod, Reason, UpdateStep,
};

/// Writes both sequences, the expected checksum, the old process, and the debts. If the engine need not
/// answer (`terms.without_engine`) and does not, there is no old process, and nothing is changed on the
/// engine.
pub(crate) fn begin(
    view: &TurnView<'_, '_>,
    pod: &Pod,
    manager: &Manager,
    terms: &StopImpact,
) -> Result<Changes, Blocker> {
    let TurnView { context, ledger, restart, index, member, .. } = *view;
    let engine = match context.index.engine() {
        Ok(engine) => Some(engine),
        Err(_) if terms.without_engine => None,
        Err(blocker) => return Err(blocker),
    };
    is_owed_no_start(context, ledger, pod)?;
    let expected = expected_now(pod, manager)?;
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
    changes.set_member(index, begun);
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

/// A pod that may not be stopped, with its blocker.
type Blocked<'a> = (&'a Pod, Blocker);

/// Gives all candidates their slots in one write, if they pass every rule together.
pub(crate) fn begin_zone(candidates: &Candidates<'_, '_>) -> Result<Changes, Waits> {
    if !candidates.are_listed() {
        return Err(wait_for_pods(candidates));
    }
    let block_all = |blocked: Vec<Blocked<'_>>| blocked_as_a_whole(candidates, &blocked);
    let judged = judge_together(candidates).map_err(block_all)?;
    not_just_given_back(candidates.context, candidates.restart)
        .map_err(|blocker| candidates.wait(&blocker))?;
    let mut changes = Changes::default();
    for (pod, (manager, terms)) in candidates.pods.iter().copied().zip(judged) {
        let begun = begin(&candidates.view(pod), pod, manager, &terms);
        changes.merge(begun.map_err(|blocker| block_all(vec![(pod, blocker)]))?);
    }
    Ok(changes)
}

/// Reasons to wait for the pods of the zone that are gone: a node whose pod is being replaced still belongs
/// to its zone, so the zone waits for it.
fn wait_for_pods(candidates: &Candidates<'_, '_>) -> Waits {
    let Candidates { context, restart, .. } = candidates;
    let gone = restart.members.iter().filter(|member| {
        member.step == MemberStep::Scheduled && context.index.pod(&member.pod_uid).is_none()
    });
    let gone: Vec<&str> = gone.map(|member| member.node.as_str()).collect();
    let message = format!(
        "{} is restarted as a whole or not at all, and the pod of {} is gone: waits for the one in its place",
        describe_zone(restart),
        list_names(&gone)
    );
    candidates.wait(&Blocker { code: Code::PodGone, message })
}

/// Checks the candidates as one batch: their managers and the impact of their stops, or all blocked
/// candidates.
fn judge_together<'a>(
    candidates: &Candidates<'_, 'a>,
) -> Result<Vec<(&'a Manager, StopImpact)>, Vec<Blocked<'a>>> {
    let Candidates { context, ledger, restart, pods, .. } = candidates;
    let uids: NameSet<'_> = pods.iter().map(|pod| pod.uid.as_str()).collect();
    let evaluation = Evaluation::of(&context.index, ledger, context.policy, &uids);
    let mut managers = Vec::with_capacity(pods.len());
    let mut blocked = Vec::new();
    for pod in pods.iter().copied() {
        let judged = context.preflight(pod).and_then(|manager| {
            let evaluation = evaluation.as_ref().map_err(Blocker::clone)?;
            evaluation.check_rules(pod, restart.request.strategy)?;
            until_started(context, restart, pod, manager)?;
            Ok((manager, StopImpact::of(pod, evaluation)))
        });
        match judged {
            Ok(manager) => managers.push(manager),
            Err(blocker) => blocked.push((pod, blocker)),
        }
    }
    if blocked.is_empty() { Ok(managers) } else { Err(blocked) }
}

/// Reasons to wait for every node of the zone, with the smaller step that would be possible.
fn blocked_as_a_whole(candidates: &Candidates<'_, '_>, blocked: &[Blocked<'_>]) -> Waits {
    let Some((_, first)) = blocked.first() else { return Waits::new() };
    let zone = describe_zone(candidates.restart);
    let alone = one_by_one(candidates);
    let nodes: Vec<&str> = blocked.iter().map(|(pod, _)| pod.node.as_str()).collect();
    let nodes = list_names(&nodes);
    let whole = format!(
        "{zone} is restarted as a whole or not at all, and {} of its {} nodes may not be stopped now: \
         {nodes} ({}: {}); \
         {alone}",
        blocked.len(),
        candidates.pods.len(),
        first.code.as_str(),
        first.message
    );
    let mut waits = vec![Wait::cluster(first.code, whole)];
    waits.extend(blocked.iter().map(|(pod, blocker)| Wait::pod(&pod.uid, blocker.clone())));
    let message = format!(
        "could be stopped, but {zone} is restarted as a whole or not at all, and {nodes} may not"
    );
    waits.extend(candidates.wait(&Blocker { code: Code::NotItsTurn, message }));
    waits
}

/// Names, for messages, the candidates that could be restarted one after the other.
fn one_by_one(candidates: &Candidates<'_, '_>) -> String {
    let Candidates { context, ledger, restart, pods, .. } = candidates;
    // As if each node had its own request: otherwise it would wait for the other nodes of the zone.
    let ledger = Ledger {
        kept_stopped: ledger.kept_stopped.clone(),
        debts: ledger.debts.clone(),
        ..Ledger::default()
    };
    let Ok(evaluation) = context.evaluate(&ledger) else {
        return "the engine has to answer first".into();
    };
    let may = |pod: &&&Pod| {
        context.preflight(pod).is_ok()
            && evaluation.check_rules(pod, restart.request.strategy).is_ok()
    };
    let may: Vec<&str> = pods.iter().filter(may).map(|pod| pod.node.as_str()).collect();
    if may.is_empty() {
        return "none of them could be stopped alone now either".into();
    }
    let named: Vec<String> = may.iter().take(NAMED).map(|node| format!("--node {node}")).collect();
    let more = match may.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("a smaller step that is possible now: {}{more}, one after the other", named.join(" "))
}
