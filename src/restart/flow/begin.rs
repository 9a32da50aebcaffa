//! Which nodes get a slot: the nodes that may be stopped next, their order, and why the others
//! wait.

pub(super) mod choose_next;
pub(super) mod may_begin;
pub(super) mod slot;
pub(super) mod stuck;
mod zone;
