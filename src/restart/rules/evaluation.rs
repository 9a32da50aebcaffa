//! Everything the rules need to know about the cluster, counted once for all candidates, so that one
//! more candidate costs only the work for that candidate.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use glob::Pattern;

use crate::changes::{Check, refuse};
use crate::index::{Index, Lookup, NameSet, OwnedNameSet, lookup};
use crate::rules::copies::Copies;
use crate::rules::deleted_data::{self, Deletion};
use crate::rules::node_counts::{NodeCounts, Peer, Tiers, is_master};
use crate::rules::quorum::{MasterVoters, QuorumAfterStop, missing_voters};
use crate::rules::settled::SettledYellow;
use crate::rules::{NameList, last_resort};
use crate::snapshot::hold_data;
use crate::{Blocker, Code, Disabled, Engine, Ledger, MemberStep, Pod, Policy, Strategy, Time};

/// The state of the cluster, as the rules need it.
#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    /// The SearchCluster, as `namespace/name`, for commands in messages.
    pub(crate) cluster: &'a str,
    pub(crate) engine: &'a Engine,
    pub(crate) policy: &'a Policy,
    /// Predicates that the policy disables, and those that the request under way skips.
    pub(crate) disabled: Disabled,
    pub(crate) now: Time,
    pub(crate) settled: SettledYellow,
    pub(crate) counts: NodeCounts<'a>,
    master_voters: MasterVoters<'a>,
    /// The node whose vote is handed over for its restart.
    handing_over: Option<String>,
    /// Patterns of indices that may be unavailable, by consent of the request under way.
    consents: Vec<Pattern>,
    /// True if the request under way accepts an outage, for its own nodes.
    is_outage_requested: bool,
    /// Strategy of the request under way.
    strategy: Option<Strategy>,
    /// Parts of pods that a turn deletes, by uid of the pod whose turn has begun.
    deletions: BTreeMap<String, Deletion>,
    /// Shard copies by node, built when the first rule needs them: there are many copies.
    copies: OnceCell<Copies<'a>>,
    /// Number of voters that are not in the cluster, counted when the first master-eligible candidate needs
    /// it.
    missing_voters: OnceCell<usize>,
    /// The newest running version, compared in a yellow cluster only.
    newest: OnceCell<Option<Vec<u64>>>,
    /// All pods; those kept stopped come last and are not counted.
    peers: Vec<Peer<'a>>,
    /// Number of peers before those kept stopped.
    counted: usize,
    /// Positions in `peers`, by uid of the pod.
    places: Lookup<'a, usize>,
    /// Names of nodes that are down, or may go down at any moment because of us.
    down: OwnedNameSet,
    /// Names of the nodes under way.
    under_way: OwnedNameSet,
}

impl<'a> Evaluation<'a> {
    /// Evaluates the whole cluster once. `batch`: uids of the pods that are stopped together; every other pod
    /// goes alone.
    ///
    /// # Errors
    /// The engine is unreachable, or is not this cluster's.
    pub(crate) fn of(
        view: &Index<'a>,
        ledger: &Ledger,
        policy: &'a Policy,
        batch: &NameSet<'_>,
    ) -> Result<Self, Blocker> {
        let engine = view.engine()?;
        let kept_stopped: OwnedNameSet =
            ledger.kept_stopped.iter().map(|entry| entry.node.clone()).collect();
        let (kept, mut peers): (Vec<_>, Vec<_>) =
            peers(view, ledger, batch).partition(|peer| kept_stopped.contains(&peer.pod.node));
        // A node whose roles are unknown may be a data node: then it is missed.
        let expected_data = peers.iter().filter(|peer| peer.roles.is_none_or(hold_data)).count();
        let (counts, counted) = (NodeCounts::of(&peers), peers.len());
        peers.extend(kept);
        let places = peers.iter().zip(0..).map(|(peer, at)| (peer.pod.uid.as_str(), at)).collect();
        // This includes nodes whose pod is not in the snapshot.
        let under_way = ledger.under_way().map(|member| member.node.clone()).collect();
        let request = ledger.restart.as_ref().map(|restart| &restart.request);
        // The patterns were checked when the request was accepted.
        let consents = request.into_iter().flat_map(|request| &request.allow_unreplicated);
        let mut down = view.down(ledger);
        down.extend(peers.iter().filter(|peer| peer.is_in_batch).map(|peer| peer.pod.node.clone()));
        Ok(Self {
            cluster: view.cluster(),
            engine,
            policy,
            disabled: policy.disabled.clone().with_restart(ledger.restart.as_ref()),
            now: view.now(),
            settled: SettledYellow::of(engine, &kept_stopped, expected_data),
            counts,
            master_voters: MasterVoters::of(engine, view.cluster()),
            handing_over: ledger.debts.exclusion.as_ref().map(|debt| debt.node.clone()),
            consents: consents.filter_map(|pattern| Pattern::new(pattern).ok()).collect(),
            is_outage_requested: request.is_some_and(|request| request.allow_outage),
            strategy: request.map(|request| request.strategy),
            deletions: deleted_data::of_turns(ledger)
                .map(|(uid, deletion)| (uid.to_owned(), deletion))
                .collect(),
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

    /// This evaluation without the permissions of the request under way, for a stop that does not belong to
    /// the request.
    pub(crate) fn without_request(mut self) -> Self {
        self.disabled = self.policy.disabled.clone();
        self.consents.clear();
        self.is_outage_requested = false;
        self.strategy = None;
        self
    }

    pub(crate) fn peer(&self, uid: &str) -> Option<&Peer<'a>> {
        self.places.get(uid).map(|at| &self.peers[*at])
    }

    /// All peers but those kept stopped.
    #[cfg(test)]
    pub(crate) fn peers(&self) -> &[Peer<'a>] {
        &self.peers[..self.counted]
    }

    /// True if the pod is kept stopped on request.
    pub(crate) fn is_kept_stopped(&self, pod: &Pod) -> bool {
        self.places.get(pod.uid.as_str()).is_some_and(|at| *at >= self.counted)
    }

    pub(crate) fn copies(&self) -> &Copies<'a> {
        self.copies.get_or_init(|| Copies::of(self.engine, &self.down))
    }

    /// Number of voters that are not in the cluster.
    pub(crate) fn missing_voters(&self) -> usize {
        *self.missing_voters.get_or_init(|| missing_voters(self.engine))
    }

    /// True if the cluster has only one node, and none that is kept stopped: such a cluster is never better
    /// than yellow.
    pub(crate) fn is_alone(&self) -> bool {
        self.peers.len() == 1 && self.engine.nodes.len() == 1
    }

    /// Number of nodes that may be down at once.
    pub(crate) fn budget(&self) -> usize {
        self.policy.max_unavailable.of(self.counted)
    }

    /// Names of the nodes under way that are not in the candidate's batch.
    pub(crate) fn under_way(&self) -> &OwnedNameSet {
        &self.under_way
    }

    /// Names of the nodes under way that are not in the candidate's batch, for messages.
    pub(crate) fn under_way_names(&self) -> NameList<'_> {
        let mut names = NameList::default();
        self.under_way.iter().for_each(|name| names.add(name));
        names
    }

    /// True if one more node may take a slot, in whatever state the node is. This limit cannot be disabled.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.under_way.len() < self.budget()
    }

    /// The quorum without the candidate, the nodes that are down and those in its batch.
    pub(crate) fn quorum_after_stop(&self, candidate: &Peer<'_>) -> QuorumAfterStop {
        self.master_voters.after_stop(candidate.name(), &self.down, self.handing_over.as_deref())
    }

    /// Passes if a master can be elected at any time, if need be because the candidate hands its vote
    /// over before its stop; or if an outage is allowed.
    pub(crate) fn quorum(&self, candidate: &Peer<'_>) -> Check {
        match self.quorum_after_stop(candidate) {
            QuorumAfterStop::Lost(blocker) if !self.allows_outage(candidate) => Err(blocker),
            QuorumAfterStop::Kept
            | QuorumAfterStop::KeptByHandover(_)
            | QuorumAfterStop::Lost(_) => Ok(()),
        }
    }

    /// Like [`Self::quorum`], right before the stop: by now the vote must be handed over.
    pub(crate) fn quorum_now(&self, candidate: &Peer<'_>) -> Check {
        match self.quorum_after_stop(candidate) {
            QuorumAfterStop::KeptByHandover(vote_recipient) if !self.allows_outage(candidate) => {
                refuse(
                    Code::Quorum,
                    format!(
                        "{} has the only vote, and {vote_recipient} has not taken it over: the stop \
                         would be an outage of the whole cluster, so it waits until it has; \
                         {}",
                        candidate.name(),
                        last_resort(self.cluster)
                    ),
                )
            }
            QuorumAfterStop::Lost(blocker) if !self.allows_outage(candidate) => Err(blocker),
            QuorumAfterStop::Kept
            | QuorumAfterStop::KeptByHandover(_)
            | QuorumAfterStop::Lost(_) => Ok(()),
        }
    }

    /// True if the stop of the candidate may be an outage: by the policy, or by the request under way if the
    /// candidate is a member of it.
    pub(crate) const fn allows_outage(&self, candidate: &Peer<'_>) -> bool {
        self.policy.allow_outage || (candidate.is_requested && self.is_outage_requested)
    }

    /// The part that the restart under way deletes with the candidate's data in it, if any.
    pub(crate) fn deletion(&self, candidate: &Peer<'_>) -> Option<Deletion> {
        let fixed = self.deletions.get(candidate.pod.uid.as_str()).copied();
        let strategy = self.strategy.filter(|_| candidate.is_requested)?;
        deleted_data::deletion(self.policy, strategy, fixed, candidate.pod)
    }

    /// True if the request accepts that this index without replicas is unavailable for a while.
    pub(crate) fn is_consented(&self, index: &str) -> bool {
        self.consents.iter().any(|pattern| pattern.matches(index))
    }

    /// True if the data of this index is known to be in a snapshot repository.
    pub(crate) fn is_searchable_snapshot(&self, index: &str) -> bool {
        self.engine.searchable_snapshots.as_ref().is_ok_and(|names| names.contains(index))
    }

    /// True if the pod's engine is the elected master.
    pub(crate) fn is_elected(&self, pod: &Pod) -> bool {
        let node = self.peer(&pod.uid).and_then(|peer| peer.node);
        node.is_some_and(|node| self.engine.elected_master.as_ref() == Some(&node.id))
    }

    /// Counts the pod as under way from now on.
    pub(crate) fn take_slot(&mut self, uid: &str) {
        let at = self.places.get(uid).copied().filter(|at| *at < self.counted);
        let Some(at) = at else { return };
        if let QuorumAfterStop::KeptByHandover(_) = self.quorum_after_stop(&self.peers[at]) {
            self.handing_over = Some(self.peers[at].pod.node.clone());
        }
        let peer = &mut self.peers[at];
        self.counts.add_leaving(peer);
        peer.is_healthy = false;
        peer.under_way = true;
        self.down.insert(peer.pod.node.clone());
        if let Some(copies) = self.copies.get_mut() {
            copies.set_down(&peer.pod.node);
        }
        self.under_way.insert(peer.pod.node.clone());
    }

    /// True if the pod's node is in the cluster and has not reported its roles: it may hang.
    pub(crate) fn is_silent(&self, uid: &str) -> bool {
        let node = self.peer(uid).and_then(|peer| peer.node);
        node.is_some_and(|node| node.roles_unknown)
    }
}

/// The pods, as the rules see them.
fn peers<'a>(
    view: &Index<'a>,
    ledger: &Ledger,
    batch: &NameSet<'_>,
) -> impl Iterator<Item = Peer<'a>> {
    let open = ledger.members().filter(|member| member.step != MemberStep::Finished);
    let steps =
        lookup(view.pods().len(), open.map(|member| (member.pod_uid.as_str(), member.step)));
    view.pods().map(move |pod| {
        let node = view.node(&pod.node);
        let step = steps.get(pod.uid.as_str());
        let under_way = step.is_some_and(|step| *step != MemberStep::Scheduled);
        // The kubelet's view of the pod does not count: another container of it may be broken, and a stop
        // of an engine that serves takes its shards and its vote away all the same.
        let serves = !pod.terminating && view.serves(pod, node);
        let roles = match node {
            Some(node) => Some(&node.roles).filter(|_| !node.roles_unknown),
            None => view.remembered_roles(&pod.node),
        };
        Peer {
            pod,
            node,
            roles,
            tiers: roles.and_then(Tiers::of),
            is_master: is_master(node, roles),
            serves,
            is_healthy: serves && !under_way,
            is_requested: step.is_some(),
            under_way,
            is_in_batch: batch.contains(pod.uid.as_str()),
        }
    })
}

impl Evaluation<'_> {
    /// True if another node in the cluster runs a newer version.
    pub(crate) fn is_behind(&self, candidate: &Peer<'_>) -> bool {
        let newest = self.newest.get_or_init(|| {
            self.engine.nodes.iter().filter_map(|node| numbers(&node.version)).max()
        });
        let own = candidate.node.and_then(|node| numbers(&node.version));
        // A version that is not made of numbers is not compared.
        own.is_some_and(|own| newest.as_ref().is_some_and(|newest| own < *newest))
    }
}

/// Numbers of a version: 8, 19, 0 of `8.19.0-SNAPSHOT`. `None`: it is not made of numbers.
pub(crate) fn numbers(version: &str) -> Option<Vec<u64>> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map(|number| number.parse().ok()).collect()
}
