//! The order of restarts.

use proptest::prelude::*;

use super::{engine, pod};
use crate::rules::{order, place_without_engine};
use crate::{Engine, Pod};

/// Pods from `"a b! c"`: names, not ready where marked.
fn pods(names: &str) -> Vec<Pod> {
    names
        .split_whitespace()
        .map(|name| {
            let mut pod = pod(name.trim_end_matches('!'));
            pod.ready = !name.ends_with('!');
            pod
        })
        .collect()
}

/// Their names in turn.
fn turns(pods: &[Pod], engine: Option<&Engine>) -> String {
    let names: Vec<&str> = order(pods.iter(), engine).into_iter().map(|pod| &*pod.name).collect();
    names.join(" ")
}

#[test]
fn turns_are_as_the_rules_say() {
    let tiers = "z-0 data_frozen, y-0 data_cold, x-0 data_warm, w-0 data_hot, v-0 data_content";
    let cases = [
        ("tiers, coldest first", tiers, "v-0 w-0 x-0 y-0 z-0", "z-0 y-0 x-0 v-0 w-0"),
        (
            "a node of two tiers goes with the hotter",
            "a-0 data_cold data_frozen, b-0 data_frozen, c-0 data_cold, d-0 data_hot data_cold, \
             e-0 data_warm",
            "a-0 b-0 c-0 d-0 e-0",
            "b-0 a-0 c-0 e-0 d-0",
        ),
        (
            "data of every tier counts as hot",
            "a-0 data ingest, b-0 data_warm, c-0 data_hot",
            "a-0 b-0 c-0",
            "b-0 a-0 c-0",
        ),
        (
            "data, then those without, then who can be elected, the elected one last",
            "a-0 master elected, b-0 master, c-0 ingest, d-0 data_hot, e-0 ml remote_cluster_client",
            "a-0 b-0 c-0 d-0 e-0",
            "d-0 c-0 e-0 b-0 a-0",
        ),
        (
            "data and master counts as master",
            "a-0 master data elected, b-0 master data, c-0 data, d-0 master",
            "a-0 b-0 c-0 d-0",
            "c-0 b-0 d-0 a-0",
        ),
        (
            "three masters, logs-2 elected",
            "logs-0 master, logs-1 master, logs-2 master elected",
            "logs-0 logs-1 logs-2",
            "logs-1 logs-0 logs-2",
        ),
        (
            "OpenSearch's name for master",
            "a-0 cluster_manager, b-0 cluster_manager elected, c-0 ingest",
            "a-0 b-0 c-0",
            "c-0 a-0 b-0",
        ),
        (
            "what is broken goes first, master or not",
            "a-0 master elected, b-0 master, c-0 data_hot, d-0 data_cold",
            "a-0! b-0 c-0! d-0",
            "c-0! a-0! d-0 b-0",
        ),
        (
            "no roles: coordinating only; not in the cluster: broken, and a master for all we know",
            "a-0, b-0 ingest, c-0 data, d-0 master elected",
            "a-0 b-0! c-0 d-0 gone-0",
            "b-0! gone-0 c-0 a-0 d-0",
        ),
        (
            "by set, then the highest number first",
            "x data",
            "b-2 a-9 b-10 a-10 a-100 b-1",
            "a-100 a-10 a-9 b-10 b-2 b-1",
        ),
        (
            "names without a number, or with one too large, are sets of their own",
            "x data",
            "logs-1 logs logs-x logs-99999999999999999999 logs-",
            "logs-1 logs logs- logs-99999999999999999999 logs-x",
        ),
    ];
    for (what, nodes, candidates, expected) in cases {
        let found = turns(&pods(candidates), Some(&engine(nodes)));
        assert_eq!(found, expected.replace('!', ""), "{what}");
    }
}

#[test]
fn crash_looping_goes_first_even_where_it_is_ready_just_now() {
    let mut pods = pods("a-0 a-1 a-2");
    pods[0].crash_looping = true;
    assert_eq!(turns(&pods, None), "a-0 a-2 a-1");
}

#[test]
fn without_an_engine_the_names_decide() {
    assert_eq!(turns(&pods("b-0 a-0 a-1! a-2"), None), "a-1 a-2 a-0 b-0");
}

#[test]
fn of_two_nodes_of_one_name_the_more_careful_place_counts() {
    let engine = engine("a-0 master, a-0 data, b-0 ingest");
    assert_eq!(turns(&pods("a-0 b-0"), Some(&engine)), "b-0 a-0");
}

/// Roles, in turn of no consequence.
const ROLES: [&str; 9] = [
    "",
    "master elected",
    "master",
    "master data",
    "data",
    "data_hot data_content",
    "data_warm",
    "data_frozen",
    "ingest",
];

prop_compose! {
    /// Some pods, in sets and out of them, and the same ones shuffled.
    fn shuffled()(
        made in prop::collection::btree_map("(a|b|logs-data)-[0-9]{1,2}|[a-c]", (0..ROLES.len(), any::<bool>()), 1..12),
    )(
        shuffled in Just(made.iter().map(|(name, (_, ready))| (name.clone(), *ready)).collect::<Vec<_>>()).prop_shuffle(),
        made in Just(made),
    ) -> (String, String, String) {
        let text = |(name, ready): (&String, bool)| if ready { name.clone() } else { format!("{name}!") };
        let nodes: Vec<String> = made.iter().map(|(name, (role, _))| format!("{name} {}", ROLES[*role])).collect();
        let sorted: Vec<String> = made.iter().map(|(name, (_, ready))| text((name, *ready))).collect();
        let shuffled: Vec<String> = shuffled.iter().map(|(name, ready)| text((name, *ready))).collect();
        (nodes.join(", "), sorted.join(" "), shuffled.join(" "))
    }
}

proptest! {
    #[test]
    fn the_order_of_arrival_makes_no_difference((nodes, sorted, shuffled) in shuffled()) {
        let engine = engine(&nodes);
        for engine in [None, Some(&engine)] {
            let (one, other) = (pods(&sorted), pods(&shuffled));
            prop_assert_eq!(turns(&one, engine), turns(&other, engine));
            prop_assert_eq!(order(one.iter(), engine).len(), one.len());
        }
    }

    #[test]
    fn without_an_engine_the_name_and_the_state_say_all((_, _, shuffled) in shuffled()) {
        let pods = pods(&shuffled);
        fn place(pod: &Pod) -> impl Ord {
            place_without_engine(&pod.name, !pod.ready)
        }
        let mut sorted: Vec<&Pod> = pods.iter().collect();
        sorted.sort_by(|one, other| place(one).cmp(&place(other)));
        prop_assert_eq!(order(pods.iter(), None), sorted);
    }
}
