//! Numbers of nodes, so that the rules do not go over all peers for every candidate.

use std::collections::BTreeSet;

use crate::index::Lookup;
use crate::rules::NameList;
use crate::snapshot::hold_data;
use crate::{Node, Pod, are_master_eligible};

/// Counts of the peers that are not in the candidate's batch, except where noted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeCounts<'a> {
    /// Nodes that do not serve, and not because of us; also those in the candidate's batch.
    pub(crate) failed: usize,
    /// Nodes that do not serve, for any reason.
    pub(crate) unavailable: NameList<'a>,
    /// Nodes whose roles are unknown: the engine does not list them, or they have not reported.
    pub(crate) unlisted: NameList<'a>,
    /// Master-eligible nodes that do not serve.
    pub(crate) missing_masters: NameList<'a>,
    /// Master-eligible nodes under way.
    pub(crate) masters_under_way: NameList<'a>,
    /// Master-eligible nodes whose restart is requested and not finished.
    pub(crate) requested_masters: usize,
    /// Other nodes whose restart is requested and not finished.
    pub(crate) requested_others: NameList<'a>,
    /// Nodes that hold data and whose restart is requested and not finished, by their tiers. There
    /// are only a few different sets of tiers.
    pub(crate) requested_tiers: Vec<(Tiers, NameList<'a>)>,
    pub(crate) roles: Lookup<'a, RoleCount>,
}

/// Numbers of nodes with one role.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoleCount {
    /// All nodes with the role, also those in the candidate's batch.
    pub(crate) all: usize,
    pub(crate) healthy: usize,
    pub(crate) unavailable: usize,
}

impl<'a> NodeCounts<'a> {
    pub(crate) fn of(peers: &[Peer<'a>]) -> Self {
        let mut counts = Self::default();
        for peer in peers {
            counts.count(peer);
        }
        counts
    }

    fn count(&mut self, peer: &Peer<'a>) {
        self.failed += usize::from(peer.has_failed());
        for role in peer.roles.into_iter().flatten() {
            let role_count = self.roles.entry(role).or_default();
            role_count.all += 1;
            role_count.healthy += usize::from(peer.is_healthy && !peer.is_in_batch);
            role_count.unavailable += usize::from(!peer.is_healthy && !peer.is_in_batch);
        }
        if peer.is_in_batch {
            return;
        }
        if !peer.is_healthy {
            self.unavailable.add(peer.name());
        }
        if peer.roles.is_none() {
            self.unlisted.add(peer.name());
        }
        if peer.is_master {
            self.count_master(peer);
        } else if peer.is_requested {
            self.requested_others.add(peer.name());
        }
        if peer.is_requested
            && let Some(tiers) = peer.tiers
        {
            match self.requested_tiers.iter_mut().find(|(other, _)| *other == tiers) {
                Some((_, nodes)) => nodes.add(peer.name()),
                None => {
                    let mut nodes = NameList::default();
                    nodes.add(peer.name());
                    self.requested_tiers.push((tiers, nodes));
                }
            }
        }
    }

    fn count_master(&mut self, peer: &Peer<'a>) {
        self.requested_masters += usize::from(peer.is_requested);
        if !peer.is_healthy {
            self.missing_masters.add(peer.name());
        }
        if peer.under_way {
            self.masters_under_way.add(peer.name());
        }
    }

    /// Counts a peer outside of any batch as leaving: it takes a slot.
    pub(crate) fn add_leaving(&mut self, peer: &Peer<'a>) {
        self.failed -= usize::from(peer.has_failed());
        if peer.is_healthy {
            self.unavailable.add(peer.name());
            for role in peer.roles.into_iter().flatten() {
                let role_count = self.roles.entry(role).or_default();
                role_count.healthy -= 1;
                role_count.unavailable += 1;
            }
        }
        if peer.is_master {
            if peer.is_healthy {
                self.missing_masters.add(peer.name());
            }
            self.masters_under_way.add(peer.name());
        }
    }
}

/// A pod of the cluster, as the rules see it.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    pub(crate) pod: &'a Pod,
    /// The engine's entry of the node, if it is listed.
    pub(crate) node: Option<&'a Node>,
    /// Roles of the node as the engine lists them, else as the ledger remembers them. `None`: neither knows
    /// them, and the node may have any role.
    pub(crate) roles: Option<&'a BTreeSet<String>>,
    /// Tiers whose data the node may hold. `None`: it holds no data, or its roles are unknown.
    pub(crate) tiers: Option<Tiers>,
    pub(crate) is_master: bool,
    /// True if the node serves and is not under way, so that a stop would take it out of service.
    pub(crate) is_healthy: bool,
    /// True if the engine runs and is in the cluster, and the pod is not being deleted; also while the node
    /// is under way and not stopped yet.
    pub(crate) serves: bool,
    /// True if the node's restart is requested and not finished.
    pub(crate) is_requested: bool,
    /// True if the node holds a slot, perhaps only since this evaluation: it is down because of us, now or
    /// soon.
    pub(crate) under_way: bool,
    /// True if the node is stopped together with the candidate.
    pub(crate) is_in_batch: bool,
}

/// True if the node is master-eligible by the engine's entry or by these roles.
pub(crate) fn is_master(node: Option<&Node>, roles: Option<&BTreeSet<String>>) -> bool {
    node.is_some_and(Node::is_master_eligible) || roles.is_some_and(are_master_eligible)
}

impl<'a> Peer<'a> {
    /// Name of the node; it may differ from the pod's name.
    pub(crate) fn name(&self) -> &'a str {
        self.pod.node.as_str()
    }

    /// True if the node does not serve, and not because of us.
    pub(crate) fn has_failed(&self) -> bool {
        !self.is_healthy && !self.under_way
    }
}

/// The tiers whose data a node may hold, and whether it is master-eligible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tiers {
    master: bool,
    hot: bool,
    warm: bool,
    cold: bool,
    frozen: bool,
}

impl Tiers {
    /// Tiers of a node with these roles, if it holds data. The role `data` means every tier.
    pub(crate) fn of(roles: &BTreeSet<String>) -> Option<Self> {
        let mut tiers = Self::default();
        for role in roles {
            match role.as_str() {
                "master" | "cluster_manager" => tiers.master = true,
                "data" => {
                    tiers = Self { hot: true, warm: true, cold: true, frozen: true, ..tiers };
                }
                "data_hot" => tiers.hot = true,
                // OpenSearch 3 calls this role `warm`.
                "data_warm" | "warm" => tiers.warm = true,
                "data_cold" => tiers.cold = true,
                "data_frozen" => tiers.frozen = true,
                _ => {}
            }
        }
        hold_data(roles).then_some(tiers)
    }

    /// True if a node of these tiers waits for one of `other`. Two nodes never wait for each other.
    pub(crate) const fn wait_for(self, other: Self) -> bool {
        self.depends_on(other) && !other.depends_on(self)
    }

    /// True if a node of `other` should go first: data moves from the hot tier to the frozen tier, so the
    /// tier that receives data goes first. A node that is not master-eligible does not wait for one that is.
    const fn depends_on(self, other: Self) -> bool {
        (self.master || !other.master)
            && (self.hot && (other.warm || other.cold || other.frozen)
                || self.warm && (other.cold || other.frozen)
                || self.cold && other.frozen)
    }
}
