//! Remembers changes that were rolled out before: one that was given up is not retried automatically. Nodes
//! are compared one by one. An id of the wanted state of all nodes would be another one as soon as a node
//! comes, goes, or cannot be read.

use std::collections::BTreeSet;

use super::open::remember;
use super::own_ids::{ended, last_of, next_try, try_of, was_left_out};
use crate::context::Context;
use crate::ledger::{LedgerChange, OwnKind, Tried};
use crate::{Ledger, Outcome, Pod, PodUpdate, Sources, UpdateStep, annotation};
use stayput_api::checksum::Checksum;
use stayput_pod_update::Note;

/// How much of a checksum is kept, in characters: enough to tell a new one from thousands.
const KEPT: usize = 8;

/// Message about the earlier rollout of the change that a node lacks, and how that ended. `None`: there was
/// none, or it was done and has left out this node. `id`: that of the state that all nodes are to have now.
pub(super) fn before(kind: OwnKind, ledger: &Ledger, id: &str, pod: &Pod) -> Option<String> {
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
pub(super) fn remember_try(
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
pub(super) fn remember_all(
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
pub(super) fn follow(
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
            Sources::Checksum(wanted) => Some(vec![beginning(wanted)]),
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
pub(super) fn content(update: &PodUpdate) -> Option<String> {
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

fn beginning(checksum: &str) -> String {
    let digits = checksum.strip_prefix("sha256:").unwrap_or(checksum);
    digits.chars().take(KEPT).collect()
}

fn short_of(text: &str) -> String {
    beginning(Checksum::of_contents([(text, &[][..])]).as_str())
}
