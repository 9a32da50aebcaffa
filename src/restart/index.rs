//! The snapshot, indexed for the look-ups of decisions. Built once for each plan.

use std::cell::OnceCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::changes::Blocker;
use super::{
    Allocation, Cluster, Code, Engine, Ledger, Manager, Member, Node, Phase, Pod, Snapshot, Time,
    annotation,
};
pub(super) use foldhash::fast::FixedState as Hashed;
use stayput_api::State;

/// Finds things in one snapshot.
pub(super) struct Index<'a> {
    /// The SearchCluster, as `namespace/name`.
    cluster: &'a str,
    now: Time,
    /// Pods by name, then by uid. The reconciler lists its pods by name and a ledger its members: in
    /// this order they lie next to each other in memory, which is faster to read.
    pods: Vec<&'a Pod>,
    /// Annotations of each of `pods`, at the same place.
    marks: Vec<Marks<'a>>,
    /// Places in `pods`, by uid.
    by_uid: Lookup<'a, usize>,
    /// Pods by name. Built on first use, which is rare.
    by_name: OnceCell<Lookup<'a, &'a Pod>>,
    nodes: Lookup<'a, &'a Node>,
    /// Roles of members under way, by name of the node.
    remembered: Lookup<'a, &'a BTreeSet<String>>,
    engine: Result<&'a Engine, Blocker>,
}

impl<'a> Index<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        let listed = snapshot.engine.as_ref().map_or(&[][..], |engine| &engine.nodes);
        let mut nodes: Lookup<'_, &Node> = with_room(listed.len());
        for node in listed {
            // If two nodes have the same name, the one that needs more protection counts, in
            // whatever order they come.
            let care = |node: &Node| (node.is_master_eligible(), node.holds_data());
            let entry = nodes.entry(node.name.as_str()).and_modify(|known| {
                if (care(node), node) > (care(known), *known) {
                    *known = node;
                }
            });
            entry.or_insert(node);
        }
        let engine = engine_of_cluster(snapshot, &nodes);
        if engine.is_err() {
            nodes.clear();
        }
        let (pods, by_uid) = pods_by_name(snapshot);
        let marks = pods.iter().map(|pod| Marks::of(&snapshot.cluster, pod)).collect();
        let under_way = snapshot.ledger.under_way().filter(|member| !member.roles.is_empty());
        let remembered = under_way.map(|member| (member.node.as_str(), &member.roles)).collect();
        Self {
            cluster: &snapshot.cluster.name,
            now: snapshot.now,
            pods,
            marks,
            by_uid,
            by_name: OnceCell::new(),
            nodes,
            remembered,
            engine,
        }
    }

    /// The SearchCluster, as `namespace/name`, for commands in messages.
    pub(super) const fn cluster(&self) -> &'a str {
        self.cluster
    }

    /// When the snapshot was read.
    pub(super) const fn now(&self) -> Time {
        self.now
    }

    /// The pod with this uid.
    pub(super) fn pod(&self, uid: &str) -> Option<&'a Pod> {
        Some(self.pod_at(self.place(uid)?))
    }

    /// The pod at this place.
    pub(super) fn pod_at(&self, place: usize) -> &'a Pod {
        self.pods[place]
    }

    /// Place of the pod with this uid among all pods.
    pub(super) fn place(&self, uid: &str) -> Option<usize> {
        self.by_uid.get(uid).copied()
    }

    /// The pod that replaced the pod of a member.
    pub(super) fn successor(&self, member: &Member) -> Option<&'a Pod> {
        if self.by_uid.contains_key(&*member.pod_uid) {
            return None;
        }
        let by_name = || self.pods().map(|pod| (pod.name.as_str(), pod)).collect();
        self.by_name.get_or_init(by_name).get(member.pod.as_str()).copied()
    }

    /// Every pod, by name.
    pub(super) fn pods(&self) -> impl ExactSizeIterator<Item = &'a Pod> + '_ {
        self.pods.iter().copied()
    }

    /// Every pod, by name, with its annotations.
    pub(super) fn marked_pods(&self) -> impl Iterator<Item = (&'a Pod, &Marks<'a>)> + '_ {
        self.pods().zip(&self.marks)
    }

    /// Annotations of the pod at this place.
    pub(super) fn marks_at(&self, place: usize) -> &Marks<'a> {
        &self.marks[place]
    }

    /// The manager of this pod, if it answers and is this pod's.
    pub(super) fn manager(&self, uid: &str) -> Result<&'a Manager, Blocker> {
        let Some(pod) = self.pod(uid) else {
            let message = "the pod is gone".to_owned();
            return Err(Blocker { code: Code::PodGone, message });
        };
        Self::manager_of(pod)
    }

    /// Answer of the pod's manager, or the blocker that says why there is none.
    pub(super) fn manager_of(pod: &Pod) -> Result<&Manager, Blocker> {
        let manager = pod.manager.as_ref().map_err(|unknown| match &pod.not_started {
            Some(not_started) => Blocker {
                code: Code::PodNotStarted,
                message: format!("its pod has never started: {not_started}"),
            },
            None => Blocker { code: Code::ManagerUnreachable, message: unknown.message.clone() },
        })?;
        match &manager.pod_uid {
            Some(uid) if *uid == pod.uid => Ok(manager),
            Some(uid) => Err(Blocker {
                code: Code::WrongPod,
                message: format!(
                    "the manager at the address of {} says that it is in pod {uid}, not in {}",
                    pod.name, pod.uid
                ),
            }),
            None => Err(Blocker {
                code: Code::WrongPod,
                message: format!(
                    "the manager of {} does not know its pod: give its container STAYPUT_POD_UID \
                     from metadata.uid",
                    pod.name
                ),
            }),
        }
    }

    /// The engine, if it answers and is this cluster's.
    pub(super) fn engine(&self) -> Result<&'a Engine, Blocker> {
        self.engine.clone()
    }

    /// The engine's entry of a node.
    pub(super) fn node(&self, name: &str) -> Option<&'a Node> {
        self.nodes.get(name).copied()
    }

    /// The roles that a node under way had before its stop: while it is down, the engine does not list
    /// it. `None` if they are not known.
    pub(super) fn remembered_roles(&self, name: &str) -> Option<&'a BTreeSet<String>> {
        self.remembered.get(name).copied()
    }

    /// The engine's allocation setting.
    pub(super) fn allocation(&self) -> Result<&'a Allocation, Blocker> {
        self.engine()?.allocation.as_ref().map_err(Blocker::engine_unreachable)
    }

    /// True if the node serves: its engine runs, and the cluster lists it and knows its roles.
    pub(super) fn is_up(&self, pod: &Pod) -> bool {
        self.serves(pod, self.node(&pod.node))
    }

    /// True if the pod serves, by its manager and by `node`, the engine's entry for it.
    pub(super) fn serves(&self, pod: &Pod, node: Option<&Node>) -> bool {
        let runs = pod.manager.as_ref().is_ok_and(|manager| manager.state == State::Running);
        runs && (self.engine.is_err() || node.is_some_and(|node| !node.roles_unknown))
    }

    /// Names of the nodes that are down, or may be at any moment: because of us, or because their pod
    /// is being deleted. Until the hook before its stop is over, such a node is listed as any other.
    pub(super) fn down(&self, ledger: &Ledger) -> OwnedNameSet {
        let mut down: OwnedNameSet =
            ledger.kept_stopped.iter().map(|kept| kept.node.clone()).collect();
        down.extend(ledger.debts.start.iter().map(|debt| debt.node.clone()));
        down.extend(ledger.under_way().map(|member| member.node.clone()));
        let stopped = self.pods.iter().filter(|pod| {
            pod.terminating
                || pod.manager.as_ref().is_ok_and(|manager| manager.state != State::Running)
        });
        down.extend(stopped.map(|pod| pod.node.clone()));
        // It does not answer the other nodes.
        let silent = self.nodes.values().filter(|node| node.roles_unknown);
        down.extend(silent.map(|node| node.name.clone()));
        down
    }
}

/// The pods by name, one for each uid, and the place of each.
fn pods_by_name(snapshot: &Snapshot) -> (Vec<&Pod>, Lookup<'_, usize>) {
    let mut listed: Vec<&Pod> = snapshot.pods.iter().collect();
    listed.sort_by(|one, other| (&one.name, &one.uid).cmp(&(&other.name, &other.uid)));
    let mut pods = Vec::with_capacity(listed.len());
    let mut by_uid = with_room(listed.len());
    for pod in listed {
        if let Entry::Vacant(place) = by_uid.entry(pod.uid.as_str()) {
            place.insert(pods.len());
            pods.push(pod);
        }
    }
    (pods, by_uid)
}

/// The engine, unless the one that answers at the addresses of our pods belongs to another cluster.
fn engine_of_cluster<'a>(
    snapshot: &'a Snapshot,
    nodes: &Lookup<'_, &Node>,
) -> Result<&'a Engine, Blocker> {
    let engine = snapshot.engine.as_ref().map_err(Blocker::engine_unreachable)?;
    let wrong = |message| Err(Blocker { code: Code::WrongCluster, message });
    match &snapshot.ledger.cluster_uuid {
        Some(uuid) if *uuid != engine.cluster_uuid => {
            return wrong(format!(
                "the engine that answers belongs to cluster {}, not to {uuid} as before; if that \
                 is right, remove status.clusterUuid of the SearchCluster",
                engine.cluster_uuid
            ));
        }
        Some(_) | None => {}
    }
    let is_listed = |pod: &Pod| nodes.contains_key(pod.node.as_str());
    if !snapshot.pods.is_empty() && !snapshot.pods.iter().any(is_listed) {
        let names: BTreeSet<&str> = engine.nodes.iter().map(|node| node.name.as_str()).collect();
        return wrong(format!(
            "the engine that answers lists none of the pods' nodes (it lists {}); node names must \
             be pod names, or spec.pods.nodeNameLabel must name them",
            names.into_iter().take(5).collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(engine)
}

/// The annotations of one pod that every plan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks<'a> {
    /// The phase, whether we or a person wrote it.
    pub(super) phase: Option<&'a str>,
    /// The restart id and the phase that we last wrote, as one text.
    pub(super) shown: Option<&'a str>,
    /// True if the spec or an annotation requests that the node is kept stopped.
    pub(super) is_to_be_stopped: bool,
}

impl<'a> Marks<'a> {
    pub(super) fn of(cluster: &Cluster, pod: &'a Pod) -> Self {
        let mut marks = Self { is_to_be_stopped: cluster.keeps_stopped(pod), ..Self::default() };
        // The texts of keys with different lengths need not be compared.
        for (key, value) in &pod.annotations {
            match key.as_str() {
                annotation::PHASE => marks.phase = Some(value),
                annotation::SHOWN => marks.shown = Some(value),
                _ => {}
            }
        }
        marks
    }

    /// The phase that we last wrote on the pod.
    pub(super) fn shown_phase(&self) -> Option<&'a str> {
        self.shown_pair().map(|(_, phase)| phase)
    }

    /// The restart id and the phase that we last wrote on the pod.
    pub(super) fn shown_pair(&self) -> Option<(&'a str, &'a str)> {
        self.shown?.split_once(' ')
    }

    /// The phase of this restart that the pod shows, unless it shows one of another restart.
    pub(super) fn shown_of(&self, id: &str) -> Option<Phase> {
        let (_, phase) = self.shown_pair().filter(|(of, _)| *of == id)?;
        Phase::parse(phase).ok()
    }
}

/// Values by a name or uid. Hashed without random keys, and never iterated where the order could be seen: with
/// thousands of pods a look-up in an ordered tree of strings costs more than the rule that needs it.
pub(super) type Lookup<'a, T> = HashMap<&'a str, T, Hashed>;

/// A table with room for `most` entries: a table that grows hashes all of its entries again.
pub(super) fn with_room<'a, T>(most: usize) -> Lookup<'a, T> {
    Lookup::with_capacity_and_hasher(most, Hashed::default())
}

/// Collects at most `most` entries, where the iterator does not know how many come.
pub(super) fn lookup<'a, T>(
    most: usize,
    entries: impl Iterator<Item = (&'a str, T)>,
) -> Lookup<'a, T> {
    let mut lookup = with_room(most);
    lookup.extend(entries);
    lookup
}

/// A set of borrowed names or uids.
pub(super) type NameSet<'a> = HashSet<&'a str, Hashed>;

/// A set of owned names or uids.
pub(super) type OwnedNameSet = HashSet<String, Hashed>;
