//! What is applied, and when.

use serde_json::json;

use super::{applied, bootstrap, cluster, config, made, object, outline, planned, set, usual};
use crate::{Distribution, Kind, Observed, Version};

#[test] // proves DECLARE-11
fn everything_that_a_pod_mounts_is_there_before_the_pod() {
    assert_eq!(
        outline(&planned(&usual(), &Observed::default())),
        [
            "Secret logs-masters-config",
            "Secret logs-data-config",
            "ConfigMap logs-bootstrap",
            "Service logs-nodes",
            "StatefulSet logs-masters 3",
            "StatefulSet logs-data 2",
        ]
    );
}

#[test] // proves DECLARE-18
fn the_names_of_the_first_masters_stay_until_the_cluster_has_formed_and_never_come_back() {
    let names = ["logs-masters-0", "logs-masters-1", "logs-masters-2"];
    let written = |plan: &crate::Plan| {
        let found = plan.objects.iter().find(|object| object.kind == Kind::ConfigMap);
        bootstrap(found.unwrap())
    };
    let first = planned(&usual(), &Observed::default());
    assert!(first.bootstrap.is_forming());
    assert_eq!(written(&first), names);

    // More masters are declared before it has formed: two lists could form two clusters.
    let mut more = usual();
    more.node_sets[0].count = 5;
    let forming = applied(Observed::default(), &first.objects);
    let plan = planned(&more, &forming);
    assert_eq!(written(&plan), names);
    assert!(outline(&plan).contains(&"StatefulSet logs-masters 5".to_owned()));

    let formed = Observed { formed: true, ..forming.clone() };
    let plan = planned(&usual(), &formed);
    assert_eq!((written(&plan).len(), plan.bootstrap.is_forming()), (0, false));
    // A later reconciler does not reach the engine, and the names are empty.
    let later = Observed { formed: false, ..applied(formed, &plan.objects) };
    assert_eq!(written(&planned(&usual(), &later)).len(), 0);
    // Somebody has deleted the ConfigMap.
    let lost = Observed { bootstrap: None, ..later };
    assert_eq!(written(&planned(&usual(), &lost)).len(), 0);
}

/// Neither Secret nor template changes with it.
#[test] // proves DECLARE-18
fn when_the_names_are_emptied_no_pod_is_touched() {
    let first = planned(&usual(), &Observed::default());
    let second = planned(&usual(), &made(&usual()));
    for (one, other) in first.objects.iter().zip(&second.objects) {
        assert_eq!(one == other, one.kind != Kind::ConfigMap, "{} {}", one.kind, one.name);
    }
    let ignored = &object(&second, Kind::ConfigMap, "logs-bootstrap")["metadata"]["annotations"];
    assert_eq!(ignored["stayput.dev/ignore"], "true");
}

#[test] // proves DECLARE-22
fn masters_join_one_at_a_time_and_data_nodes_all_at_once() {
    let before = made(&usual());
    let mut wanted = usual();
    wanted.node_sets[0].count = 5;
    wanted.node_sets[1].count = 9;
    let plan = planned(&wanted, &before);
    let sets = |plan: &crate::Plan| {
        let all = outline(plan).into_iter();
        all.filter(|line| line.starts_with("Stateful")).collect::<Vec<_>>()
    };
    assert_eq!(sets(&plan), ["StatefulSet logs-masters 4", "StatefulSet logs-data 9"]);
    let message = plan.waiting.clone().unwrap();
    assert!(message.starts_with("node set masters gets 4 of 5 nodes now"), "{message}");

    let mut joining = applied(before, &plan.objects);
    joining.sets.get_mut("masters").unwrap().ready = 3;
    let plan = planned(&wanted, &joining);
    assert_eq!(sets(&plan)[0], "StatefulSet logs-masters 4", "the fourth is not ready");
    joining.sets.get_mut("masters").unwrap().ready = 4;
    let plan = planned(&wanted, &joining);
    assert_eq!(sets(&plan), ["StatefulSet logs-masters 5", "StatefulSet logs-data 9"]);
    assert_eq!(plan.waiting, None);
}

#[test]
fn a_new_set_of_masters_begins_when_its_turn_comes() {
    let before = made(&usual());
    let mut wanted = usual();
    wanted.node_sets[0].count = 4;
    wanted.node_sets.push(set("zone-b", 1, &["cluster_manager"]));
    let plan = planned(&wanted, &before);
    assert!(!outline(&plan).iter().any(|line| line.contains("zone-b")), "{:?}", outline(&plan));
    let plan = planned(&wanted, &applied(before, &plan.objects));
    assert!(outline(&plan).contains(&"StatefulSet logs-zone-b 1".to_owned()));
}

#[test] // proves DECLARE-22
fn changes_of_sets_that_are_there_follow_when_others_have_grown() {
    let before = made(&usual());
    let mut wanted = usual();
    wanted.node_sets[0].count = 5;
    wanted.node_sets[1].config.insert("node.attr.round".to_owned(), json!("second"));
    let plan = planned(&wanted, &before);
    assert!(!outline(&plan).iter().any(|line| line.contains("data")), "{:?}", outline(&plan));
    let before = applied(before, &plan.objects);
    let plan = planned(&wanted, &before);
    assert!(outline(&plan).contains(&"Secret logs-data-config".to_owned()));
}

#[test]
fn elasticsearch_6_has_a_number_instead_of_names() {
    let mut old = cluster(vec![set("nodes", 3, &["master", "data"])]);
    old.engine.distribution = Distribution::Elasticsearch;
    old.engine.version = Version(6, 8, 23);
    let plan = planned(&old, &Observed::default());
    assert!(!plan.objects.iter().any(|object| object.kind == Kind::ConfigMap));
    let text = config(&plan, "nodes");
    assert!(text.contains("discovery.zen.minimum_master_nodes: 2\n"), "{text}");
    assert!(text.contains("discovery.zen.ping.unicast.hosts: [\"logs-nodes.search.svc\"]\n"));
    assert!(!text.contains("initial_master_nodes"), "{text}");
    let there = made(&old);
    old.node_sets[0].count = 5;
    let refusals = crate::plan(&old, &there).unwrap_err();
    assert!(refusals[0].to_string().contains("from Elasticsearch 7 on"), "{refusals:?}");
}
