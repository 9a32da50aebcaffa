//! The quorum: no stop takes the majority that elects a master.

use std::collections::{BTreeMap, BTreeSet};

use crate::restart::gate::{Gate, refuse};
use crate::restart::{Code, Engine, Node, Unknown, Voting};

/// Who elects the master, arranged once for all candidates.
#[derive(Debug)]
pub(in crate::restart) struct Electorate<'a> {
    /// The nodes in the cluster, by name; whether they told roles, and cannot be elected by them.
    never: BTreeMap<&'a str, bool>,
    /// A master is elected: what the engine lists is the cluster, not one side of a partition.
    has_master: bool,
    /// All of these must keep enough voters.
    bodies: Result<Vec<Body<'a>>, &'a Unknown>,
}

/// Nodes of which enough must be there.
#[derive(Debug)]
struct Body<'a> {
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

impl<'a> Electorate<'a> {
    /// Arranges it.
    pub(in crate::restart) fn of(engine: &'a Engine) -> Self {
        let mut never = BTreeMap::new();
        for node in &engine.nodes {
            // A node that did not tell its roles may be a master; and so may be one of two nodes
            // that bear the same name.
            let this = !node.is_master_eligible() && !node.roles.is_empty();
            never.entry(node.name.as_str()).and_modify(|all| *all &= this).or_insert(this);
        }
        let bodies = engine.voting.as_ref().map(|voting| match voting {
            Voting::Configurations { committed, accepted } => {
                let mut bodies = vec![Body::configuration(COMMITTED, committed, engine)];
                if accepted != committed {
                    bodies.push(Body::configuration(ACCEPTED, accepted, engine));
                }
                bodies
            }
            Voting::MinimumMasterNodes(minimum) => vec![Body::eligible(*minimum, engine)],
        });
        let has_master = engine.master.is_some();
        Self { never, has_master, bodies }
    }

    /// Passes if the candidate is no voter, or if without it and without the nodes that are `down`
    /// (or are being stopped by us, which may well be in the cluster still) enough voters are left
    /// in the cluster, in the committed and in the accepted voting configuration; or if an outage is
    /// allowed.
    ///
    /// A candidate that is not in the cluster takes no vote away, and where the majority is lost
    /// already its return is what is wanted: it passes. Two exceptions: without an elected master
    /// the engine that was asked may be on the smaller side of a partition, with the candidate on
    /// the other; and while voters that are still in are being stopped, the majority is about to be
    /// lost, and the candidate may be on its way in to save it.
    pub(in crate::restart) fn gate(
        &self,
        candidate: &str,
        down: &BTreeSet<String>,
        allow_outage: bool,
    ) -> Gate {
        if allow_outage {
            return Ok(());
        }
        let bodies = match &self.bodies {
            Ok(bodies) => bodies,
            Err(_) if self.never.get(candidate) == Some(&true) => return Ok(()),
            Err(unknown) => {
                return refuse(
                    Code::EngineUnreachable,
                    format!(
                        "{candidate} is not stopped while it is not known who elects the master: {}",
                        unknown.sentence
                    ),
                );
            }
        };
        if bodies.iter().all(|body| body.size == Some(0)) {
            return refuse(
                Code::EngineUnreachable,
                format!(
                    "{candidate} is not stopped: nobody has a vote, so the engine that was asked \
                     has not formed a cluster yet"
                ),
            );
        }
        let never = self.never.get(candidate).copied();
        let is_lost = bodies.iter().any(|body| body.listed < body.needed);
        if !bodies.iter().any(|body| body.may_contain(candidate, never))
            || (never.is_none() && self.has_master && is_lost)
        {
            return Ok(());
        }
        bodies.iter().try_for_each(|body| body.gate(candidate, down))
    }
}

const COMMITTED: &str = "voters of the committed voting configuration";
const ACCEPTED: &str = "voters of the accepted voting configuration";
const ELIGIBLE: &str = "master-eligible nodes";

impl<'a> Body<'a> {
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

    /// Whether the candidate is a member, or may be. `never`: it told roles and cannot be elected by
    /// them; none if it is not in the cluster, and then its id is unknown as well.
    fn may_contain(&self, candidate: &str, never: Option<bool>) -> bool {
        self.present.contains_key(candidate)
            || match (self.size, never) {
                (Some(_), Some(_)) => false,
                (Some(size), None) => self.listed < size,
                (None, never) => never != Some(true),
            }
    }

    /// Passes if enough members are left. The work is that of looking up those that are down.
    fn gate(&self, candidate: &str, down: &BTreeSet<String>) -> Gate {
        let others = || down.iter().map(String::as_str).filter(|name| *name != candidate);
        let votes = |name: &str| self.present.get(name).copied().unwrap_or(0);
        let own = votes(candidate);
        let left = self.listed - own - others().map(votes).sum::<usize>();
        if left >= self.needed {
            return Ok(());
        }
        let Self { name, needed, listed, .. } = self;
        if own == self.size.unwrap_or(*listed) && *needed == 1 {
            return refuse(
                Code::Quorum,
                format!(
                    "nobody but {candidate} can elect a master, so its restart is an outage of the \
                     whole cluster until it is back: set spec.restart.allowOutage: true to allow \
                     that, or give the cluster three master-eligible nodes"
                ),
            );
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
