//! Requests of people and of the spec: on the SearchCluster, as phases on pods, by changed configs. An
//! accepted request is in the ledger once, by its id, whatever the annotation contains later. A restart
//! begins with all of its members in the ledger, and none of them has a slot. Ids of requests of the
//! reconciler are made here, too.

pub(crate) mod configs;
pub(crate) mod drift;
pub(crate) mod operator_phases;
pub(crate) mod pod_phases;
pub(crate) mod put_back;
pub(crate) mod update;

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::flow::coordinated::supersede::why_not_superseded;
use crate::flow::finish::{record_end, record_unbegun};
use crate::flow::member::update::frozen_update::is_for_updates;
use crate::flow::observed::is_deleted_with_its_pods;
use crate::flow::requests::configs::remember_try;
use crate::flow::requests::drift::is_for_configs;
use crate::flow::requests::pod_phases::{
    BY_PHASE, adopt_older_phase, forget_kept_phase, keep_phase, phase_comes_back,
};
use crate::flow::target::members_of;
use crate::ledger::{LedgerChange, OwnKind};
use crate::{
    Action, Blocker, Code, Context, Ending, LastRestart, Ledger, MAX_HANDLED, Outcome, Phase, Pod,
    Reason, Request, Restart, Strategy, Target, annotation,
};

/// True if the reconciler requested this restart itself, for changed templates or configs.
pub(crate) fn is_own(restart: &Restart) -> bool {
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

/// Ends the restart under way and the queued request of a SearchCluster that is being deleted: it accepts
/// nothing any more.
pub(crate) fn end_for_deletion(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    if is_deleted_with_its_pods(context) {
        // There is no node left to wait for, and no debt left that could be paid.
        if let Some(restart) = &ledger.restart {
            let reason = "the SearchCluster was deleted together with its pods".to_owned();
            let ending = Ending { outcome: Outcome::Aborted, reason };
            changes.merge(record_end(context, restart, ending, restart.done().count(), None));
            changes.change(LedgerChange::CloseRestart);
        }
        changes.change(LedgerChange::ForgetDebts);
        return changes;
    }
    if ledger.restart.is_some() {
        changes.end_with(Outcome::Aborted, "the SearchCluster is being deleted");
    }
    if ledger.queued.is_some() {
        changes.change(LedgerChange::SetQueued(None));
    }
    changes
}

/// Replaces a phase on the SearchCluster by a request, so that it is accepted only once.
pub(crate) fn claim_phase(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let cluster = &context.snapshot.cluster;
    let Some(written) = cluster.annotations.get(annotation::PHASE) else {
        return forget_kept_phase(ledger);
    };
    if ledger.kept_phase.as_ref() == Some(written) {
        return Changes::default();
    }
    if !cluster.has_status {
        return adopt_older_phase(written);
    }
    let strategy = match requested_strategy(written, "the SearchCluster") {
        Ok(strategy) => strategy,
        Err(why) => return ignore_input(None, why),
    };
    if phase_comes_back(ledger, strategy) {
        return keep_phase(context, written);
    }
    let request = request_by_phase(context, strategy, BY_PHASE.to_owned());
    if cluster.phase_applied_by.is_some() {
        let mut changes = keep_phase(context, written);
        changes.merge(accept_new(context, ledger, request));
        return changes;
    }
    Changes::action(Action::ClaimTrigger { phase: written.clone(), request })
}

/// The strategy that a phase on an object asks for, or why it asks for nothing. `object`: for people.
fn requested_strategy(written: &str, object: &str) -> Result<Strategy, String> {
    let phase = Phase::parse(written).map_err(|unknown| unknown.to_string())?;
    let strategy = phase.asks_for().filter(|_| phase.is_scheduled());
    strategy.ok_or_else(|| {
        format!(
            "{} on {object} asks for nothing: write schedule, schedule-rolling or schedule-coordinated",
            phase.as_str()
        )
    })
}

/// The request of a phase on an object; `by`: where it stands, for people.
fn request_by_phase(context: &Context<'_>, strategy: Strategy, by: String) -> Request {
    let id = context.snapshot.fresh_id.clone();
    Request { id, strategy, by: Some(by), ..Request::default() }
}

/// Accepts the request on the SearchCluster, once.
pub(crate) fn accept_request(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let cluster = &context.snapshot.cluster;
    let Some(text) = cluster.annotations.get(annotation::REQUEST) else {
        return Changes::default();
    };
    match Request::parse(text) {
        Ok(request) if ledger.has_handled(&request.id) => keep_in_mind(context, ledger, &request),
        Ok(request) => accept_new(context, ledger, request),
        Err(error) => ignore_input(None, error.to_string()),
    }
}

/// Remembers a known request anew before its id is forgotten. One that stays on the SearchCluster, or comes
/// back there, is never forgotten, however many others are made meanwhile.
fn keep_in_mind(context: &Context<'_>, ledger: &Ledger, request: &Request) -> Changes {
    let newer = ledger.handled.iter().rev().take_while(|id| **id != request.id).count();
    if newer < MAX_HANDLED / 2 {
        Changes::default()
    } else {
        Changes::of_ledger(remember(context, &request.id))
    }
}

fn accept_new(context: &Context<'_>, ledger: &Ledger, request: Request) -> Changes {
    if context.snapshot.cluster.has_status {
        begin_or_queue(context, ledger, request)
    } else {
        adopt_request(context, &request)
    }
}

/// Remembers a request that is older than the status, without carrying it out: it was made before the
/// reconciler was there.
fn adopt_request(context: &Context<'_>, request: &Request) -> Changes {
    let mut changes = Changes::of_ledger(remember(context, &request.id));
    let message =
        format!("Request {} is older than this SearchCluster's status: ignored", request.id);
    changes.event(None, Reason::RequestAdopted, message);
    changes
}

/// Begins a request, or lets it wait for the one under way.
fn begin_or_queue(context: &Context<'_>, ledger: &Ledger, request: Request) -> Changes {
    let mut changes = Changes::of_ledger(remember(context, &request.id));
    let waits = ledger.restart.is_some() || waits_for_engine(context, &request).is_some();
    if let Some(replaced) = ledger.queued.as_ref().filter(|_| waits) {
        let reason = format!("request {} took its place in the queue", request.id);
        changes.change(record_unbegun(context, replaced, Outcome::Superseded, reason));
    }
    match ledger.restart {
        None => changes.merge(open(context, request)),
        Some(_) => changes.change(LedgerChange::SetQueued(Some(request))),
    }
    changes
}

/// Reports once that a request waits in the queue.
pub(crate) fn report_queued(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let (Some(queued), Some(restart)) = (&ledger.queued, &ledger.restart) else { return changes };
    if context.snapshot.ledger.queued.as_ref() != Some(queued) {
        let mut message = format!("Request {} waits for the restart under way", queued.id);
        if let Some(obstacle) = why_not_superseded(context, ledger, restart) {
            message = format!("{message} and does not take its place: {}", obstacle.message);
        }
        changes.event(None, Reason::RestartQueued, message);
    }
    changes
}

/// Begins the request in the queue once nothing is under way.
pub(crate) fn open_queued(context: &Context<'_>, ledger: &Ledger) -> Changes {
    match (&ledger.restart, &ledger.queued) {
        (None, Some(queued)) => {
            let mut changes = Changes::of_ledger(LedgerChange::SetQueued(None));
            changes.merge(open(context, queued.clone()));
            changes
        }
        (Some(_), _) | (None, None) => Changes::default(),
    }
}

/// Accepts a cancel on the SearchCluster. Once it is in the ledger, the annotation is removed.
pub(crate) fn accept_cancel(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(id) = context.snapshot.cluster.annotations.get(annotation::CANCEL) else {
        return changes;
    };
    if let Some(queued) = ledger.queued.as_ref().filter(|queued| queued.id == *id) {
        changes.change(LedgerChange::SetQueued(None));
        let reason = "cancelled before it began".into();
        changes.change(record_unbegun(context, queued, Outcome::Aborted, reason));
        return changes;
    }
    let clear = Action::ClearAnnotation { key: annotation::CANCEL.to_owned(), value: id.clone() };
    let restart = ledger.restart.as_ref().filter(|restart| restart.request.id == *id);
    match restart.filter(|restart| restart.ending.is_none()) {
        // Ended, cancelled already, or unknown: nothing is left to do.
        None => changes.act(clear),
        Some(restart) => match restart.why_not_cancellable() {
            Some(why) => {
                let message = format!("Restart {id} cannot be cancelled any more: {why}");
                changes.event(None, Reason::InputIgnored, message);
                changes.act(clear);
            }
            None => changes.end_with(Outcome::Aborted, "cancelled"),
        },
    }
    changes
}

/// Id of a change: its kind, and a short checksum of the wanted contents by name.
pub(crate) fn short_id(kind: OwnKind, wanted: Vec<(&str, &[u8])>) -> String {
    let checksum = stayput_api::checksum::Checksum::of_contents(wanted).to_string();
    let short: String = checksum.trim_start_matches("sha256:").chars().take(16).collect();
    format!("{}-{short}", kind.name())
}

/// Number of the request with the id `handled`, from 1, if it is one for the change `id`.
pub(crate) fn try_of(id: &str, handled: &str) -> Option<u32> {
    match handled.strip_prefix(id)? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse().ok(),
    }
}

/// Id of the last request of a kind, and its outcome, if the history still has it.
pub(crate) fn last_of(ledger: &Ledger, kind: OwnKind) -> Option<(&str, Option<Outcome>)> {
    let is_of_kind =
        |id: &&String| id.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with('-'));
    let last = ledger.handled.iter().rev().find(is_of_kind)?;
    let entry = ledger.history.iter().rev().find(|entry| entry.id == *last);
    Some((last, entry.map(|entry| entry.outcome)))
}

/// The id under which a change is requested next: a repeated one has its own id, `config-…-2`.
pub(crate) fn next_try(ledger: &Ledger, id: String) -> String {
    match ledger.handled.iter().filter_map(|handled| try_of(&id, handled)).max() {
        Some(times) => format!("{id}-{}", times + 1),
        None => id,
    }
}

/// How a request ended, for messages.
pub(crate) fn ended(outcome: Option<Outcome>) -> String {
    outcome.map_or("ended".to_owned(), |outcome| format!("ended as {}", outcome.as_str()))
}

/// True if the request `last`, with this outcome, left the pod out: others are done, and the pod's last
/// restart was not for this change.
pub(crate) fn was_left_out(pod: &Pod, last: &str, outcome: Option<Outcome>) -> bool {
    outcome == Some(Outcome::Done) && !has_been_tried(pod, last)
}

/// True if the last restart of the pod was a request of the same change.
pub(crate) fn has_been_tried(pod: &Pod, last: &str) -> bool {
    let first = first_of(last);
    let shown = pod.annotations.get(annotation::LAST_RESTART);
    shown
        .and_then(|text| serde_json::from_str::<LastRestart>(text).ok())
        .is_some_and(|shown| try_of(first, &shown.id).is_some())
}

/// The id of the first request of a change: `config-…` of `config-…-2`.
fn first_of(id: &str) -> &str {
    let parts = id.match_indices('-').nth(1);
    parts.map_or(id, |(at, _)| &id[..at])
}

/// Reports names in the policy that are unknown. The user may expect that a rule is disabled that
/// is still evaluated, or that a limit applies that limits nothing.
pub(crate) fn report_unknown_names(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    if let Some(message) = context.policy.disabled.unknown() {
        changes.event(None, Reason::InputIgnored, message);
    }
    // Only once, when a restart begins: later a role may be missing because its node is down.
    let begins = context.snapshot.ledger.restart.is_none() && ledger.restart.is_some();
    if begins && let Some(message) = unknown_roles(context) {
        changes.event(None, Reason::InputIgnored, message);
    }
    changes
}

/// Message about limits for roles that no node has. A node that is not listed, or lists no roles, may have
/// any: then nothing is reported.
fn unknown_roles(context: &Context<'_>) -> Option<String> {
    let limits = &context.policy.max_unavailable_of_role;
    if limits.is_empty() {
        return None;
    }
    let nodes: Option<Vec<_>> =
        context.index.pods().map(|pod| context.index.node(&pod.node)).collect();
    let nodes = nodes?;
    if nodes.iter().any(|node| node.roles_unknown) {
        return None;
    }
    let roles: BTreeSet<&str> =
        nodes.iter().flat_map(|node| &node.roles).map(String::as_str).collect();
    let is_known = |role: &str| match role {
        "master" | "cluster_manager" => {
            roles.contains("master") || roles.contains("cluster_manager")
        }
        role => roles.contains(role),
    };
    let unknown: Vec<&str> =
        limits.keys().map(String::as_str).filter(|role| !is_known(role)).collect();
    if unknown.is_empty() || roles.is_empty() {
        return None;
    }
    Some(format!(
        "spec.restart.maxUnavailableOfRole limits {}, a role that no node has: it limits \
         nothing; the nodes have the roles {}",
        unknown.join(", "),
        roles.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

/// The blocker of a request that selects nodes by role or zone while the engine, which alone knows these, is
/// unreachable.
fn waits_for_engine(context: &Context<'_>, request: &Request) -> Option<Blocker> {
    context.index.engine().err().filter(|_| request.target.is_by_engine())
}

/// Begins a restart of the nodes that the request selects.
pub(crate) fn open(context: &Context<'_>, request: Request) -> Changes {
    let mut changes = Changes::default();
    if let Some(blocker) = waits_for_engine(context, &request) {
        let message = format!("only the engine knows roles and zones: {}", blocker.message);
        changes.wait_all(blocker.code, message);
        changes.change(LedgerChange::SetQueued(Some(request)));
        return changes;
    }
    let members = match members_of(context, &request.target) {
        Ok(members) => members,
        Err(message) => {
            let skipped = format!("Request {} skipped: {message}", request.id);
            changes.event(None, Reason::RestartSkipped, skipped);
            changes.change(record_unbegun(context, &request, Outcome::Aborted, message));
            return changes;
        }
    };
    let mut message = format!(
        "Starting {} restart {} of {} node{}",
        request.strategy.as_str(),
        request.id,
        members.len(),
        if members.len() == 1 { "" } else { "s" }
    );
    if request.allow_outage {
        message += ", allowing an outage";
    }
    if !request.skip_rules.is_empty() {
        message = format!("{message}, without {}", request.skip_rules.join(", "));
    }
    changes.event(None, Reason::RestartStarted, message);
    let restart = Restart::new(request, context.snapshot.now, members);
    changes.change(LedgerChange::OpenRestart(Box::new(restart)));
    changes
}

/// Begins a restart of these nodes that we request ourselves, and remembers the changes that it is for. `id`:
/// that of the change.
pub(crate) fn open_own(
    context: &Context<'_>,
    ledger: &Ledger,
    kind: OwnKind,
    id: String,
    (strategy, by): (Strategy, String),
    pods: &[&Pod],
) -> Changes {
    let id = next_try(ledger, id);
    let mut changes = Changes::default();
    changes.ledger.extend(remember_try(context, ledger, kind, &id, pods));
    let (target, by) = (Target::of(pods), Some(by));
    let request = Request { id, strategy, target, by, ..Request::default() };
    changes.merge(open(context, request));
    changes
}

/// Remembers an accepted request. The id of the request that is still on the SearchCluster is never
/// dropped: otherwise it would count as a new request.
pub(crate) fn remember(context: &Context<'_>, id: &str) -> LedgerChange {
    let text = context.snapshot.cluster.annotations.get(annotation::REQUEST);
    let present = text.and_then(|text| Request::parse(text).ok());
    LedgerChange::RememberRequest { id: id.to_owned(), keep: present.map(|request| request.id) }
}
