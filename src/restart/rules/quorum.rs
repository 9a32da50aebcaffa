//! The quorum: no stop takes the majority that is needed to elect a master.

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::{Check, refuse};
use crate::index::{Lookup, NameSet, OwnedNameSet};
use crate::rules::last_resort;
use crate::{Blocker, Code, Engine, Node, Unknown, Voting};

/// Effect of a node's stop on the quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuorumAfterStop {
    /// Enough votes are left.
    Kept,
    /// The candidate has the only vote; the quorum is kept once the node with this name has taken the vote
    /// over.
    KeptByHandover(String),
    /// No master could be elected, or this is unknown.
    Lost(Blocker),
}

/// The nodes that elect the master, built once for all candidates.
#[derive(Debug)]
pub(crate) struct MasterVoters<'a> {
    /// The SearchCluster, as `namespace/name`, for commands in messages.
    cluster: &'a str,
    /// The nodes in the cluster, by name; true if the node is not master-eligible.
    ineligible: Lookup<'a, bool>,
    /// Names of the nodes that are master-eligible.
    eligible: BTreeSet<&'a str>,
    /// Names of nodes that can be elected. Voting-only nodes vote but are never elected.
    electable: BTreeSet<&'a str>,
    /// True if a master is elected: then the node list is the whole cluster, not one side of a partition.
    has_master: bool,
    /// The sets of voters, each of which must keep enough members.
    voter_sets: Result<Vec<VoterSet<'a>>, &'a Unknown>,
    /// Names of nodes that are excluded from voting.
    excluded: Option<&'a BTreeSet<String>>,
}

impl<'a> MasterVoters<'a> {
    pub(crate) fn of(engine: &'a Engine, cluster: &'a str) -> Self {
        let mut ineligible = Lookup::default();
        ineligible.reserve(engine.nodes.len());
        let (mut eligible, mut electable) = (BTreeSet::new(), BTreeSet::new());
        for node in &engine.nodes {
            // If two nodes have the same name, one that is master-eligible decides.
            let this = !node.is_master_eligible();
            ineligible.entry(node.name.as_str()).and_modify(|all| *all &= this).or_insert(this);
            if !this {
                eligible.insert(node.name.as_str());
            }
            if can_be_elected(node) {
                electable.insert(node.name.as_str());
            }
        }
        let voting = engine.voting.as_ref();
        let excluded = match voting {
            Ok(Voting::Configurations { excluded, .. }) => Some(excluded),
            Ok(Voting::MinimumMasterNodes(_)) | Err(_) => None,
        };
        let voter_sets = voting.map(|voting| VoterSet::all(voting, engine));
        Self {
            cluster,
            ineligible,
            eligible,
            electable,
            has_master: engine.elected_master.is_some(),
            voter_sets,
            excluded,
        }
    }

    /// The quorum is kept if the candidate has no vote, or if enough voters are left in the cluster
    /// without it and without the nodes that are `down` (also those that we are stopping, which may
    /// still be in the cluster): in the committed and in the accepted voting configuration, and one
    /// of them must be electable.
    ///
    /// A candidate that is not in the cluster takes no vote away, and if the majority is lost already
    /// its restart may bring it back: the quorum is kept. There are two exceptions. Without an
    /// elected master the engine that answered may be on the smaller side of a partition, and the
    /// candidate on the other. And while listed voters are being stopped the majority is about to be
    /// lost, and the candidate may be about to join and save it.
    ///
    /// `handing_over` is a node that hands its vote over for its restart: any other node that can
    /// vote may be the recipient.
    pub(crate) fn after_stop(
        &self,
        candidate: &str,
        down: &OwnedNameSet,
        handing_over: Option<&str>,
    ) -> QuorumAfterStop {
        let ineligible = self.ineligible.get(candidate).copied();
        let voter_sets = match &self.voter_sets {
            Ok(voter_sets) => voter_sets,
            Err(_) if ineligible == Some(true) => return QuorumAfterStop::Kept,
            Err(unknown) => {
                let message = format!(
                    "{candidate} is not stopped: the voting nodes are unknown: {}",
                    unknown.message
                );
                return QuorumAfterStop::Lost(Blocker { code: Code::EngineUnreachable, message });
            }
        };
        if voter_sets.iter().all(VoterSet::is_empty) {
            let message = format!(
                "{candidate} is not stopped: no node has a vote, so the engine has not formed a \
                 cluster yet"
            );
            return QuorumAfterStop::Lost(Blocker { code: Code::EngineUnreachable, message });
        }
        if ineligible == Some(false)
            && let Some(other) =
                self.pending_handover(handing_over).filter(|other| *other != candidate)
        {
            let message = format!(
                "{other} is handing its vote over, and {candidate} may be the recipient: waits until \
                 {other} is back and votes again"
            );
            return QuorumAfterStop::Lost(Blocker { code: Code::Quorum, message });
        }
        let is_lost = voter_sets.iter().any(VoterSet::is_lost);
        if !voter_sets.iter().any(|voter_set| voter_set.may_contain(candidate, ineligible))
            || (ineligible.is_none() && self.has_master && is_lost)
        {
            return QuorumAfterStop::Kept;
        }
        let check = voter_sets
            .iter()
            .try_for_each(|voter_set| voter_set.check(candidate, down, self.cluster))
            .and_then(|()| self.check_electable_stays(candidate, down));
        match (check, self.vote_recipient(candidate, down)) {
            (Ok(()), _) => QuorumAfterStop::Kept,
            (Err(_), Some(vote_recipient)) => {
                QuorumAfterStop::KeptByHandover(vote_recipient.to_owned())
            }
            (Err(blocker), None) => QuorumAfterStop::Lost(blocker),
        }
    }

    /// The node whose vote is being handed over: by us, or because it is excluded from voting and
    /// still has its vote.
    fn pending_handover<'b>(&'b self, ours: Option<&'b str>) -> Option<&'b str> {
        let mut asked = self.excluded.into_iter().flatten().map(String::as_str);
        let votes =
            |name: &&str| self.voter_sets.iter().flatten().any(|voter_set| voter_set.has(name));
        ours.or_else(|| asked.find(votes))
    }

    /// Blocks if the candidate is the last electable node.
    fn check_electable_stays(&self, candidate: &str, down: &OwnedNameSet) -> Check {
        let stays = |name: &&&str| **name != candidate && !down.contains(**name);
        if self.electable.contains(candidate) && !self.electable.iter().any(|name| stays(&name)) {
            return only_master_blocker(candidate, self.cluster);
        }
        Ok(())
    }

    /// The node that would take over the vote of a candidate that has the only one. The engine
    /// chooses it, so every other node must be able to take the vote; the first is returned.
    fn vote_recipient(&self, candidate: &str, down: &OwnedNameSet) -> Option<&'a str> {
        let voter_sets = self.voter_sets.as_ref().ok()?;
        if !self.has_master || !voter_sets.iter().all(|voter_set| voter_set.is_only(candidate)) {
            return None;
        }
        let excluded = |name: &str| self.excluded.is_some_and(|excluded| excluded.contains(name));
        let takes =
            |name: &str| self.electable.contains(name) && !down.contains(name) && !excluded(name);
        let eligible = self.eligible.iter().copied();
        let mut others = eligible.filter(|name| *name != candidate).peekable();
        let first = others.peek().copied()?;
        others.all(takes).then_some(first)
    }
}

fn can_be_elected(node: &Node) -> bool {
    !node.roles_unknown && node.is_master_eligible() && !node.roles.contains("voting_only")
}

fn only_master_blocker(candidate: &str, cluster: &str) -> Check {
    refuse(
        Code::Quorum,
        format!(
            "no other node than {candidate} can elect a master, so its restart is an outage of the \
             whole cluster: give the cluster three master-eligible nodes; {}",
            last_resort(cluster)
        ),
    )
}

#[derive(Debug)]
struct VoterSet<'a> {
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
    pub(crate) fn all(voting: &'a Voting, engine: &'a Engine) -> Vec<Self> {
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
    pub(crate) fn is_empty(&self) -> bool {
        self.size == Some(0)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.listed < self.needed
    }

    /// True if a listed node of this name is a member.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.present.contains_key(name)
    }

    /// True if this node is the only member.
    fn is_only(&self, name: &str) -> bool {
        self.size == Some(1) && self.listed == 1 && self.has(name)
    }

    /// True if the candidate may be a member. `ineligible`: true if it is not master-eligible; `None` for a
    /// candidate that is not in the cluster, whose id is unknown, too.
    fn may_contain(&self, candidate: &str, ineligible: Option<bool>) -> bool {
        self.has(candidate)
            || match (self.size, ineligible) {
                (Some(_), Some(_)) => false,
                (Some(size), None) => self.listed < size,
                (None, ineligible) => ineligible != Some(true),
            }
    }

    /// Passes if enough members are left. The work is proportional to the members.
    pub(crate) fn check(&self, candidate: &str, down: &OwnedNameSet, cluster: &str) -> Check {
        let others = self.present.iter().filter(|(name, _)| **name != candidate);
        let leaving = others.filter(|(name, _)| down.contains(**name));
        let own = self.present.get(candidate).copied().unwrap_or(0);
        let left = self.listed - own - leaving.clone().map(|(_, votes)| votes).sum::<usize>();
        if left >= self.needed {
            return Ok(());
        }
        let Self { name, needed, listed, .. } = self;
        if own == self.size.unwrap_or(*listed) && *needed == 1 {
            return only_master_blocker(candidate, cluster);
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

/// Number of voters that the engine does not list.
pub(crate) fn missing_voters(engine: &Engine) -> usize {
    match &engine.voting {
        Ok(Voting::Configurations { committed, accepted, .. }) => {
            let listed: NameSet<'_> = engine.nodes.iter().map(|node| node.id.as_str()).collect();
            committed.union(accepted).filter(|id| !listed.contains(id.as_str())).count()
        }
        // The number of voters is unknown; `quorum` handles that case.
        Ok(Voting::MinimumMasterNodes(_)) | Err(_) => 0,
    }
}
