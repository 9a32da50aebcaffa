//! Claims that are there before the nodes that would mount them.

use super::{made, set, usual};
use crate::{CLUSTER, NODE_SET, Observed, SeenClaim, foreign_claims, makes_claims};

fn claim(name: &str, labels: &[(&str, &str)]) -> SeenClaim {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    SeenClaim { name: name.to_owned(), labels: labels.collect() }
}

#[test]
fn a_claim_without_the_labels_of_its_set_is_named_with_what_to_do() {
    let cluster = usual();
    let nothing = Observed::default();
    let there = [
        claim("data-logs-data-0", &[(CLUSTER, "logs"), (NODE_SET, "data")]),
        claim("data-logs-data-1", &[(CLUSTER, "logs"), (NODE_SET, "hot")]),
        claim("data-logs-data-2", &[]),
        claim("data-logs-masters-2", &[("app", "chart")]),
        claim("logs-data-logs-data-0", &[]),
    ];
    let foreign: Vec<String> =
        foreign_claims(&cluster, &nothing, &there).iter().map(ToString::to_string).collect();
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

#[test]
fn only_claims_of_nodes_that_are_not_made_yet_count() {
    let mut cluster = usual();
    let there = made(&cluster);
    let foreign = [claim("data-logs-data-1", &[]), claim("data-logs-data-2", &[])];
    assert!(!makes_claims(&cluster, &there), "every node is made");
    assert_eq!(foreign_claims(&cluster, &there, &foreign), []);
    cluster.node_sets[1].count = 3;
    assert!(makes_claims(&cluster, &there));
    let found = foreign_claims(&cluster, &there, &foreign);
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
