//! A part of a document, with its place in the text.

use serde_json::Value;

/// A value and its place in the text.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) start: usize,
    /// End of the value's last character. Text behind it on that line is a comment, or belongs to the
    /// collection around it.
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A scalar, or an alias of any node: nothing in it can be edited here.
    Leaf(Value),
    Sequence {
        flow: bool,
        items: Vec<Node>,
    },
    Mapping {
        flow: bool,
        entries: Vec<Entry>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Start of the key.
    pub(crate) start: usize,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            Kind::Leaf(value) => value.clone(),
            Kind::Sequence { items, .. } => items.iter().map(Self::value).collect(),
            Kind::Mapping { entries, .. } => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.value())).collect(),
            ),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Kind::Mapping { entries, .. } = &self.kind else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::Sequence { items, .. } => items,
            Kind::Leaf(_) | Kind::Mapping { .. } => &[],
        }
    }

    /// Number of children; a leaf has none.
    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::Leaf(_) => 0,
            Kind::Sequence { items, .. } => items.len(),
            Kind::Mapping { entries, .. } => entries.len(),
        }
    }

    pub(crate) fn child(&self, index: usize) -> Option<&Self> {
        match &self.kind {
            Kind::Leaf(_) => None,
            Kind::Sequence { items, .. } => items.get(index),
            Kind::Mapping { entries, .. } => entries.get(index).map(|entry| &entry.value),
        }
    }

    pub(crate) fn is_flow(&self) -> bool {
        match &self.kind {
            Kind::Leaf(_) => false,
            Kind::Sequence { flow, .. } | Kind::Mapping { flow, .. } => *flow,
        }
    }

    /// True if the key `<<`, which merges another mapping, is anywhere in the value.
    pub(crate) fn has_merge_key(&self) -> bool {
        match &self.kind {
            Kind::Leaf(_) => false,
            Kind::Sequence { items, .. } => items.iter().any(Self::has_merge_key),
            Kind::Mapping { entries, .. } => {
                entries.iter().any(|entry| entry.key == "<<" || entry.value.has_merge_key())
            }
        }
    }

    /// The first key that a mapping in the value has twice, with the keys on the way there.
    pub(crate) fn twice(&self) -> Option<String> {
        match &self.kind {
            Kind::Leaf(_) => None,
            Kind::Sequence { items, .. } => items
                .iter()
                .enumerate()
                .find_map(|(index, item)| Some(format!("[{index}].{}", item.twice()?))),
            Kind::Mapping { entries, .. } => {
                entries.iter().enumerate().find_map(|(index, Entry { key, value, .. })| {
                    if entries[..index].iter().any(|before| before.key == *key) {
                        return Some(key.clone());
                    }
                    let inner = value.twice()?;
                    let dot = if inner.starts_with('[') { "" } else { "." };
                    Some(format!("{key}{dot}{inner}"))
                })
            }
        }
    }
}
