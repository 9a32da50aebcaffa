//! Ids of restarts that the reconciler requests itself: one for each change, so that a change is
//! requested once, and numbered if it is requested again.

use crate::ledger::OwnKind;
use crate::{LastRestart, Ledger, Outcome, Pod, annotation};

/// Id of a change: its kind, and a short checksum of the wanted contents by name.
pub(super) fn short_id(kind: OwnKind, wanted: Vec<(&str, &[u8])>) -> String {
    let checksum = stayput_api::checksum::Checksum::of_contents(wanted).to_string();
    let short: String = checksum.trim_start_matches("sha256:").chars().take(16).collect();
    format!("{}-{short}", kind.name())
}

/// Number of the request with the id `handled`, from 1, if it is one for the change `id`.
pub(super) fn try_of(id: &str, handled: &str) -> Option<u32> {
    match handled.strip_prefix(id)? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse().ok(),
    }
}

/// Id of the last request of a kind, and its outcome, if the history still has it.
pub(super) fn last_of(ledger: &Ledger, kind: OwnKind) -> Option<(&str, Option<Outcome>)> {
    let is_of_kind =
        |id: &&String| id.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with('-'));
    let last = ledger.handled.iter().rev().find(is_of_kind)?;
    let entry = ledger.history.iter().rev().find(|entry| entry.id == *last);
    Some((last, entry.map(|entry| entry.outcome)))
}

/// The id under which a change is requested next: a repeated one has its own id, `config-…-2`.
pub(super) fn next_try(ledger: &Ledger, id: String) -> String {
    match ledger.handled.iter().filter_map(|handled| try_of(&id, handled)).max() {
        Some(times) => format!("{id}-{}", times + 1),
        None => id,
    }
}

/// How a request ended, for messages.
pub(super) fn ended(outcome: Option<Outcome>) -> String {
    outcome.map_or("ended".to_owned(), |outcome| format!("ended as {}", outcome.as_str()))
}

/// True if the request `last`, with this outcome, left the pod out: others are done, and the pod's last
/// restart was not for this change.
pub(super) fn was_left_out(pod: &Pod, last: &str, outcome: Option<Outcome>) -> bool {
    outcome == Some(Outcome::Done) && !has_been_tried(pod, last)
}

/// True if the last restart of the pod was a request of the same change.
fn has_been_tried(pod: &Pod, last: &str) -> bool {
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
