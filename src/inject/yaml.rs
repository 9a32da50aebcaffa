//! YAML (and so JSON) as a tree that knows the place of each part in the text, and new parts as text.

mod node;
mod plain;
mod read;
mod write;

pub(crate) use node::{Kind, Node};
pub(crate) use read::{Document, documents, one};
pub(crate) use write::{block_entry, block_item, flow};
