//! Changes of a manifest as edits of its text, and their way back.
//!
//! An edit adds, replaces or removes one child of a collection. Everything else keeps its bytes. What
//! stood there before is in the edit's [`Undo`], which finds its place by name: so it fits also
//! when other parts of the manifest were changed meanwhile.

mod apply;
mod expected;
mod path;
mod position;
mod summary;
mod undo;

use serde_json::Value;

pub(crate) use apply::apply;
pub(crate) use path::{Path, Step};
pub(crate) use summary::summary;
pub(crate) use undo::{Undo, undo};

use crate::yaml::Node;

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
            crate::yaml::Kind::Mapping { entries, .. } => {
                entries.iter().position(|entry| entry.key == *key)
            }
            _ => None,
        },
        Step::Item { field, value } => collection.items().iter().position(|item| {
            item.get(field).is_some_and(|found| found.value().as_str() == Some(value))
        }),
    }
}
