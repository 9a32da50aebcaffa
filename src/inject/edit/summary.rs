//! The summary of an object's edits, for people: the fields that differ afterwards.

use serde_json::Value;

use super::Undo;
use super::path::{Path, Step};

/// One line for each difference at the places of the `edits`: those that lead to `after`, and those that had led to
/// `before`. A place with equal values is not named.
pub(crate) fn summary<'a>(
    before: &Value,
    after: &Value,
    edits: impl IntoIterator<Item = &'a Undo>,
) -> Vec<String> {
    let mut places: Vec<(&Path, &Step)> = Vec::new();
    for place in edits.into_iter().flat_map(Undo::places) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let mut lines: Vec<String> = Vec::new();
    let mut added_to = None;
    for (at, child) in places {
        let place = at.then(child.clone());
        match (value(before, &place), value(after, &place)) {
            (None, Some(_)) => {
                match lines.last_mut().filter(|_| added_to == Some(at)) {
                    Some(line) => *line += &format!(", {child}"),
                    None => lines.push(format!("adds to {at}: {child}")),
                }
                added_to = Some(at);
                continue;
            }
            (Some(before), Some(after)) if before != after => {
                lines.push(format!("replaces {place}"))
            }
            (Some(_), None) => lines.push(format!("removes {place}")),
            (Some(_), Some(_)) | (None, None) => continue,
        }
        added_to = None;
    }
    lines
}

fn value<'a>(object: &'a Value, place: &Path) -> Option<&'a Value> {
    place.0.iter().try_fold(object, |node, step| match step {
        Step::Key(key) => node.get(key),
        Step::Item { field, value } => {
            node.as_array()?.iter().find(|item| item[field.as_str()].as_str() == Some(value))
        }
        Step::Index(index) => node.get(index),
    })
}
