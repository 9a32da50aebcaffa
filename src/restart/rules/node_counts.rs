//! Numbers of nodes, so that the rules do not go over all peers for every candidate.

use super::name_list::NameList;
use super::peer::Peer;
use super::tiers::Tiers;
use crate::lookup::Lookup;

/// Counts of the peers that are not in the candidate's batch, except where noted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NodeCounts<'a> {
    /// Nodes that do not serve, and not because of us; also those in the candidate's batch.
    pub(super) failed: usize,
    /// Nodes that do not serve, for any reason.
    pub(super) unavailable: NameList<'a>,
    /// Nodes whose roles are unknown: the engine does not list them, or they have not reported.
    pub(super) unlisted: NameList<'a>,
    /// Master-eligible nodes that do not serve.
    pub(super) missing_masters: NameList<'a>,
    /// Master-eligible nodes under way.
    pub(super) masters_under_way: NameList<'a>,
    /// Master-eligible nodes whose restart is requested and not finished.
    pub(super) requested_masters: usize,
    /// Other nodes whose restart is requested and not finished.
    pub(super) requested_others: NameList<'a>,
    /// Nodes that hold data and whose restart is requested and not finished, by their tiers. There
    /// are only a few different sets of tiers.
    pub(super) requested_tiers: Vec<(Tiers, NameList<'a>)>,
    pub(super) roles: Lookup<'a, RoleCount>,
}

/// Numbers of nodes with one role.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoleCount {
    /// All nodes with the role, also those in the candidate's batch.
    pub(super) all: usize,
    pub(super) healthy: usize,
    pub(super) unavailable: usize,
}

impl<'a> NodeCounts<'a> {
    pub(super) fn of(peers: &[Peer<'a>]) -> Self {
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
    pub(super) fn add_leaving(&mut self, peer: &Peer<'a>) {
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
