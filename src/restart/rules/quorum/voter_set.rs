//! A set of nodes of which enough must be in the cluster to elect a master.

use std::collections::{BTreeMap, BTreeSet};

use crate::blocker::{Check, refuse};
use crate::lookup::OwnedNameSet;
use crate::rules::last_resort;
use crate::{Code, Engine, Node, Voting};

#[derive(Debug)]
pub(super) struct VoterSet<'a> {
    /// Name of the members in messages.
    name: &'static str,
    /// Members in the cluster: number of nodes by node name.
    present: BTreeMap<&'a str, usize>,
    /// Number of members in the cluster.
    listed: usize,
    /// Number of members, in the cluster or not. `None`: every master-eligible node is a member.
    size: Option<usize>,
    /// Number of members needed to elect a master.
    needed: usize,
}

const COMMITTED: &str = "voters of the committed voting configuration";
const ACCEPTED: &str = "voters of the accepted voting configuration";
const ELIGIBLE: &str = "master-eligible nodes";

impl<'a> VoterSet<'a> {
    /// The sets that must all keep enough members.
    pub(super) fn all(voting: &'a Voting, engine: &'a Engine) -> Vec<Self> {
        match voting {
            Voting::Configurations { committed, accepted, .. } => {
                let mut voter_sets = vec![Self::configuration(COMMITTED, committed, engine)];
                if accepted != committed {
                    voter_sets.push(Self::configuration(ACCEPTED, accepted, engine));
                }
                voter_sets
            }
            Voting::MinimumMasterNodes(minimum) => vec![Self::eligible(*minimum, engine)],
        }
    }

    /// A voting configuration: a majority of its ids is needed.
    fn configuration(name: &'static str, voters: &BTreeSet<String>, engine: &'a Engine) -> Self {
        let size = voters.len();
        Self::new(name, Some(size), size / 2 + 1, engine, |node| voters.contains(&node.id))
    }

    /// Elasticsearch 6: every master-eligible node votes. One is needed even if the minimum is 0.
    fn eligible(minimum: u32, engine: &'a Engine) -> Self {
        let needed = usize::try_from(minimum).unwrap_or(usize::MAX).max(1);
        Self::new(ELIGIBLE, None, needed, engine, Node::is_master_eligible)
    }

    fn new(
        name: &'static str,
        size: Option<usize>,
        needed: usize,
        engine: &'a Engine,
        is_member: impl Fn(&Node) -> bool,
    ) -> Self {
        let mut present: BTreeMap<&str, usize> = BTreeMap::new();
        for node in engine.nodes.iter().filter(|node| is_member(node)) {
            *present.entry(&node.name).or_default() += 1;
        }
        let listed = present.values().sum();
        Self { name, present, listed, size, needed }
    }

    /// True if no node can be a member.
    pub(super) fn is_empty(&self) -> bool {
        self.size == Some(0)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.listed < self.needed
    }

    /// True if a listed node of this name is a member.
    pub(super) fn has(&self, name: &str) -> bool {
        self.present.contains_key(name)
    }

    /// True if this node is the only member.
    pub(super) fn is_only(&self, name: &str) -> bool {
        self.size == Some(1) && self.listed == 1 && self.has(name)
    }

    /// True if the candidate may be a member. `ineligible`: true if it is not master-eligible; `None` for a
    /// candidate that is not in the cluster, whose id is unknown, too.
    pub(super) fn may_contain(&self, candidate: &str, ineligible: Option<bool>) -> bool {
        self.has(candidate)
            || match (self.size, ineligible) {
                (Some(_), Some(_)) => false,
                (Some(size), None) => self.listed < size,
                (None, ineligible) => ineligible != Some(true),
            }
    }

    /// Passes if enough members are left. The work is proportional to the members.
    pub(super) fn check(&self, candidate: &str, down: &OwnedNameSet, cluster: &str) -> Check {
        let others = self.present.iter().filter(|(name, _)| **name != candidate);
        let leaving = others.filter(|(name, _)| down.contains(**name));
        let own = self.present.get(candidate).copied().unwrap_or(0);
        let left = self.listed - own - leaving.clone().map(|(_, votes)| votes).sum::<usize>();
        if left >= self.needed {
            return Ok(());
        }
        let Self { name, needed, listed, .. } = self;
        if own == self.size.unwrap_or(*listed) && *needed == 1 {
            return super::only_master_blocker(candidate, cluster);
        }
        let mut missing = Vec::new();
        if let Some(absent) =
            self.size.map(|size| size.saturating_sub(*listed)).filter(|absent| *absent > 0)
        {
            missing.push(format!("{absent} not in the cluster"));
        }
        let leaving: Vec<&str> = leaving.map(|(name, _)| *name).collect();
        if !leaving.is_empty() {
            missing.push(format!("{} down or being stopped", leaving.join(", ")));
        }
        let of = self.size.map(|size| format!(" of {size}")).unwrap_or_default();
        let missing =
            if missing.is_empty() { String::new() } else { format!(" ({})", missing.join("; ")) };
        refuse(
            Code::Quorum,
            format!(
                "without {candidate} {left}{of} {name} would be in the cluster{missing}, and {needed} \
                 are needed to elect a master: waits until more are in; {}",
                last_resort(cluster)
            ),
        )
    }
}
