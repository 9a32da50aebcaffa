//! Nodes of which enough must be there to elect a master.

use std::collections::{BTreeMap, BTreeSet};

use crate::blocker::{Check, refuse};
use crate::{Code, Engine, Node, Voting};

/// Nodes of which enough must be there.
#[derive(Debug)]
pub(super) struct VoterSet<'a> {
    /// How sentences call its members.
    name: &'static str,
    /// Its members in the cluster, by name; how many bear it.
    present: BTreeMap<&'a str, usize>,
    /// How many of them there are.
    listed: usize,
    /// How many members there are, in the cluster or not; none where everybody who can be elected
    /// is one.
    size: Option<usize>,
    /// How many it takes to elect a master.
    needed: usize,
}

const COMMITTED: &str = "voters of the committed voting configuration";
const ACCEPTED: &str = "voters of the accepted voting configuration";
const ELIGIBLE: &str = "master-eligible nodes";

impl<'a> VoterSet<'a> {
    /// Those that must all keep enough of their members.
    pub(super) fn all(voting: &'a Voting, engine: &'a Engine) -> Vec<Self> {
        match voting {
            Voting::Configurations { committed, accepted, .. } => {
                let mut bodies = vec![Self::configuration(COMMITTED, committed, engine)];
                if accepted != committed {
                    bodies.push(Self::configuration(ACCEPTED, accepted, engine));
                }
                bodies
            }
            Voting::MinimumMasterNodes(minimum) => vec![Self::eligible(*minimum, engine)],
        }
    }

    /// One voting configuration: it takes a majority of its ids.
    fn configuration(name: &'static str, voters: &BTreeSet<String>, engine: &'a Engine) -> Self {
        let size = voters.len();
        Self::new(name, Some(size), size / 2 + 1, engine, |node| voters.contains(&node.id))
    }

    /// Elasticsearch 6: whoever can be elected votes. It takes one even where the minimum says none.
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

    /// Nobody is a member, nor can be.
    pub(super) fn is_empty(&self) -> bool {
        self.size == Some(0)
    }

    /// Not enough members are in the cluster.
    pub(super) fn is_lost(&self) -> bool {
        self.listed < self.needed
    }

    /// Whether a node of this name is a member in the cluster.
    pub(super) fn has(&self, name: &str) -> bool {
        self.present.contains_key(name)
    }

    /// Whether it is a voting configuration of this node alone.
    pub(super) fn is_only(&self, name: &str) -> bool {
        self.size == Some(1) && self.listed == 1 && self.has(name)
    }

    /// Whether the candidate is a member, or may be. `never`: it cannot be elected;
    /// none if it is not in the cluster, and then its id is unknown as well.
    pub(super) fn may_contain(&self, candidate: &str, never: Option<bool>) -> bool {
        self.has(candidate)
            || match (self.size, never) {
                (Some(_), Some(_)) => false,
                (Some(size), None) => self.listed < size,
                (None, never) => never != Some(true),
            }
    }

    /// Passes if enough members are left. The work is that of looking up those that are down.
    pub(super) fn gate(&self, candidate: &str, down: &BTreeSet<String>) -> Check {
        let others = || down.iter().map(String::as_str).filter(|name| *name != candidate);
        let votes = |name: &str| self.present.get(name).copied().unwrap_or(0);
        let own = votes(candidate);
        let left = self.listed - own - others().map(votes).sum::<usize>();
        if left >= self.needed {
            return Ok(());
        }
        let Self { name, needed, listed, .. } = self;
        if own == self.size.unwrap_or(*listed) && *needed == 1 {
            return super::nobody_but(candidate);
        }
        let mut why = Vec::new();
        if let Some(absent) =
            self.size.map(|size| size.saturating_sub(*listed)).filter(|absent| *absent > 0)
        {
            why.push(format!("{absent} not in the cluster"));
        }
        let leaving: Vec<&str> = others().filter(|name| votes(name) > 0).collect();
        if !leaving.is_empty() {
            why.push(format!("{} down or being stopped", leaving.join(", ")));
        }
        let of = self.size.map(|size| format!(" of {size}")).unwrap_or_default();
        let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
        refuse(
            Code::Quorum,
            format!(
                "without {candidate} {left}{of} {name} would be in the cluster{why}, and it takes \
                 {needed} to elect a master: waits until more are in; spec.restart.allowOutage: \
                 true would accept an outage"
            ),
        )
    }
}
