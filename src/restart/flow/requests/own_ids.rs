//! Ids of restarts that the reconciler requests itself: one for each change, so that a change is
//! requested once, and numbered if it is requested again.

use crate::{LastRestart, Ledger, Outcome, Pod, annotation};

/// An id of this kind for what is wanted, by name.
pub(super) fn short_id(kind: &str, wanted: Vec<(&str, &[u8])>) -> String {
    let checksum = stayput_api::checksum::Checksum::of_contents(wanted).to_string();
    let short: String = checksum.trim_start_matches("sha256:").chars().take(16).collect();
    format!("{kind}-{short}")
}

/// Which request of this change an id is, from 1; none if it is of another change.
pub(super) fn try_of(id: &str, handled: &str) -> Option<u32> {
    match handled.strip_prefix(id)? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse().ok(),
    }
}

/// The request of its kind that was the last, and how it ended, if it was for this change. None if
/// the outcome is forgotten.
pub(super) fn last_try<'l>(ledger: &'l Ledger, id: &str) -> Option<(&'l str, Option<Outcome>)> {
    let kind = id.split_inclusive('-').next().unwrap_or_default();
    let last = ledger.handled.iter().rev().find(|handled| handled.starts_with(kind))?;
    try_of(id, last)?;
    let entry = ledger.history.iter().rev().find(|entry| entry.id == *last);
    Some((last, entry.map(|entry| entry.outcome)))
}

/// The id under which a change is requested next: one that comes back has an id of its own,
/// `config-…-2`.
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

/// Whether a request for this change that ended so left the pod out: others are done, and its last
/// restart was not for this change.
pub(super) fn was_left_out(pod: &Pod, id: &str, outcome: Option<Outcome>) -> bool {
    outcome == Some(Outcome::Done) && !has_been_tried(pod, id)
}

fn has_been_tried(pod: &Pod, id: &str) -> bool {
    let last = pod.annotations.get(annotation::LAST_RESTART);
    last.and_then(|text| serde_json::from_str::<LastRestart>(text).ok())
        .is_some_and(|last| try_of(id, &last.id).is_some())
}
