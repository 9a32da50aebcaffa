//! Disabled predicates, unknown names, and the commands that enable them again.

use crate::policy::*;

const STARTED: &str = "require_started_replica";

#[test]
fn names_of_both_places_count_together() {
    let spec = Disabled::of([STARTED, " ", "one_master_at_a_time"]);
    let both = spec.clone().with_annotation(" skip_already_terminating_pods ,, ");
    assert_eq!(both.iter().count(), 3);
    assert!(both.contains(Predicate::Terminating) && !spec.contains(Predicate::Terminating));
    assert!(both.contains(Predicate::StartedReplica) && !both.contains(Predicate::Yellow));
    assert_eq!(both.unknown(), None);
    assert_eq!(Disabled::of([]).with_annotation(" , "), Disabled::default());
}

#[test]
fn written_down_it_is_the_names() {
    let both = Disabled::of([STARTED, "x"]).with_annotation("one_master_at_a_time,y");
    let text = serde_json::to_string(&both).unwrap();
    assert_eq!(text, r#"["require_started_replica","one_master_at_a_time","x","y"]"#);
    let read: Disabled = serde_json::from_str(&text).unwrap();
    assert!(read.iter().eq(both.iter()));
}

#[test]
fn the_star_is_all_ten_wherever_it_stands() {
    for all in [Disabled::of(["*"]), Disabled::default().with_annotation("*")] {
        assert_eq!(all.iter().collect::<Vec<_>>(), Predicate::ALL);
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
        let message = Disabled::default().with_annotation(name).unknown().unwrap();
        let expected = format!(
            "{name:?} in eck.k8s.elastic.co/disable-upgrade-predicates is not a predicate and \
             disables nothing: the nearest name is {nearest}"
        );
        assert_eq!(message, expected);
    }
    let message = Disabled::of([STARTED, "x"]).unknown().unwrap();
    assert!(message.starts_with("\"x\" in spec.restart.disabledPredicates is no"), "{message}");
}

#[test]
fn what_only_an_allowed_outage_lifts_says_so() {
    for name in ["quorum", "unreplicated_index"] {
        let disabled = Disabled::of([name]);
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
    let message = Disabled::default().with_annotation(&names.join(",")).unknown().unwrap();
    assert!(message.len() < 1_000, "{}", message.len());
    assert!(message.ends_with("; and so are 19997 more"), "{message}");
    assert!(!message.contains(char::is_control), "{message}");
}

#[test]
fn the_way_back_is_a_command_for_each_place_that_disables_something() {
    let both = Disabled::of(["*"]).with_annotation(STARTED);
    assert_eq!(
        both.undo("search/logs"),
        [
            "kubectl patch searchcluster logs --namespace search --type=merge --patch \
             '{\"spec\":{\"restart\":{\"disabledPredicates\":[]}}}'",
            "kubectl annotate searchcluster logs --namespace search \
             eck.k8s.elastic.co/disable-upgrade-predicates-"
        ]
    );
    assert_eq!(Disabled::of(["x"]).undo("search/logs"), Vec::<String>::new());
}
