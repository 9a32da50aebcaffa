//! What is refused: with the field, and what to do. Nothing is planned then.

use serde_json::{Value, json};

use super::{applied, cluster, made, planned, set, usual};
use crate::{Bootstrap, Cluster, Distribution, Observed, Plan, Version, plan};

fn refused(cluster: &Cluster, observed: &Observed, field: &str, remedy: &str) {
    let refusals = plan(cluster, observed).expect_err(remedy);
    let [refusal] = &refusals[..] else { panic!("{field}: {refusals:#?}") };
    assert_eq!(refusal.field, field, "{refusal}");
    assert!(refusal.problem.contains(remedy), "{refusal}");
}

type Change = fn(&mut Cluster);

#[test] // proves STOP-31, DECLARE-21, DECLARE-16
fn wrong_declarations_get_field_and_remedy() {
    let table: [(Change, &str, &str); 23] = [
        (|c| c.name = "my.logs".into(), "metadata.name", "begins with a letter"),
        (
            |c| (c.engine.distribution, c.engine.warm) = (Distribution::Elasticsearch, true),
            "spec.engine.warm",
            "take it out",
        ),
        (|c| c.node_sets[0].name = "A".into(), "spec.nodeSets[A].name", "small letters"),
        (|c| c.node_sets[0].name = String::new(), "spec.nodeSets[].name", "small letters"),
        (
            |c| c.node_sets[0].name = "m".repeat(48),
            "spec.nodeSets[mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm].name",
            "has 53 characters; it may have 52: shorten",
        ),
        (
            |c| {
                let mut twice = c.node_sets[1].clone();
                twice.volume_claim_templates[0]["metadata"]["name"] = json!("data");
                c.node_sets.push(twice);
            },
            "spec.nodeSets[data].name",
            "rename one of them",
        ),
        (|c| c.node_sets[1].count = 0, "spec.nodeSets[data].count", "write 1 or more"),
        (
            |c| {
                drop(
                    c.node_sets[1]
                        .config
                        .insert("discovery".into(), json!({"type": "single-node"})),
                )
            },
            "spec.nodeSets[data].config",
            "find each other: take it out",
        ),
        (
            |c| drop(c.node_sets[1].config.insert("node.name".into(), json!("a"))),
            "spec.nodeSets[data].config",
            "node.name is written by stayput: take it out",
        ),
        (
            |c| drop(c.node_sets[1].config.insert("cluster".into(), json!({"name": "a"}))),
            "spec.nodeSets[data].config",
            "cluster.name is written by stayput",
        ),
        (
            |c| drop(c.node_sets[1].config.insert("a: 1\nb".into(), json!(1))),
            "spec.nodeSets[data].config",
            "is no name of a setting",
        ),
        (
            |c| c.node_sets[1].pod_template = json!("x"),
            "spec.nodeSets[data].podTemplate",
            "write metadata and spec",
        ),
        (
            |c| {
                let labels = json!({"stayput.dev/cluster": "other"});
                c.node_sets[1].pod_template = json!({"metadata": {"labels": labels}});
            },
            "spec.nodeSets[data].podTemplate",
            "stayput.dev/cluster is written by stayput",
        ),
        (
            |c| c.node_sets[1].volume_claim_templates.clear(),
            "spec.nodeSets[data].volumeClaimTemplates",
            "podTemplate.spec.volumes",
        ),
        (
            |c| {
                let twice = c.node_sets[1].volume_claim_templates[0].clone();
                c.node_sets[1].volume_claim_templates.push(twice);
            },
            "spec.nodeSets[data].volumeClaimTemplates",
            "write metadata.name",
        ),
        // data-logs-logs-a and data-logs + logs-a.
        (
            |c| {
                c.node_sets.push(set("logs-a", 1, &["data"]));
                let mut other = set("a", 1, &["data"]);
                let mut claim = other.volume_claim_templates[0].clone();
                claim["metadata"]["name"] = json!("data-logs");
                other.volume_claim_templates.push(claim);
                c.node_sets.push(other);
            },
            "spec.nodeSets[logs-a].volumeClaimTemplates",
            "rename one of them",
        ),
        (
            |c| c.node_sets[0].config = serde_json::Map::from_iter([role("ingest")]),
            "spec.nodeSets",
            "can be elected master",
        ),
        (
            |c| c.node_sets[1].config = serde_json::Map::from_iter([role("ingest")]),
            "spec.nodeSets",
            "no node has data",
        ),
        (
            |c| {
                let off = json!({"master": false});
                c.node_sets = vec![set("all", 1, &[])];
                c.node_sets[0].config = serde_json::Map::from_iter([("node".into(), off)]);
            },
            "spec.nodeSets",
            "can be elected master",
        ),
        (|c| c.node_sets[1].name = "data-".into(), "spec.nodeSets[data-].name", "small letters"),
        (
            |c| drop(c.node_sets[1].config.insert("network.host".into(), json!("_site_"))),
            "spec.nodeSets[data].config",
            "network.host is _site_, and the engine is asked on loopback and at the address of its pod: take it out",
        ),
        (
            |c| drop(c.node_sets[1].config.insert("http".into(), json!({"host": ["_local_"]}))),
            "spec.nodeSets[data].config",
            "http.host is _local_",
        ),
        (
            |c| drop(c.node_sets[1].config.insert("http.port".into(), json!("9200-9300"))),
            "spec.nodeSets[data].config",
            "asked at spec.engine.port, 9200: take it out, and write spec.engine.port",
        ),
    ];
    for (change, field, remedy) in table {
        let mut wrong = usual();
        change(&mut wrong);
        refused(&wrong, &Observed::default(), field, remedy);
        assert_eq!(crate::check(&wrong).len(), 1, "{field}: without looking at what is there");
    }
}

fn role(name: &str) -> (String, Value) {
    ("node.roles".into(), json!([name]))
}

#[test] // proves DECLARE-16
fn what_cannot_be_made_of_the_cluster_that_is_there_is_refused() {
    let table: [(Change, &str, &str); 3] = [
        (
            |c| c.engine.version = Version(2, 19, 2),
            "spec.engine.version",
            "downgrade: is 2.19.2, and nodes were declared with 2.19.3",
        ),
        (
            |c| c.engine.distribution = Distribution::Elasticsearch,
            "spec.engine.distribution",
            "write opensearch",
        ),
        (
            |c| {
                let size = json!("20Gi");
                let claim = &mut c.node_sets[1].volume_claim_templates[0];
                claim["spec"]["resources"]["requests"]["storage"] = size;
            },
            "spec.nodeSets[data].volumeClaimTemplates",
            "declare a node set with another name",
        ),
    ];
    for (change, field, remedy) in table {
        let mut wanted = usual();
        change(&mut wanted);
        refused(&wanted, &made(&usual()), field, remedy);
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let mut wrong = usual();
    wrong.node_sets[0].count = 0;
    wrong.node_sets[1].count = 0;
    wrong.name = "1".into();
    let refusals = plan(&wrong, &Observed::default()).unwrap_err();
    let fields: Vec<&str> = refusals.iter().map(|refusal| refusal.field.as_str()).collect();
    let expected = ["metadata.name", "spec.nodeSets[data].count", "spec.nodeSets[masters].count"];
    assert_eq!(fields, expected);
}

#[test]
fn one_node_with_all_roles_is_a_cluster() {
    let mut one = cluster(vec![set("all", 1, &[])]);
    one.node_sets[0].config.clear();
    assert_eq!(crate::check(&one), []);
}

/// No other masters can form the cluster than those that are named first.
#[test] // proves DECLARE-20
fn before_the_cluster_has_formed_its_first_masters_stay_declared() {
    let forming = applied(Observed::default(), &planned(&usual(), &Observed::default()).objects);
    let table: [(Change, &str, &str); 3] = [
        (
            |c| c.node_sets[0].name = "fast".into(),
            "spec.nodeSets",
            "no master is elected without logs-masters-0: declare its node set",
        ),
        (
            |c| {
                let voters = json!(["data"]);
                c.node_sets[0].config.insert("node.roles".into(), voters);
                c.node_sets.push(set("more", 1, &["cluster_manager"]));
            },
            "spec.nodeSets",
            "no master is elected without logs-masters-0",
        ),
        (
            |c| {
                let class = json!("fast");
                c.node_sets[0].volume_claim_templates[0]["spec"]["storageClassName"] = class;
            },
            "spec.nodeSets[masters].volumeClaimTemplates",
            "A cluster that has not formed",
        ),
    ];
    for (change, field, remedy) in table {
        let mut wanted = usual();
        change(&mut wanted);
        refused(&wanted, &forming, field, remedy);
    }
    let mut renamed = usual();
    renamed.node_sets[0].name = "fast".into();
    assert!(plan(&renamed, &made(&usual())).is_ok(), "it has formed");
    // The SearchCluster and its claims were deleted: the first masters of the new one are others.
    let Plan { bootstrap, .. } = planned(&renamed, &Observed::default());
    let names = ["logs-fast-0", "logs-fast-1", "logs-fast-2"].map(str::to_owned);
    assert_eq!(bootstrap, Bootstrap::Masters(names.into()));
}

#[test] // proves DECLARE-21
fn an_engine_that_its_manager_and_the_reconciler_reach_may_listen_as_it_likes() {
    for settings in [
        json!({"network.host": "0.0.0.0"}),
        json!({"network": {"host": ["_local_", "_site_"]}}),
        json!({"network.host": "_site_", "http.host": "::"}),
        json!({"network.publish_host": "_eth0_", "transport.host": "_site_", "http.port": 9200}),
    ] {
        let mut cluster = usual();
        cluster.node_sets[1].config.extend(settings.as_object().unwrap().clone());
        assert_eq!(crate::check(&cluster), [], "{settings}");
    }
}
