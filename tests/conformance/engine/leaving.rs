//! Nodes that leave: their copies move away, what cannot move says why, and their votes come first.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Cluster, ask, copies, create_index, delete_index, eventually, get, primary_and_replica,
};
use super::{put, view};

/// Nodes from which copies move away, by name.
const EXCLUDED: &str = "cluster.routing.allocation.exclude._name";

fn exclude(cluster: &dyn Cluster, names: Option<&str>) {
    put(cluster, 0, "/_cluster/settings", &json!({"persistent": {EXCLUDED: names}}));
}

pub(super) fn an_excluded_node_is_emptied(cluster: &mut dyn Cluster) {
    create_index(cluster, "docs", 1, 1);
    let (primary, replica) = primary_and_replica(cluster, 0, "docs");
    let leaves = cluster.name(primary);
    exclude(cluster, Some(&leaves));
    eventually("its copy is on another node", || {
        let rows = copies(cluster, replica, "docs");
        let is_elsewhere = |on: &Option<String>| on.as_ref().is_some_and(|name| *name != leaves);
        let settled = rows.iter().all(|(_, _, state, on)| state == "STARTED" && is_elsewhere(on));
        (rows.len() == 2 && settled).then_some(())
    });
    exclude(cluster, None);
    delete_index(cluster, "docs");
}

/// Three copies on three nodes: none can go anywhere.
pub(super) fn a_copy_that_cannot_move_says_why(cluster: &mut dyn Cluster) {
    create_index(cluster, "docs", 1, 2);
    let [leaves, also, _] = [0, 1, 2].map(|node| cluster.name(node));
    exclude(cluster, Some(&leaves));
    let rows = copies(cluster, 0, "docs");
    let on_it = rows.iter().find(|(_, _, _, on)| on.as_ref() == Some(&leaves));
    let is_primary = on_it.expect("a copy on each node").1 == "p";
    let mut asked = json!({"index": "docs", "shard": 0, "primary": is_primary});
    if !is_primary {
        asked["current_node"] = json!(leaves);
    }
    let explain = || ask(cluster, 0, ("GET", "/_cluster/allocation/explain"), Some(&asked), 200);
    let deciders = |answer: &Value| -> Vec<BTreeSet<(String, String)>> {
        let nodes = answer["node_allocation_decisions"].as_array().expect("the other nodes");
        let refused = |node: &Value| {
            let deciders = node["deciders"].as_array().expect("deciders").iter();
            let no = deciders.filter(|one| one["decision"] == "NO");
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            no.map(|one| (text(&one["decider"]), text(&one["explanation"]))).collect()
        };
        nodes.iter().map(refused).collect()
    };

    let answer = explain();
    assert_eq!((&answer["index"], &answer["shard"]), (&json!("docs"), &json!(0)));
    assert_eq!(answer["can_remain_on_current_node"], "no", "{answer:#}");
    assert_eq!(answer["can_move_to_other_node"], "no", "{answer:#}");
    assert!(answer["move_explanation"].is_string(), "{answer:#}");
    let others = deciders(&answer);
    assert_eq!(others.len(), 2, "{answer:#}");
    for node in &others {
        assert!(node.iter().any(|(decider, _)| decider == "same_shard"), "{answer:#}");
        assert!(node.iter().all(|(decider, _)| decider != "filter"), "{answer:#}");
    }

    exclude(cluster, Some(&format!("{leaves},{also}")));
    let answer = explain();
    let filtered = deciders(&answer).into_iter().flatten().filter(|(name, _)| name == "filter");
    let words: Vec<String> = filtered.map(|(_, words)| words).collect();
    let [words] = &words[..] else { panic!("one node is filtered: {answer:#}") };
    assert!(words.contains("[cluster.routing.allocation.exclude]"), "{words}");
    exclude(cluster, None);
    delete_index(cluster, "docs");
}

pub(super) fn a_vote_is_excluded_and_comes_back(cluster: &mut dyn Cluster) {
    let before = view(cluster, 0);
    let other = (before.master(cluster) + 1) % 3;
    let (name, id) = (cluster.name(other), before.id(cluster, other).to_owned());
    let coordination = |cluster: &dyn Cluster| {
        let target = "/_cluster/state/metadata?filter_path=metadata.cluster_coordination";
        get(cluster, 0, target)["metadata"]["cluster_coordination"].clone()
    };
    let path = "/_cluster/voting_config_exclusions";
    let target = format!("{path}?node_names={name}&timeout=10s");
    ask(cluster, 0, ("POST", &target), None, 200);
    // It is answered when the vote is out of the configuration.
    let without = coordination(cluster);
    let expected = json!([{"node_id": id, "node_name": name}]);
    assert_eq!(without["voting_config_exclusions"], expected);
    let voters = without["last_committed_config"].as_array().expect("a list");
    assert!(!voters.contains(&json!(id)) && voters.contains(&json!(before.master)), "{without:#}");

    let target = format!("{path}?wait_for_removal=false");
    ask(cluster, 0, ("DELETE", &target), None, 200);
    eventually("all three vote again", || {
        let state = coordination(cluster);
        let voters = state["last_committed_config"].as_array()?.len();
        (voters == 3 && state["voting_config_exclusions"] == json!([])).then_some(())
    });
    assert_eq!(view(cluster, 0).committed, before.committed);
}
