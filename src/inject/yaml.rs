//! YAML (and so JSON) as a tree that knows where in the text each part is, and new parts as text.

mod node;
mod plain;
mod read;
mod write;

pub(crate) use node::{Kind, Node};
pub(crate) use read::{Document, documents, one};
pub(crate) use write::{block_entry, block_item, flow};
