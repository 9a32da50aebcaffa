//! The objects to apply now: new sets and higher counts first, then changes of existing sets. Masters
//! join one at a time. [`crate::leave()`] decides how nodes leave.

use std::collections::BTreeMap;

use crate::bootstrap::{NEVER_FORMED, config_map, lost_masters};
use crate::check::{check, engine_changes};
use crate::cluster::roles;
use crate::config::{minimum_master_nodes, secret};
use crate::object::{service, stateful_set};
use crate::{Bootstrap, Cluster, NodeSet, Object, Observed, ObservedSet, Refusal};

/// The objects to apply now, and why the rest waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Objects in the order to apply: an object that a pod mounts comes before the pod.
    pub objects: Vec<Object>,
    /// Why the rest of the declaration waits, unless all of it is in `objects`.
    pub waiting: Option<String>,
    /// How the cluster forms, if it has not yet.
    pub bootstrap: Bootstrap,
}

/// The objects to apply now. A second plan, made after the first was applied, is the same.
///
/// # Errors
/// Everything for which nothing is changed.
pub fn plan(cluster: &Cluster, observed: &Observed) -> Result<Plan, Vec<Refusal>> {
    let mut refusals = check(cluster);
    refusals.extend(changes(cluster, observed));
    if !refusals.is_empty() {
        refusals.sort();
        return Err(refusals);
    }
    let bootstrap = Bootstrap::wanted(cluster, observed);
    let counts = counts(cluster, observed, bootstrap.is_forming());
    let growing = counts.values().any(|turn| turn.now < turn.wanted);

    let mut sets: Vec<&NodeSet> = cluster.sorted();
    sets.retain(|set| {
        let turn = counts[set.name.as_str()];
        // A set that does not grow is changed when the others have grown.
        turn.now > 0 && !(growing && turn.before >= turn.wanted)
    });
    // Masters first: the others wait for one.
    sets.sort_by_key(|set| !roles(set).master);
    let mut objects: Vec<Object> = sets.iter().map(|set| secret(cluster, set)).collect();
    if !cluster.engine.has_minimum_master_nodes() {
        objects.push(config_map(cluster, &bootstrap));
    }
    objects.push(service(cluster));
    let stateful = |set: &&NodeSet| {
        let count = counts[set.name.as_str()].now;
        stateful_set(cluster, set, count, observed.sets.get(&set.name))
    };
    objects.extend(sets.iter().map(stateful));
    Ok(Plan { objects, waiting: waiting(&counts), bootstrap })
}

/// Number of nodes of a set: before, now, and in the end.
#[derive(Debug, Clone, Copy)]
struct SetCount {
    before: u32,
    now: u32,
    wanted: u32,
}

/// While the cluster forms, all masters start: none of them could be elected alone.
fn counts<'a>(
    cluster: &'a Cluster,
    observed: &Observed,
    forming: bool,
) -> BTreeMap<&'a str, SetCount> {
    let at_once = forming || cluster.engine.has_minimum_master_nodes();
    let is_there = |set: &NodeSet| observed.sets.get(&set.name);
    let mut is_joining = cluster
        .node_sets
        .iter()
        .any(|set| roles(set).master && is_there(set).is_some_and(|set| set.ready < set.replicas));
    let mut counts = BTreeMap::new();
    for set in cluster.sorted() {
        let before = is_there(set).map_or(0, |set| set.replicas);
        let wanted = set.count;
        let now = if !roles(set).master || at_once || before >= wanted {
            // Nodes leave one by one, each when it can be taken away.
            wanted.max(before)
        } else if is_joining {
            before
        } else {
            is_joining = true;
            before + 1
        };
        counts.insert(set.name.as_str(), SetCount { before, now, wanted });
    }
    counts
}

fn waiting(counts: &BTreeMap<&str, SetCount>) -> Option<String> {
    let (set, turn) = counts.iter().find(|(_, turn)| turn.now < turn.wanted)?;
    Some(format!(
        "node set {set} gets {} of {} nodes now: masters join one at a time, each when all masters \
         before it are ready; changes of other node sets follow",
        turn.now, turn.wanted
    ))
}

/// Changes that the existing cluster cannot take.
fn changes(cluster: &Cluster, observed: &Observed) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let is_forming = Bootstrap::wanted(cluster, observed).is_forming();
    for set in &cluster.node_sets {
        let there = observed.sets.get(&set.name);
        refusals
            .extend(there.into_iter().flat_map(|there| change(cluster, set, there, is_forming)));
    }
    refusals.extend(engine_changes(cluster, observed));
    refusals.extend(lost_masters(cluster, observed));
    refusals
}

/// Other masters than the first ones cannot form the cluster, so another node set does not help them.
fn other_claims(is_of_first_masters: bool) -> String {
    let remedy = if is_of_first_masters {
        format!(
            "put them back; if the cluster can never form with them: docs/declared.md, {NEVER_FORMED}"
        )
    } else {
        "put them back, and declare a node set with another name beside it".to_owned()
    };
    format!("differ from those that the nodes have, which Kubernetes cannot change: {remedy}")
}

fn change(cluster: &Cluster, set: &NodeSet, there: &ObservedSet, is_forming: bool) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if there.claims().is_some_and(|claims| *claims != set.volume_claim_templates) {
        refusals.push(Refusal::of_set(
            &set.name,
            "volumeClaimTemplates",
            other_claims(is_forming && roles(set).master),
        ));
    }
    let minimum = minimum_master_nodes(cluster);
    if cluster.engine.has_minimum_master_nodes()
        && there.declared["minimumMasterNodes"]
            .as_u64()
            .is_some_and(|was| was != u64::from(minimum))
    {
        refusals.push(Refusal::of_set(
            &set.name,
            "count",
            "changes the number of masters: this is supported from Elasticsearch 7 on. Before, every \
             node has discovery.zen.minimum_master_nodes in its config",
        ));
    }
    refusals
}
