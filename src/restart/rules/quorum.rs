//! The quorum: no stop takes the majority that elects a master.

mod voter_set;

use std::collections::{BTreeMap, BTreeSet};

use crate::blocker::{Blocker, Check, refuse};
use crate::{Code, Engine, Node, Unknown, Voting};
use voter_set::VoterSet;

/// What the stop of a node does to the votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Votes {
    /// Enough are left.
    Kept,
    /// It has the only vote, and nothing is lost once it has handed that over to this node.
    HandedOverFirst(String),
    /// No master could be elected, or that is not known.
    Lost(Blocker),
}

/// Who elects the master, arranged once for all candidates.
#[derive(Debug)]
pub(crate) struct Electorate<'a> {
    /// The nodes in the cluster, by name; whether they cannot be elected.
    never: BTreeMap<&'a str, bool>,
    /// Of these, the nodes that can lead: voting-only nodes vote and are never elected.
    leaders: BTreeSet<&'a str>,
    /// A master is elected: what the engine lists is the cluster, not one side of a partition.
    has_master: bool,
    /// All of these must keep enough voters.
    bodies: Result<Vec<VoterSet<'a>>, &'a Unknown>,
    /// Names of nodes that are asked to do without a vote.
    excluded: Option<&'a BTreeSet<String>>,
}

impl<'a> Electorate<'a> {
    /// Arranges it.
    pub(crate) fn of(engine: &'a Engine) -> Self {
        let mut never = BTreeMap::new();
        let mut leaders = BTreeSet::new();
        for node in &engine.nodes {
            // One of two nodes that bear the same name may be a master.
            let this = !node.is_master_eligible();
            never.entry(node.name.as_str()).and_modify(|all| *all &= this).or_insert(this);
            if can_lead(node) {
                leaders.insert(node.name.as_str());
            }
        }
        let voting = engine.voting.as_ref();
        let excluded = match voting {
            Ok(Voting::Configurations { excluded, .. }) => Some(excluded),
            Ok(Voting::MinimumMasterNodes(_)) | Err(_) => None,
        };
        let bodies = voting.map(|voting| VoterSet::all(voting, engine));
        Self { never, leaders, has_master: engine.master.is_some(), bodies, excluded }
    }

    /// Kept if the candidate is no voter, or if without it and without the nodes that are `down`
    /// (or are being stopped by us, which may well be in the cluster still) enough voters are left
    /// in the cluster, in the committed and in the accepted voting configuration, and one that can
    /// lead.
    ///
    /// A candidate that is not in the cluster takes no vote away, and where the majority is lost
    /// already its return is what is wanted: nothing is lost. Two exceptions: without an elected
    /// master the engine that was asked may be on the smaller side of a partition, with the
    /// candidate on the other; and while voters that are still in are being stopped, the majority is
    /// about to be lost, and the candidate may be on its way in to save it.
    ///
    /// `handing_over` is a node that hands its vote over for its restart: whoever else can vote may
    /// be the one who takes it.
    pub(crate) fn without(
        &self,
        candidate: &str,
        down: &BTreeSet<String>,
        handing_over: Option<&str>,
    ) -> Votes {
        let never = self.never.get(candidate).copied();
        let bodies = match &self.bodies {
            Ok(bodies) => bodies,
            Err(_) if never == Some(true) => return Votes::Kept,
            Err(unknown) => {
                let message = format!(
                    "{candidate} is not stopped while it is not known who elects the master: {}",
                    unknown.message
                );
                return Votes::Lost(Blocker { code: Code::EngineUnreachable, message });
            }
        };
        if bodies.iter().all(VoterSet::is_empty) {
            let message = format!(
                "{candidate} is not stopped: nobody has a vote, so the engine that was asked has \
                 not formed a cluster yet"
            );
            return Votes::Lost(Blocker { code: Code::EngineUnreachable, message });
        }
        if never == Some(false)
            && let Some(other) = self.hands_over(handing_over).filter(|other| *other != candidate)
        {
            let message = format!(
                "{other} hands its vote over, and {candidate} may be the one who takes it: waits \
                 until {other} is back and votes again"
            );
            return Votes::Lost(Blocker { code: Code::Quorum, message });
        }
        let is_lost = bodies.iter().any(VoterSet::is_lost);
        if !bodies.iter().any(|body| body.may_contain(candidate, never))
            || (never.is_none() && self.has_master && is_lost)
        {
            return Votes::Kept;
        }
        let gate = bodies
            .iter()
            .try_for_each(|body| body.gate(candidate, down))
            .and_then(|()| self.leader_stays(candidate, down));
        match (gate, self.vote_recipient(candidate, down)) {
            (Ok(()), _) => Votes::Kept,
            (Err(_), Some(vote_recipient)) => Votes::HandedOverFirst(vote_recipient.to_owned()),
            (Err(refusal), None) => Votes::Lost(refusal),
        }
    }

    /// The node whose vote is on its way to another: one that owes it to us to, or one that the
    /// engine was asked to do without and has not yet done without.
    fn hands_over<'b>(&'b self, ours: Option<&'b str>) -> Option<&'b str> {
        let mut asked = self.excluded.into_iter().flatten().map(String::as_str);
        let votes = |name: &&str| self.bodies.iter().flatten().any(|body| body.has(name));
        ours.or_else(|| asked.find(votes))
    }

    /// Passes unless the candidate is the last node that can be elected.
    fn leader_stays(&self, candidate: &str, down: &BTreeSet<String>) -> Check {
        let stays = |name: &&&str| **name != candidate && !down.contains(**name);
        if self.leaders.contains(candidate) && !self.leaders.iter().any(|name| stays(&name)) {
            return nobody_but(candidate);
        }
        Ok(())
    }

    /// Who would take over the vote of a candidate that has the only one. The engine chooses: it is
    /// whoever comes first if each of the others will do.
    fn vote_recipient(&self, candidate: &str, down: &BTreeSet<String>) -> Option<&'a str> {
        let bodies = self.bodies.as_ref().ok()?;
        if !self.has_master || !bodies.iter().all(|body| body.is_only(candidate)) {
            return None;
        }
        let excluded = |name: &str| self.excluded.is_some_and(|excluded| excluded.contains(name));
        let takes =
            |name: &str| self.leaders.contains(name) && !down.contains(name) && !excluded(name);
        let may_vote = self.never.iter().filter(|(_, never)| !**never).map(|(name, _)| *name);
        let mut others = may_vote.filter(|name| *name != candidate).peekable();
        let first = others.peek().copied()?;
        others.all(takes).then_some(first)
    }
}

/// Whether it can be elected, beyond having a vote.
fn can_lead(node: &Node) -> bool {
    node.is_master_eligible() && !node.roles.contains("voting_only")
}

fn nobody_but(candidate: &str) -> Check {
    refuse(
        Code::Quorum,
        format!(
            "nobody but {candidate} can elect a master, so its restart is an outage of the whole \
             cluster until it is back: set spec.restart.allowOutage: true to allow that, or give \
             the cluster three master-eligible nodes"
        ),
    )
}
