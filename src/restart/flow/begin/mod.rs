//! Who gets a slot: the nodes that may be stopped next, in which order, and why the others may not.

pub(super) mod choose_next;
pub(super) mod may_begin;
pub(super) mod slot;
mod zone;
