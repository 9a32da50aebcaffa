//! Claims that are there before the nodes that would mount them.

use super::{applied, made, outline, planned, set, usual};
use crate::{
    Bootstrap, CLUSTER, NODE_SET, Observed, SeenClaim, foreign_claims, going_claim, makes_claims,
};

fn claim(name: &str, labels: &[(&str, &str)]) -> SeenClaim {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    SeenClaim { name: name.to_owned(), labels: labels.collect(), is_being_deleted: false }
}

#[test] // proves DECLARE-15
fn a_claim_without_the_labels_of_its_set_is_named_with_what_to_do() {
    let cluster = usual();
    let there = [
        claim("data-logs-data-0", &[(CLUSTER, "logs"), (NODE_SET, "data")]),
        claim("data-logs-data-1", &[(CLUSTER, "logs"), (NODE_SET, "hot")]),
        claim("data-logs-data-2", &[]),
        claim("data-logs-masters-2", &[("app", "chart")]),
        claim("logs-data-logs-data-0", &[]),
    ];
    let there = Observed { claims: there.into(), ..Observed::default() };
    let foreign: Vec<String> =
        foreign_claims(&cluster, &there).iter().map(ToString::to_string).collect();
    assert_eq!(
        foreign,
        [
            "PersistentVolumeClaim data-logs-data-1 exists and is not of node set data, whose node \
             would start on what is in it: choose another name for the node set; if it is meant to, \
             give the claim the labels stayput.dev/cluster=logs and stayput.dev/node-set=data; or \
             delete it with what is in it",
            "PersistentVolumeClaim data-logs-masters-2 exists and is not of node set masters, whose \
             node would start on what is in it: choose another name for the node set; if it is meant \
             to, give the claim the labels stayput.dev/cluster=logs and \
             stayput.dev/node-set=masters; or delete it with what is in it",
        ]
    );
}

#[test] // proves DECLARE-15
fn only_claims_of_nodes_that_are_not_made_yet_count() {
    let mut cluster = usual();
    let claims = vec![claim("data-logs-data-1", &[]), claim("data-logs-data-2", &[])];
    let there = Observed { claims, ..made(&cluster) };
    assert!(!makes_claims(&cluster, &there), "every node is made");
    assert_eq!(foreign_claims(&cluster, &there), []);
    cluster.node_sets[1].count = 3;
    assert!(makes_claims(&cluster, &there));
    let found = foreign_claims(&cluster, &there);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].to_string().contains("data-logs-data-2"), "{found:?}");
}

#[test]
fn a_set_without_claims_needs_no_look_at_them() {
    let mut cluster = usual();
    for set in &mut cluster.node_sets {
        set.volume_claim_templates.clear();
    }
    assert!(!makes_claims(&cluster, &Observed::default()));
    cluster.node_sets.push(set("more", 1, &["data"]));
    assert!(makes_claims(&cluster, &Observed::default()));
}

/// A claim that an earlier cluster of the same names has left.
fn left(name: &str, set: &str) -> SeenClaim {
    claim(name, &[(CLUSTER, "logs"), (NODE_SET, set)])
}

/// Two masters without data would be a majority, and form an empty cluster beside the third one.
#[test] // proves DECLARE-19
fn no_first_masters_are_named_where_an_earlier_cluster_has_left_a_claim() {
    let cluster = usual();
    for (name, set) in [("data-logs-masters-1", "masters"), ("data-logs-data-0", "data")] {
        let there = Observed { claims: vec![left(name, set)], ..Observed::default() };
        let plan = planned(&cluster, &there);
        let expected = Bootstrap::Claims(vec![name.to_owned()]);
        assert_eq!(plan.bootstrap, expected, "all masters start, and none has a name");
        assert!(outline(&plan).contains(&"StatefulSet logs-masters 3".to_owned()), "{name}");
        // The claims of the other nodes are made meanwhile, and the reconciler is killed at any object.
        for made in 0..=plan.objects.len() {
            let mut again = applied(there.clone(), &plan.objects[..made]);
            again.claims.push(left("data-logs-masters-2", "masters"));
            again.claims.retain(|claim| claim.name == name || !again.sets.is_empty());
            assert_eq!(planned(&cluster, &again).bootstrap, expected, "{name}, {made} objects");
        }
        let formed = Observed { formed: true, ..applied(there, &plan.objects) };
        assert_eq!(planned(&cluster, &formed).bootstrap, Bootstrap::Formed);
    }
    let others = Observed {
        claims: vec![left("data-logs-masters-3", "masters"), claim("data-web-0", &[])],
        ..Observed::default()
    };
    assert!(matches!(planned(&cluster, &others).bootstrap, Bootstrap::Masters(_)), "not mounted");
}

/// A person who knows that nothing is on the claims writes the names into the ConfigMap.
#[test] // proves DECLARE-19
fn names_that_a_person_writes_stay() {
    let config_map =
        serde_json::json!({"data": {"INITIAL_MASTER_NODES": "logs-masters-0", "claims": "a"}});
    let bootstrap = Bootstrap::of(&config_map);
    assert_eq!(bootstrap, Bootstrap::Masters(vec!["logs-masters-0".to_owned()]));
    let there = Observed { bootstrap: Some(bootstrap.clone()), ..Observed::default() };
    assert_eq!(planned(&usual(), &there).bootstrap, bootstrap);
}

#[test] // proves DECLARE-19
fn no_node_is_made_on_a_claim_that_is_being_deleted() {
    let cluster = usual();
    let mut claim = left("data-logs-data-1", "data");
    claim.is_being_deleted = true;
    let there = Observed { claims: vec![claim], ..Observed::default() };
    assert_eq!(going_claim(&cluster, &there), Some("data-logs-data-1"));
    let there = Observed { claims: there.claims, ..made(&cluster) };
    assert_eq!(going_claim(&cluster, &there), None, "the node is made");
}
