//! One look for candidates: everything the rules ask about, counted once, so that asking about one
//! more candidate costs as little as the candidate itself.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::name_list::NameList;
use super::node_counts::NodeCounts;
use super::voters;
use super::{Copies, Electorate, Settled, Votes};
use crate::blocker::{Blocker, Check, refuse};
use crate::index::Index;
use crate::lookup::{Lookup, Names};
use crate::{Code, Engine, Ledger, Node, Pod, Policy, Step};

/// A pod of the cluster, as the rules see it.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    pub(super) pod: &'a Pod,
    /// As the engine lists it, if it does.
    pub(super) node: Option<&'a Node>,
    /// It serves: ready, in the cluster, not ending and not on its way. A stop would take that away.
    pub(super) healthy: bool,
    /// Its restart was asked for and is not over.
    pub(super) wanted: bool,
    /// It holds a slot, or was given one in this pass: down because of us, now or in a moment.
    pub(super) under_way: bool,
    /// It goes together with the candidate.
    pub(super) together: bool,
}

impl<'a> Peer<'a> {
    /// The node's, which may be another one than the pod's.
    pub(super) fn name(&self) -> &'a str {
        self.pod.node.as_str()
    }

    pub(super) fn is_master(&self) -> bool {
        self.node.is_some_and(Node::is_master_eligible)
    }
}

/// On what terms a candidate goes that was let pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// It hands its vote over to this node first.
    pub(crate) vote_recipient: Option<String>,
    /// It goes only because an outage is allowed.
    pub(crate) costs_quorum: bool,
    /// Its whole set has failed: the engine need not answer.
    pub(crate) lost: bool,
}

impl Terms {
    /// What is to be told of them, `hands_over` if the vote_recipient does get the vote.
    pub(crate) fn told(&self, hands_over: bool) -> String {
        match &self.vote_recipient {
            Some(vote_recipient) if hands_over => {
                format!("; it has the only vote and hands it over to {vote_recipient} first")
            }
            None if !self.costs_quorum => String::new(),
            Some(_) | None => "; this costs the quorum: no master can be elected until it is back \
                               (spec.restart.allowOutage)"
                .to_owned(),
        }
    }
}

/// One look for candidates.
#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    pub(super) engine: &'a Engine,
    pub(super) policy: &'a Policy,
    pub(super) settled: Settled,
    pub(super) census: NodeCounts<'a>,
    electorate: Electorate<'a>,
    /// The node that hands its vote over for its restart.
    handing_over: Option<String>,
    /// Arranged once somebody comes so far: there are many.
    copies: OnceCell<Copies<'a>>,
    /// Counted once a master-eligible node comes so far.
    missing_voters: OnceCell<usize>,
    /// The newest version that runs; compared in a yellow cluster only.
    pub(super) newest: OnceCell<Option<Vec<u64>>>,
    /// Those kept stopped on request stand last, and are counted nowhere.
    peers: Vec<Peer<'a>>,
    /// How many stand before those.
    counted: usize,
    /// Places in `peers`, by uid.
    places: Lookup<'a, usize>,
    /// Names of nodes that are down, or may be at any moment because of us.
    down: BTreeSet<String>,
    /// Of these, names of the nodes under way.
    under_way: BTreeSet<String>,
}

impl<'a> Evaluation<'a> {
    /// Looks at everything. `together` are the uids of pods that are to go as one; whoever is not
    /// among them goes alone.
    ///
    /// # Errors
    /// The engine cannot be asked, or is not this cluster's.
    pub(crate) fn of(
        view: &Index<'a>,
        ledger: &Ledger,
        policy: &'a Policy,
        together: &Names<'_>,
    ) -> Result<Self, Blocker> {
        let engine = view.engine()?;
        let fenced: BTreeSet<String> =
            ledger.kept_stopped.iter().map(|fence| fence.node.clone()).collect();
        let open = ledger.members().filter(|member| member.step != Step::Finished);
        let steps: Lookup<'_, Step> =
            open.map(|member| (member.pod_uid.as_str(), member.step)).collect();
        let (mut peers, mut apart) = (Vec::new(), Vec::new());
        let mut expected_data = 0;
        for pod in view.pods() {
            let node = view.node(&pod.node);
            let step = steps.get(pod.uid.as_str());
            let under_way = step.is_some_and(|step| *step != Step::Scheduled);
            let fit = pod.ready && !pod.terminating && !pod.crash_looping;
            let peer = Peer {
                pod,
                node,
                healthy: fit && !under_way && view.serves(pod, node),
                wanted: step.is_some(),
                under_way,
                together: together.contains(pod.uid.as_str()),
            };
            if fenced.contains(&pod.node) {
                apart.push(peer);
                continue;
            }
            // A node that is not listed may be a data node: then it is missed.
            expected_data += usize::from(node.is_none_or(Node::holds_data));
            peers.push(peer);
        }
        let (census, counted) = (NodeCounts::of(&peers), peers.len());
        peers.extend(apart);
        let places = peers.iter().zip(0..).map(|(peer, at)| (peer.pod.uid.as_str(), at)).collect();
        // Also while a list lacks its pod.
        let under_way = ledger.under_way().map(|member| member.node.clone()).collect();
        let mut down = view.down(ledger);
        down.extend(peers.iter().filter(|peer| peer.together).map(|peer| peer.pod.node.clone()));
        Ok(Self {
            engine,
            policy,
            settled: Settled::of(engine, &fenced, expected_data),
            census,
            electorate: Electorate::of(engine),
            handing_over: ledger.debts.exclusion.as_ref().map(|debt| debt.node.clone()),
            copies: OnceCell::new(),
            missing_voters: OnceCell::new(),
            newest: OnceCell::new(),
            peers,
            counted,
            places,
            down,
            under_way,
        })
    }

    /// The peer of a pod.
    pub(crate) fn peer(&self, uid: &str) -> Option<&Peer<'a>> {
        self.places.get(uid).map(|at| &self.peers[*at])
    }

    /// All of them but those kept stopped.
    pub(super) fn peers(&self) -> &[Peer<'a>] {
        &self.peers[..self.counted]
    }

    /// Whether the pod is kept stopped on request.
    pub(super) fn is_kept_stopped(&self, pod: &Pod) -> bool {
        self.places.get(pod.uid.as_str()).is_some_and(|at| *at >= self.counted)
    }

    /// Where the copies of every shard are.
    pub(super) fn copies(&self) -> &Copies<'a> {
        self.copies.get_or_init(|| Copies::of(self.engine))
    }

    /// How many voters are not in the cluster.
    pub(super) fn missing_voters(&self) -> usize {
        *self.missing_voters.get_or_init(|| voters::missing_voters(self.engine))
    }

    /// How many nodes may be down at once.
    pub(super) fn budget(&self) -> usize {
        self.policy.max_unavailable.of(self.counted)
    }

    /// Names of the nodes under way that do not go together with the candidate.
    pub(super) fn under_way(&self) -> &BTreeSet<String> {
        &self.under_way
    }

    /// The same, for sentences.
    pub(super) fn under_way_in_words(&self) -> NameList<'_> {
        let mut words = NameList::default();
        self.under_way.iter().for_each(|name| words.add(name));
        words
    }

    /// Whether one more node may be given a slot at all, whatever state it is in: a limit of ours
    /// that nobody can disable.
    pub(crate) fn has_room(&self) -> bool {
        self.under_way.len() < self.budget()
    }

    /// What becomes of the votes without the candidate and without those who are down, or go
    /// together with it.
    fn votes(&self, candidate: &Peer<'_>) -> Votes {
        let down = self.others_down(candidate);
        self.electorate.without(candidate.name(), &down, self.handing_over.as_deref())
    }

    /// Passes if a master can be elected all the while, if need be because the candidate hands its
    /// vote over before its stop; or if an outage is allowed.
    pub(crate) fn quorum(&self, candidate: &Peer<'_>) -> Check {
        match self.votes(candidate) {
            Votes::Lost(refusal) if !self.policy.allow_outage => Err(refusal),
            Votes::Kept | Votes::HandedOverFirst(_) | Votes::Lost(_) => Ok(()),
        }
    }

    /// As [`Self::quorum`], at the last moment: what is to be handed over is.
    pub(super) fn quorum_now(&self, candidate: &Peer<'_>) -> Check {
        match self.votes(candidate) {
            Votes::HandedOverFirst(vote_recipient) if !self.policy.allow_outage => refuse(
                Code::Quorum,
                format!(
                    "{} has the only vote, and {vote_recipient} has not taken it over: its stop would be an \
                     outage of the whole cluster; spec.restart.allowOutage: true would accept that",
                    candidate.name()
                ),
            ),
            Votes::Lost(refusal) if !self.policy.allow_outage => Err(refusal),
            Votes::Kept | Votes::HandedOverFirst(_) | Votes::Lost(_) => Ok(()),
        }
    }

    /// On what terms a candidate goes that was let pass.
    pub(crate) fn terms(&self, pod: &Pod) -> Terms {
        let Some(candidate) = self.peer(&pod.uid) else { return Terms::default() };
        match self.votes(candidate) {
            Votes::Kept => Terms::default(),
            Votes::HandedOverFirst(vote_recipient) => {
                Terms { vote_recipient: Some(vote_recipient), ..Terms::default() }
            }
            Votes::Lost(_) => Terms { costs_quorum: true, ..Terms::default() },
        }
    }

    /// The nodes that are down, or go together with the candidate. It itself is judged as if it
    /// were up: its own stop is what is asked about.
    pub(super) fn others_down(
        &self,
        candidate: &Peer<'_>,
    ) -> std::borrow::Cow<'_, BTreeSet<String>> {
        let mut others = std::borrow::Cow::Borrowed(&self.down);
        if self.down.contains(candidate.name()) {
            others.to_mut().remove(candidate.name());
        }
        others
    }

    /// Whether its engine is the elected master: every election interrupts the cluster, so there is
    /// to be one only.
    pub(crate) fn is_elected(&self, pod: &Pod) -> bool {
        let node = self.peer(&pod.uid).and_then(|peer| peer.node);
        node.is_some_and(|node| self.engine.master.as_ref() == Some(&node.id))
    }

    /// Gives a slot in this pass: from now on the pod is on its way.
    pub(crate) fn pick(&mut self, uid: &str) {
        let at = self.places.get(uid).copied().filter(|at| *at < self.counted);
        let Some(at) = at else { return };
        if let Votes::HandedOverFirst(_) = self.votes(&self.peers[at]) {
            self.handing_over = Some(self.peers[at].pod.node.clone());
        }
        let peer = &mut self.peers[at];
        self.census.leave(peer);
        peer.healthy = false;
        peer.under_way = true;
        self.down.insert(peer.pod.node.clone());
        self.under_way.insert(peer.pod.node.clone());
    }

    /// Takes a slot back: the pod's restart is over, and it serves again.
    pub(crate) fn finish(&mut self, uid: &str) {
        let Some(at) = self.places.get(uid).copied() else { return };
        let peer = &mut self.peers[at];
        self.census.come_back(peer);
        peer.healthy = true;
        peer.under_way = false;
        peer.wanted = false;
        self.down.remove(&peer.pod.node);
        self.under_way.remove(&peer.pod.node);
        self.handing_over.take_if(|node| *node == peer.pod.node);
    }

    /// Whether the cluster misses the pod's node.
    pub(crate) fn is_missed(&self, uid: &str) -> bool {
        self.peer(uid).is_some_and(|peer| peer.node.is_none())
    }
}
