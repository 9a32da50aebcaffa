//! A pod as the rules see it: what the snapshot and the ledger say of it, brought together once.

use std::collections::BTreeSet;

use super::tiers::Tiers;
use crate::snapshot::are_master_eligible;
use crate::{Node, Pod};

/// A pod of the cluster, as the rules see it.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    pub(super) pod: &'a Pod,
    /// None if the engine does not list it.
    pub(super) node: Option<&'a Node>,
    /// Its roles: those that the engine lists, else those that the ledger remembers. None if neither
    /// knows them; then it may have any.
    pub(super) roles: Option<&'a BTreeSet<String>>,
    /// The tiers whose data it may hold; none if it holds no data, or its roles are not known.
    pub(super) tiers: Option<Tiers>,
    pub(super) is_master: bool,
    /// It serves and is not under way. A stop would end that.
    pub(super) is_healthy: bool,
    /// It serves: its engine runs and is in the cluster, and its pod is not being deleted. Also while
    /// it is under way and not stopped yet.
    pub(super) serves: bool,
    /// Its restart is requested and not finished.
    pub(super) is_requested: bool,
    /// It holds a slot, perhaps only since this evaluation: down because of us, now or soon.
    pub(super) under_way: bool,
    /// It is stopped together with the candidate.
    pub(super) is_in_batch: bool,
}

/// Whether a node of this entry and these roles is master-eligible.
pub(super) fn is_master(node: Option<&Node>, roles: Option<&BTreeSet<String>>) -> bool {
    node.is_some_and(Node::is_master_eligible) || roles.is_some_and(are_master_eligible)
}

impl<'a> Peer<'a> {
    /// Name of the node; it may differ from the pod's name.
    pub(super) fn name(&self) -> &'a str {
        self.pod.node.as_str()
    }

    /// Whether it does not serve, and not because of us.
    pub(super) fn has_failed(&self) -> bool {
        !self.is_healthy && !self.under_way
    }
}
