//! Remembers configs and changes of them, and ends rolling restarts that a change of a config rules out. A
//! change that was given up is not retried automatically. Nodes are compared one by one: an id of the
//! wanted state of all nodes would be another one as soon as a node comes, goes, or cannot be read.

use std::collections::BTreeSet;

use crate::changes::{Changes, Check, refuse};
use crate::configs::beginning;
use crate::flow::member::update::frozen_update::planned_update;
use crate::flow::requests::{ended, is_own, last_of, next_try, remember, try_of, was_left_out};
use crate::flow::turn::TurnView;
use crate::ledger::{LedgerChange, OwnKind};
use crate::needs_coordinated::{
    needs_coordinated, needs_coordinated_between, template_needs_coordinated,
};
use crate::{
    Blocker, Code, Context, Ledger, Manager, MemberStep, OnConfigChange, Outcome, Pod, PodUpdate,
    Restart, Sources, Strategy, Tried, UpdateStep, annotation,
};
use stayput_api::checksum::Checksum;
use stayput_pod_update::Note;

/// Remembers the decisive settings of configs that engines are to run on. With a new one, those are
/// forgotten that no engine runs on any more.
pub(crate) fn remember_configs(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let seen = &context.snapshot.configs;
    if ledger.configs.contains(seen) {
        return Changes::default();
    }
    let used = used(context);
    // If an engine is not known now, its config may be known still.
    let may_be_used = |checksum: &str| used.as_ref().is_none_or(|used| used.contains(checksum));
    let renewed = ledger.configs.renewed(seen, may_be_used);
    if renewed == ledger.configs {
        return Changes::default();
    }
    Changes::of_ledger(LedgerChange::SetConfigs(renewed))
}

/// Remembers, for nodes that need no restart for a change, the config that theirs counts as.
pub(crate) fn remember_ignored_changes(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut all = ledger.ignored_changes.clone();
    let is_ignored = |pod: &&Pod| pod.ignores_change;
    for (runs_on, wanted) in context.index.pods().filter(is_ignored).filter_map(Pod::change) {
        all.add(runs_on, wanted);
    }
    if all.is_empty() {
        return Changes::default();
    }
    let used = used(context);
    let wanted: Option<BTreeSet<&str>> = context
        .index
        .pods()
        .map(|pod| match &pod.sources {
            Sources::Checksum(wanted) => Some(beginning(wanted)),
            // Absent sources may come back as they were.
            Sources::Unknown(_) | Sources::Absent(_) => None,
        })
        .collect();
    all.retain(|runs_on, counts_as| {
        used.as_ref().is_none_or(|used| used.contains(runs_on))
            && wanted.as_ref().is_none_or(|wanted| wanted.contains(counts_as))
    });
    if all == ledger.ignored_changes {
        return Changes::default();
    }
    Changes::of_ledger(LedgerChange::SetIgnoredChanges(all))
}

/// The configs that engines run on or may be started on, by the beginning of the checksum. `None`: a manager
/// is unknown.
fn used<'a>(context: &Context<'a>) -> Option<BTreeSet<&'a str>> {
    let of_pod = |pod: &'a Pod| {
        let manager = pod.manager.as_ref().ok()?;
        Some([manager.runs_on(), manager.mounted.as_ref(), manager.last_good.as_ref()])
    };
    let all: Option<Vec<_>> = context.index.pods().map(of_pod).collect();
    Some(all?.into_iter().flatten().flatten().map(|one| beginning(one)).collect())
}

/// Ends a rolling restart as soon as a node that waits for its turn could not be in one cluster
/// with the others afterwards.
pub(crate) fn end_one_by_one(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let Some(restart) = ledger.restart.as_ref().filter(|restart| restart.ending.is_none()) else {
        return changes;
    };
    if restart.request.strategy != Strategy::Rolling
        || context.snapshot.configs.are_alike(&ledger.configs)
    {
        return changes;
    }
    let may_be_stopped = |step| matches!(step, MemberStep::Scheduled | MemberStep::Restarting);
    // A node that is starting counts as well: it may be stopped as soon as one that runs.
    let waiting: Vec<&Pod> = restart
        .members
        .iter()
        .filter(|member| may_be_stopped(member.step))
        .filter_map(|member| context.index.pod(&member.pod_uid))
        .filter(|pod| !pod.ignores_change && pod.change().is_some())
        .collect();
    // An unknown answer is a person's own risk.
    if let Ok(Some(change)) = needs_coordinated(context, ledger, &waiting) {
        let reason = format!("{}: ask for a coordinated restart", change.sentence());
        changes.end_with(Outcome::Aborted, reason);
    }
    changes
}

/// Reason why a member that was stopped in a rolling restart must not be started on the config of its
/// sources: they have moved since, to a config with which it could not form one cluster with the others.
/// `None`: it may be started, or that is unknown and may be risked ([`may_be_risked`]).
pub(crate) fn why_not_started(view: &TurnView<'_, '_>, pod: &Pod) -> Option<String> {
    let TurnView { context, ledger, member, .. } = *view;
    let (Sources::Checksum(wanted), Some(expected)) = (&pod.sources, &member.expected) else {
        return None;
    };
    let restart = ledger.restart.as_ref()?;
    if restart.request.strategy != Strategy::Rolling
        || wanted == expected
        || context.snapshot.configs.are_alike(&ledger.configs)
    {
        return None;
    }
    match needs_coordinated_between(context, ledger, pod, expected, wanted) {
        Ok(change) => {
            change.map(|change| format!("{}: ask for a coordinated restart", change.sentence()))
        }
        Err(blocker) => (!may_be_risked(context, restart, &blocker)).then_some(blocker.message),
    }
}

/// Passes unless a rolling restart would take the node to a pod template or a config with which it could not
/// form one cluster with the others; or to a config of which that is unknown, unless this may be risked
/// ([`may_be_risked`]).
pub(crate) fn may_change_alone(view: &TurnView<'_, '_>, pod: &Pod, manager: &Manager) -> Check {
    let TurnView { context, ledger, restart, .. } = *view;
    if restart.request.strategy != Strategy::Rolling {
        return Ok(());
    }
    if let Some(update) = planned_update(context.policy, restart.request.strategy, pod)
        && let Ok(Some(change)) = template_needs_coordinated(context, ledger, pod, update)
    {
        refuse(Code::NeedsCoordinated, change.by_template(pod))?;
    }
    if context.snapshot.configs.are_alike(&ledger.configs) {
        return Ok(());
    }
    let from = manager.runs_on().or(manager.last_good.as_ref());
    let (Sources::Checksum(wanted), Some(from)) = (&pod.sources, from) else { return Ok(()) };
    match needs_coordinated_between(context, ledger, pod, from, wanted) {
        Ok(Some(change)) => refuse(Code::NeedsCoordinated, change.sentence()),
        Err(blocker) if !may_be_risked(context, restart, &blocker) => Err(blocker),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// True if a rolling restart goes on although it is unknown whether its nodes can change their config one by
/// one. A person's does: it is a person's own risk. One of ours does not; but with `rolling`, one by one was
/// asked for by name also where nobody can know.
fn may_be_risked(context: &Context<'_>, restart: &Restart, blocker: &Blocker) -> bool {
    let is_auto = context.policy.on_config_change == OnConfigChange::Auto;
    !is_own(restart) || (!is_auto && blocker.code == Code::PendingRestart)
}

/// How much of a checksum is kept, in characters: enough to tell a new one from thousands.
const KEPT: usize = 8;

/// Message about the earlier rollout of the change that a node lacks, and how that ended. `None`: there was
/// none, or it was done and has left out this node. `id`: that of the state that all nodes are to have now.
pub(crate) fn before(kind: OwnKind, ledger: &Ledger, id: &str, pod: &Pod) -> Option<String> {
    let (last, outcome) = last_of(ledger, kind)?;
    let verb = match kind {
        OwnKind::Configs => "rolled out",
        OwnKind::Templates => "carried out",
    };
    let message = || Some(format!("was {verb} as {last}, which {}", ended(outcome)));
    let Some(tried) = ledger.tried(kind).filter(|tried| tried.id == last) else {
        // A request of an earlier version: only its id is known.
        try_of(id, last)?;
        return if was_left_out(pod, last, outcome) { None } else { message() };
    };
    let wanted = wanted(kind, pod)?;
    let is_given_up = |one: &String| tried.given_up.contains(one);
    if !wanted.iter().all(|one| is_given_up(one) || tried.wanted.contains(one)) {
        return None;
    }
    if wanted.iter().any(is_given_up) {
        return Some("was given up before".to_owned());
    }
    if was_left_out(pod, last, outcome) { None } else { message() }
}

/// Remembers a request of ours for these nodes, and the changes that it is for.
pub(crate) fn remember_try(
    context: &Context<'_>,
    ledger: &Ledger,
    kind: OwnKind,
    id: &str,
    asked: &[&Pod],
) -> [LedgerChange; 2] {
    let mut tried = of_all(context, kind, id);
    if let Some((last, outcome)) = last_of(ledger, kind)
        && let Some(before) = ledger.tried(kind).filter(|before| before.id == last)
    {
        let asked: BTreeSet<String> =
            asked.iter().filter_map(|pod| wanted(kind, pod)).flatten().collect();
        let failed = before.wanted.iter().filter(|_| outcome != Some(Outcome::Done));
        let given_up = before.given_up.iter().chain(failed);
        // A node that is unknown now may still want it.
        let is_wanted = |one: &&String| tried.wanted.contains(*one) || !tried.unknown.is_empty();
        tried.given_up =
            given_up.filter(is_wanted).filter(|one| !asked.contains(*one)).cloned().collect();
        tried.wanted.retain(|one| !tried.given_up.contains(one));
    }
    [remember(context, id), LedgerChange::SetTried { kind, tried: Box::new(tried) }]
}

/// Remembers that all nodes have their wanted state.
pub(crate) fn remember_all(
    context: &Context<'_>,
    ledger: &Ledger,
    kind: OwnKind,
    id: String,
) -> [LedgerChange; 2] {
    let id = next_try(ledger, id);
    let tried = Box::new(of_all(context, kind, &id));
    [remember(context, &id), LedgerChange::SetTried { kind, tried }]
}

/// Updates the record of our last restart to the state that nodes want now. A state that was unknown when it
/// was requested counts as one that the restart was for. A state that the restart was for and that no node
/// wants any more, since it was reverted, is a change again when it comes back; but not if the restart
/// failed.
pub(crate) fn follow(
    context: &Context<'_>,
    ledger: &Ledger,
    kind: OwnKind,
) -> Option<LedgerChange> {
    let (last, outcome) = last_of(ledger, kind)?;
    let tried = ledger.tried(kind).filter(|tried| tried.id == last)?;
    let mut followed = tried.clone();
    if !tried.unknown.is_empty() {
        for pod in context.index.pods() {
            let name = short_of(&pod.node);
            if followed.unknown.contains(&name)
                && let Some(wanted) = wanted(kind, pod)
            {
                followed.unknown.remove(&name);
                followed.wanted.extend(wanted.into_iter().filter(|_| lacks(kind, pod)));
            }
        }
    }
    let mut pods = context.index.pods();
    let may_be_taken_back = outcome == Some(Outcome::Done)
        && !followed.wanted.is_empty()
        && followed.unknown.is_empty()
        && !pods.any(|pod| lacks(kind, pod));
    if may_be_taken_back {
        let wanted: BTreeSet<String> =
            context.index.pods().filter_map(|pod| wanted(kind, pod)).flatten().collect();
        followed.wanted.retain(|one| wanted.contains(one));
    }
    (followed != *tried).then(|| LedgerChange::SetTried { kind, tried: Box::new(followed) })
}

/// Record of a request for the changes that nodes lack now.
fn of_all(context: &Context<'_>, kind: OwnKind, id: &str) -> Tried {
    let mut tried = Tried { id: id.to_owned(), ..Tried::default() };
    for pod in context.index.pods().filter(|pod| lacks(kind, pod)) {
        match wanted(kind, pod) {
            Some(wanted) => tried.wanted.extend(wanted),
            None => drop(tried.unknown.insert(short_of(&pod.node))),
        }
    }
    tried
}

/// True if a node does not have its wanted state, or if that is unknown.
fn lacks(kind: OwnKind, pod: &Pod) -> bool {
    match kind {
        OwnKind::Configs => pod.checksums().is_none_or(|(runs_on, wanted)| runs_on != wanted),
        OwnKind::Templates => pod.update != Ok(None),
    }
}

/// Short checksums of the state that a node wants, if that is known now.
fn wanted(kind: OwnKind, pod: &Pod) -> Option<Vec<String>> {
    match kind {
        OwnKind::Configs => match &pod.sources {
            Sources::Checksum(wanted) => Some(vec![beginning_of(wanted)]),
            // Nobody follows a config without declared sources.
            Sources::Unknown(_) => Some(vec![]),
            Sources::Absent(_) => None,
        },
        OwnKind::Templates => {
            let update = pod.update.as_ref().ok()?;
            let live = || pod.live.as_ref().map(|live| live.revision.clone());
            let revision = update.as_ref().map(|update| update.to.clone()).or_else(live);
            let content = update.as_ref().and_then(content);
            Some(revision.iter().chain(&content).map(|text| short_of(text)).collect())
        }
    }
}

/// Note, as text, of the content that the containers of a pod are to read. A note of content that a container
/// has read already does not count.
pub(crate) fn content(update: &PodUpdate) -> Option<String> {
    if update.step <= UpdateStep::Relabel {
        return None;
    }
    let note = update.patch.annotations.get(annotation::CONTENT)?.wanted.as_deref()?;
    let note = Note::parse(note)?;
    // Another container does not read again what its init containers have read.
    let init = note.init.filter(|_| update.step == UpdateStep::Replace);
    // The record does not name the container.
    Note { restarts: 0, init, ..note }.text()
}

fn beginning_of(checksum: &str) -> String {
    let digits = checksum.strip_prefix("sha256:").unwrap_or(checksum);
    digits.chars().take(KEPT).collect()
}

fn short_of(text: &str) -> String {
    beginning_of(Checksum::of_contents([(text, &[][..])]).as_str())
}
