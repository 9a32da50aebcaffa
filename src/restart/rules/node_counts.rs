//! How many of what there are in one look, without going over all peers for every candidate.

use super::evaluation::Peer;
use super::name_list::NameList;
use super::tiers::Tiers;
use crate::lookup::Lookup;

/// Counts over the peers that do not go together with the candidate, except where said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NodeCounts<'a> {
    /// Nodes that do not serve, for whatever reason.
    pub(super) unavailable: NameList<'a>,
    /// Nodes that the engine does not list, so that nobody knows their roles.
    pub(super) unlisted: NameList<'a>,
    /// Master-eligible nodes that do not serve.
    pub(super) missing_masters: NameList<'a>,
    /// Master-eligible nodes under way.
    pub(super) masters_under_way: NameList<'a>,
    /// Master-eligible nodes whose restart is asked for and not over.
    pub(super) wanted_masters: usize,
    /// Others whose restart is.
    pub(super) wanted_others: NameList<'a>,
    /// Nodes that hold data and whose restart is asked for and not over, by their tiers. There are
    /// few different ones.
    pub(super) wanted_tiers: Vec<(Tiers, NameList<'a>)>,
    /// By role.
    pub(super) roles: Lookup<'a, Tally>,
}

/// Nodes with one role.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    /// All of them, also those that go together with the candidate.
    pub(super) all: usize,
    /// Those that serve.
    pub(super) healthy: usize,
    /// Those that do not.
    pub(super) unavailable: usize,
}

impl<'a> NodeCounts<'a> {
    pub(super) fn of(peers: &[Peer<'a>]) -> Self {
        let mut census = Self::default();
        for peer in peers {
            census.count(peer);
        }
        census
    }

    fn count(&mut self, peer: &Peer<'a>) {
        for role in peer.node.into_iter().flat_map(|node| &node.roles) {
            let tally = self.roles.entry(role).or_default();
            tally.all += 1;
            tally.healthy += usize::from(peer.healthy && !peer.together);
            tally.unavailable += usize::from(!peer.healthy && !peer.together);
        }
        if peer.together {
            return;
        }
        if !peer.healthy {
            self.unavailable.add(peer.name());
        }
        if peer.node.is_none() {
            self.unlisted.add(peer.name());
        }
        if peer.is_master() {
            self.master(peer);
        } else if peer.wanted {
            self.wanted_others.add(peer.name());
        }
        if peer.wanted
            && let Some(tiers) = peer.node.and_then(Tiers::of)
        {
            match self.wanted_tiers.iter_mut().find(|(other, _)| *other == tiers) {
                Some((_, nodes)) => nodes.add(peer.name()),
                None => {
                    let mut nodes = NameList::default();
                    nodes.add(peer.name());
                    self.wanted_tiers.push((tiers, nodes));
                }
            }
        }
    }

    fn master(&mut self, peer: &Peer<'a>) {
        self.wanted_masters += usize::from(peer.wanted);
        if !peer.healthy {
            self.missing_masters.add(peer.name());
        }
        if peer.under_way {
            self.masters_under_way.add(peer.name());
        }
    }

    /// A peer that goes alone and was not under way is given a slot.
    pub(super) fn leave(&mut self, peer: &Peer<'a>) {
        if peer.healthy {
            self.unavailable.add(peer.name());
            for role in peer.node.into_iter().flat_map(|node| &node.roles) {
                let tally = self.roles.entry(role).or_default();
                tally.healthy -= 1;
                tally.unavailable += 1;
            }
        }
        if peer.is_master() {
            if peer.healthy {
                self.missing_masters.add(peer.name());
            }
            self.masters_under_way.add(peer.name());
        }
    }

    /// A peer that was given a slot is done, and serves.
    pub(super) fn come_back(&mut self, peer: &Peer<'a>) {
        let name = peer.name();
        self.unavailable.remove(name);
        for role in peer.node.into_iter().flat_map(|node| &node.roles) {
            let tally = self.roles.entry(role).or_default();
            tally.healthy += 1;
            tally.unavailable -= 1;
        }
        if peer.is_master() {
            self.missing_masters.remove(name);
            self.masters_under_way.remove(name);
            self.wanted_masters -= usize::from(peer.wanted);
        } else if peer.wanted {
            self.wanted_others.remove(name);
        }
        let tiers = peer.node.and_then(Tiers::of).filter(|_| peer.wanted);
        self.wanted_tiers.retain_mut(|(other, nodes)| {
            if Some(*other) == tiers {
                nodes.remove(name);
            }
            nodes.count > 0
        });
    }
}
