//! Gives slots to nodes: chooses the nodes that may be stopped next, in their order, and says why the others
//! wait.

pub(super) mod choose_next;
pub(super) mod may_begin;
pub(super) mod slot;
pub(super) mod stuck;
mod zone;
