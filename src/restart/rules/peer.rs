//! A pod as the rules see it: facts of the snapshot and of the ledger, combined once.

use std::collections::BTreeSet;

use super::tiers::Tiers;
use crate::snapshot::are_master_eligible;
use crate::{Node, Pod};

/// A pod of the cluster, as the rules see it.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    pub(super) pod: &'a Pod,
    /// The engine's entry of the node, if it is listed.
    pub(super) node: Option<&'a Node>,
    /// Roles of the node as the engine lists them, else as the ledger remembers them. `None`: neither knows
    /// them, and the node may have any role.
    pub(super) roles: Option<&'a BTreeSet<String>>,
    /// Tiers whose data the node may hold. `None`: it holds no data, or its roles are unknown.
    pub(super) tiers: Option<Tiers>,
    pub(super) is_master: bool,
    /// True if the node serves and is not under way, so that a stop would take it out of service.
    pub(super) is_healthy: bool,
    /// True if the engine runs and is in the cluster, and the pod is not being deleted; also while the node
    /// is under way and not stopped yet.
    pub(super) serves: bool,
    /// True if the node's restart is requested and not finished.
    pub(super) is_requested: bool,
    /// True if the node holds a slot, perhaps only since this evaluation: it is down because of us, now or
    /// soon.
    pub(super) under_way: bool,
    /// True if the node is stopped together with the candidate.
    pub(super) is_in_batch: bool,
}

/// True if the node is master-eligible by the engine's entry or by these roles.
pub(super) fn is_master(node: Option<&Node>, roles: Option<&BTreeSet<String>>) -> bool {
    node.is_some_and(Node::is_master_eligible) || roles.is_some_and(are_master_eligible)
}

impl<'a> Peer<'a> {
    /// Name of the node; it may differ from the pod's name.
    pub(super) fn name(&self) -> &'a str {
        self.pod.node.as_str()
    }

    /// True if the node does not serve, and not because of us.
    pub(super) fn has_failed(&self) -> bool {
        !self.is_healthy && !self.under_way
    }
}
