//! Changes of a manifest as edits of its text, and their way back.
//!
//! An edit adds, replaces or removes one child of a collection. Everything else keeps its bytes. The text that
//! stood there before is in the edit's [`Undo`], which finds its place by name: so it fits also
//! when other parts of the manifest were changed meanwhile.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::change::{Change, Path, Step, expected, wrapped};
use super::position::Position;
use super::{Kind, Node, one};

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

fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// The node at a path below an object.
pub(crate) fn find<'a>(root: &'a Node, object: &Path, at: &Path) -> Option<&'a Node> {
    let mut steps = object.0.iter().chain(&at.0);
    steps.try_fold(root, |node, step| node.child(index(node, step)?))
}

/// Index in a collection of the child that `step` means.
fn index(collection: &Node, step: &Step) -> Option<usize> {
    match step {
        Step::Index(index) => (*index < collection.items().len()).then_some(*index),
        Step::Key(key) => match &collection.kind {
            Kind::Mapping { entries, .. } => entries.iter().position(|entry| entry.key == *key),
            _ => None,
        },
        Step::Item { field, value } => collection.items().iter().position(|item| {
            item.get(field).is_some_and(|found| found.value().as_str() == Some(value))
        }),
    }
}

/// How to undo one edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Undo {
    /// Children that are taken out. A collection that has nothing else goes with them, up to one that
    /// was there empty.
    Added {
        at: Path,
        children: Vec<Step>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        empty: Option<Empty>,
    },
    Replaced {
        at: Path,
        child: Step,
        was: Was,
    },
    Removed {
        at: Path,
        child: Step,
        was: Was,
    },
}

/// A collection that existed and had no children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Empty {
    at: Path,
    child: Step,
    was: Was,
}

/// Text before the edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Was {
    text: String,
    index: usize,
    /// Column of the first line; absent in flow style.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl Was {
    fn new(place: Position<'_>, range: Range<usize>, index: usize) -> Result<Self, String> {
        let column = if place.collection.is_flow() { None } else { Some(place.column()?) };
        Ok(Self { text: place.text[range].to_owned(), index, column })
    }

    /// Value of the text as a child of a mapping or a list.
    fn value(&self, child: &Step) -> Result<Value, String> {
        let is_key = matches!(child, Step::Key(_));
        let source = match self.column {
            // A text that ends in `|+` has its last newline behind it.
            Some(_) if self.text.starts_with(['\n', '\r']) => self.text.clone() + "\n",
            Some(column) => format!("{}{}\n", " ".repeat(column), self.text),
            None => {
                let inner = self.text.trim().trim_matches(',');
                if is_key { format!("{{{inner}}}") } else { format!("[{inner}]") }
            }
        };
        let node = one(&source)?;
        Ok(node.child(0).map(Node::value).unwrap_or_default())
    }
}

impl Undo {
    /// The children that the edit has changed, each with its collection.
    pub(super) fn places(&self) -> Vec<(&Path, &Step)> {
        match self {
            Self::Added { at, children, .. } => children.iter().map(|child| (at, child)).collect(),
            Self::Replaced { at, child, .. } | Self::Removed { at, child, .. } => vec![(at, child)],
        }
    }

    /// The undo of an edit that created the collection `at` with this child, as `last` of the
    /// collection `around`.
    fn of_collection(self, at: &Path, child: &Step, around: &Path, last: &Step) -> Self {
        let empty = match self {
            Self::Added { empty, .. } => empty,
            Self::Replaced { was, .. } | Self::Removed { was, .. } => {
                Some(Empty { at: around.clone(), child: last.clone(), was })
            }
        };
        Self::Added { at: at.clone(), children: vec![child.clone()], empty }
    }
}

/// The text without the edit of an object. Children that are gone already are skipped.
pub(crate) fn undo(text: &str, object: &Path, undo: &Undo) -> Result<String, String> {
    match undo {
        Undo::Added { at, children, empty } => {
            children.iter().rev().try_fold(text.to_owned(), |text, child| {
                take_out(&text, object, at, child, empty.as_ref())
            })
        }
        Undo::Replaced { at, child, was } => put_back(text, object, at, child, was),
        Undo::Removed { at, child, was } => put_back(text, object, at, child, was),
    }
}

fn take_out(
    text: &str,
    object: &Path,
    at: &Path,
    child: &Step,
    empty: Option<&Empty>,
) -> Result<String, String> {
    if let Some(empty) = empty.filter(|empty| empty.at == *at && empty.child == *child) {
        return put_back(text, object, at, child, &empty.was);
    }
    let root = one(text)?;
    let Some(collection) = find(&root, object, at) else { return Ok(text.to_owned()) };
    let Some(index) = index(collection, child) else { return Ok(text.to_owned()) };
    if let (1, Some((around, last))) = (collection.len(), at.split()) {
        return take_out(text, object, &around, &last, empty);
    }
    let place = Position { text, collection };
    Ok(splice(text, place.with_separator(index)?, ""))
}

/// Puts the old text back: the same bytes, if they mean the same there as before. Otherwise, in an
/// object that was rewritten, such as by `kubectl get`, the same value.
fn put_back(
    text: &str,
    object: &Path,
    at: &Path,
    child: &Step,
    was: &Was,
) -> Result<String, String> {
    let root = one(text)?;
    let Some(collection) = find(&root, object, at) else { return Ok(text.to_owned()) };
    let place = Position { text, collection };
    let value = was.value(child)?;
    let (exact, anew) = match index(collection, child) {
        Some(index) => {
            let range = place.child(index)?;
            let anew = place.write(child, &value)?;
            (splice(text, range.clone(), &was.text), splice(text, range, &anew))
        }
        None => {
            let nth = was.index.min(collection.len());
            let gap = place.gap(nth)?;
            let (new, between) = (place.write(child, &value)?, place.separator()?);
            let (end, anew) = if nth < collection.len() {
                (place.start(nth)?, new + &between)
            } else {
                (place.end(nth - 1)?, between + &new)
            };
            (splice(text, gap..gap, &was.text), splice(text, end..end, &anew))
        }
    };
    let children = collection.len() + usize::from(index(collection, child).is_none());
    let is_right = one(&exact).is_ok_and(|root| {
        find(&root, object, at).is_some_and(|around| {
            let found = index(around, child).and_then(|index| around.child(index));
            around.len() == children && found.is_some_and(|found| found.value() == value)
        })
    });
    Ok(if is_right { exact } else { anew })
}
