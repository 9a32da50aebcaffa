//! Changes of single children, their places, and their effect on values.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::Undo;

/// A change of one child of a collection. Paths begin at the object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// Adds the child at the end, or replaces it. Missing collections are created.
    Put { at: Path, child: Step, value: Value },
    /// Removes the child, if it is there. At least one other child stays.
    Remove { at: Path, child: Step },
}

impl Change {
    pub(crate) fn put(at: &Path, child: Step, value: Value) -> Self {
        Self::Put { at: at.clone(), child, value }
    }

    pub(crate) fn remove(at: &Path, child: Step) -> Self {
        Self::Remove { at: at.clone(), child }
    }
}

/// One step from a collection to a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Key of a mapping.
    Key(String),
    /// Item of a list, with this value in this field.
    Item { field: String, value: String },
    /// Index in a list of objects: only on the way to an object.
    Index(usize),
}

impl Step {
    pub(crate) fn key(key: &str) -> Self {
        Self::Key(key.to_owned())
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::item("name", name)
    }

    pub(crate) fn item(field: &str, value: &str) -> Self {
        Self::Item { field: field.to_owned(), value: value.to_owned() }
    }

    /// Parses a step. An item is written `field=value`; no key here has a `=`.
    fn parse(text: &str) -> Self {
        match text.split_once('=') {
            Some((field, value)) => Self::item(field, value),
            None => Self::key(text),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => formatter.write_str(key),
            Self::Item { field, value } => write!(formatter, "{field}={value}"),
            Self::Index(index) => write!(formatter, "{index}"),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Path(pub(crate) Vec<Step>);

impl Path {
    /// The path through these keys.
    pub(crate) fn keys(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Step::key(key)).collect())
    }

    pub(crate) fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    pub(crate) fn join(&self, more: &Self) -> Self {
        Self(self.0.iter().chain(&more.0).cloned().collect())
    }

    /// The path of the surrounding collection, and the step from there.
    pub(crate) fn split(&self) -> Option<(Self, Step)> {
        let (last, rest) = self.0.split_last()?;
        Some((Self(rest.to_vec()), last.clone()))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if index == 0 => formatter.write_str(key)?,
                Step::Key(key) => write!(formatter, ".{key}")?,
                Step::Item { .. } | Step::Index(_) => write!(formatter, "[{step}]")?,
            }
        }
        Ok(())
    }
}

/// The value of the manifest after the change.
pub(super) fn expected(mut root: Value, object: &Path, change: &Change) -> Value {
    match change {
        Change::Put { at, child, value } => put(&mut root, &object.join(at), child, value),
        Change::Remove { at, child } => {
            if let Some(collection) = find_value(&mut root, &object.join(at)) {
                match (collection, child) {
                    (Value::Object(fields), Step::Key(key)) => drop(fields.remove(key)),
                    (Value::Array(items), step) => {
                        if let Some(index) = position(items, step) {
                            items.remove(index);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    root
}

fn put(root: &mut Value, at: &Path, child: &Step, value: &Value) {
    match (find_value(root, at), child) {
        (Some(Value::Object(fields)), Step::Key(key)) => {
            fields.insert(key.clone(), value.clone());
        }
        (Some(Value::Array(items)), step) => match position(items, step) {
            Some(index) => items[index] = value.clone(),
            None => items.push(value.clone()),
        },
        _ => {
            if let Some((around, last)) = at.split() {
                put(root, &around, &last, &wrapped(child, value));
            }
        }
    }
}

fn find_value<'a>(root: &'a mut Value, path: &Path) -> Option<&'a mut Value> {
    path.0.iter().try_fold(root, |node, step| match (node, step) {
        (Value::Object(fields), Step::Key(key)) => fields.get_mut(key),
        (Value::Array(items), step) => {
            let index = position(items, step)?;
            items.get_mut(index)
        }
        _ => None,
    })
}

fn position(items: &[Value], step: &Step) -> Option<usize> {
    match step {
        Step::Index(index) => Some(*index),
        Step::Item { field, value } => {
            items.iter().position(|item| item[field.as_str()].as_str() == Some(value))
        }
        Step::Key(_) => None,
    }
}

/// A collection that holds nothing but this child.
pub(super) fn wrapped(child: &Step, value: &Value) -> Value {
    match child {
        Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), value.clone())])),
        Step::Item { field, value: name } => {
            let mut item = value.clone();
            if let Some(fields) = item.as_object_mut() {
                fields.entry(field.clone()).or_insert_with(|| Value::String(name.clone()));
            }
            Value::Array(vec![item])
        }
        Step::Index(_) => Value::Array(vec![value.clone()]),
    }
}

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
