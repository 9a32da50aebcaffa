//! Disabled predicates, unknown names, and the commands that enable them again.

use serde_json::json;

use crate::Time;
use crate::policy::*;

const STARTED: &str = "require_started_replica";

/// A rolling restart whose request skips a rule.
fn skipping(rule: Predicate) -> Restart {
    let request = json!({"id": "r1", "strategy": "rolling", "skipRules": [rule.name()]});
    serde_json::from_value(json!({"request": request, "started": Time(0)})).unwrap()
}

#[test]
fn names_of_both_places_count_together() {
    let cluster = Disabled::by_annotation(" require_started_replica ,, one_master_at_a_time");
    let both = cluster.clone().with_restart(Some(&skipping(Predicate::Terminating)));
    assert_eq!(both.iter().count(), 3);
    assert!(both.contains(Predicate::Terminating) && !cluster.contains(Predicate::Terminating));
    assert!(both.contains(Predicate::StartedReplica) && !both.contains(Predicate::Yellow));
    assert_eq!(both.unknown(), None);
    assert_eq!(cluster.clone().with_restart(None), cluster);
    assert_eq!(Disabled::by_annotation(" , "), Disabled::default());
}

#[test]
fn written_down_it_is_the_names() {
    let disabled = Disabled::by_annotation("y,one_master_at_a_time,x,require_started_replica");
    let text = serde_json::to_string(&disabled).unwrap();
    assert_eq!(text, r#"["require_started_replica","one_master_at_a_time","x","y"]"#);
    assert_eq!(serde_json::from_str::<Disabled>(&text).unwrap(), disabled);
}

#[test]
fn the_star_is_all_wherever_it_stands() {
    for all in ["*", "x, *", "*,one_master_at_a_time"] {
        assert_eq!(Disabled::by_annotation(all).iter().collect::<Vec<_>>(), Predicate::ALL);
    }
}

#[test]
fn what_is_no_predicate_is_told_with_its_place_and_the_nearest_name() {
    let cases = [
        ("require_started_replicas", STARTED),
        ("OneMasterAtATime", "one_master_at_a_time"),
        (
            "do_not_restart_healthy_node_if_maxunavailable_reached",
            "do_not_restart_healthy_node_if_MaxUnavailable_reached",
        ),
        ("only_restart_healthy_nodes_if_green", "only_restart_healthy_node_if_green_or_yellow"),
        ("do_not_delete_pods_with_the_same_shards", "do_not_delete_pods_with_same_shards"),
    ];
    for (name, nearest) in cases {
        let message = Disabled::by_annotation(name).unknown().unwrap();
        let expected = format!(
            "{name:?} in eck.k8s.elastic.co/disable-upgrade-predicates is not a predicate and \
             disables nothing: the nearest name is {nearest}"
        );
        assert_eq!(message, expected);
    }
}

#[test]
fn what_only_an_allowed_outage_lifts_says_so() {
    for name in ["quorum", "unreplicated_index"] {
        let disabled = Disabled::by_annotation(name);
        assert_eq!(disabled.iter().count(), 0);
        assert!(
            disabled
                .unknown()
                .unwrap()
                .contains("only allowOutage (in one request, --allow-outage;")
        );
    }
}

#[test]
fn a_flood_of_names_makes_one_short_sentence() {
    let names: Vec<String> =
        (0..20_000).map(|n| format!("x{n}\u{1b}{}", "y".repeat(500))).collect();
    let message = Disabled::by_annotation(&names.join(",")).unknown().unwrap();
    assert!(message.len() < 1_000, "{}", message.len());
    assert!(message.ends_with("; and so are 19997 more"), "{message}");
    assert!(!message.contains(char::is_control), "{message}");
}

#[test]
fn the_way_back_is_a_command_for_each_place_that_disables_something() {
    let both = Disabled::by_annotation("*").with_restart(Some(&skipping(Predicate::Yellow)));
    assert_eq!(
        both.undo("search/logs"),
        [
            "kubectl annotate searchcluster logs --namespace search \
             eck.k8s.elastic.co/disable-upgrade-predicates-",
            "kubectl stayput --namespace search cancel logs"
        ]
    );
    assert_eq!(Disabled::by_annotation("x").undo("search/logs"), Vec::<String>::new());
}
