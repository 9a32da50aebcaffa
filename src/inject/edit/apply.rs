//! Applies changes to the text of a manifest.

use std::ops::Range;

use serde_json::Value;

use super::expected::{expected, wrapped};
use super::path::{Path, Step};
use super::position::Position;
use super::undo::{Undo, Was};
use super::{Change, find, index};
use crate::yaml::{Node, one};

/// The text with the change of the object, and its undo; `None` if there is nothing to change.
///
/// The new text is parsed again and must have the old values, with the change and nothing else. A text
/// that cannot be edited that way, for instance because an alias refers to the place, is an error.
pub(crate) fn apply(
    text: &str,
    object: &Path,
    change: &Change,
) -> Result<Option<(String, Undo)>, String> {
    let root = one(text)?;
    let before = root.value();
    let after = expected(before.clone(), object, change);
    if after == before {
        return Ok(None);
    }
    let done = match change {
        Change::Put { at, child, value } => Some(put(text, &root, object, at, child, value)?),
        Change::Remove { at, child } => remove(text, &root, object, at, child)?,
    };
    let Some((new, undo)) = done else { return Ok(None) };
    if one(&new)?.value() != after {
        return Err("its text cannot be edited there without changing something else".to_owned());
    }
    Ok(Some((new, undo)))
}

fn put(
    text: &str,
    root: &Node,
    object: &Path,
    at: &Path,
    child: &Step,
    value: &Value,
) -> Result<(String, Undo), String> {
    let collection = find(root, object, at).filter(|collection| collection.len() > 0);
    let Some(collection) = collection else {
        // The collection is made together with its first child.
        let (around, last) = at.split().ok_or("the document is empty")?;
        let (text, undo) = put(text, root, object, &around, &last, &wrapped(child, value))?;
        return Ok((text, undo.of_collection(at, child, &around, &last)));
    };
    let place = Position { text, collection };
    let new = place.write(child, value)?;
    if let Some(index) = index(collection, child) {
        let range = place.child(index)?;
        let was = Was::new(place, range.clone(), 0)?;
        let undo = Undo::Replaced { at: at.clone(), child: child.clone(), was };
        return Ok((splice(text, range, &new), undo));
    }
    let end = place.end(collection.len() - 1)?;
    let undo = Undo::Added { at: at.clone(), children: vec![child.clone()], empty: None };
    Ok((splice(text, end..end, &(place.separator()? + &new)), undo))
}

fn remove(
    text: &str,
    root: &Node,
    object: &Path,
    at: &Path,
    child: &Step,
) -> Result<Option<(String, Undo)>, String> {
    let Some(collection) = find(root, object, at) else { return Ok(None) };
    let Some(index) = index(collection, child) else { return Ok(None) };
    let place = Position { text, collection };
    let range = place.with_separator(index)?;
    let was = Was::new(place, range.clone(), index)?;
    let undo = Undo::Removed { at: at.clone(), child: child.clone(), was };
    Ok(Some((splice(text, range, ""), undo)))
}

pub(super) fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}
