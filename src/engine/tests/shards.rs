//! Shard copies, read from recorded answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::{Shard, ShardState, shards, unreplicated};
use super::cluster::topology_of;
use super::*;

fn names<'a>(of: impl IntoIterator<Item = &'a Arc<str>>) -> BTreeSet<&'a str> {
    of.into_iter().map(AsRef::as_ref).collect()
}

#[test]
fn hidden_and_closed_indices_and_names_with_dots_are_there() {
    for engine in ALL {
        let shards = topology_of(engine, "state").shards;
        let indices = names(shards.iter().map(|shard| &shard.index));
        let expected = [".dotted.name", "docs", "shut", "single", "thrice", "veiled"];
        let mut expected: BTreeSet<&str> = expected.into();
        if engine == ELASTICSEARCH_6 {
            // It knows no hidden indices, and a closed one has no copies there.
            expected.remove("veiled");
            expected.remove("shut");
        }
        assert_eq!(indices, expected, "{engine}");
    }
}

/// Elasticsearch before 7.2 does not replicate closed indices, and lists no copies of them. `shut` is
/// closed in all recordings.
#[test] // proves RULE-8
fn a_closed_index_without_copies_is_immovable() {
    for engine in ALL {
        let immovable: Vec<String> = topology_of(engine, "state").immovable.into_iter().collect();
        let expected: &[&str] = if engine == ELASTICSEARCH_6 { &["shut"] } else { &[] };
        assert_eq!(immovable, expected, "{engine}");
    }
    // One of another kind of block is open.
    let body = r#"{"blocks":{"indices":{"read-only":{"8":{"retryable":false}}}}}"#;
    let routing = shards::parse(&made_up(200, body), &[]).unwrap();
    assert!(routing.immovable.is_empty());
}

#[test]
fn every_copy_has_its_place_or_none() {
    for engine in ALL.into_iter().filter(|engine| *engine != OPENSEARCH_3) {
        let topology = topology_of(engine, "state");
        let of = |index: &str, number| -> Vec<&Shard> {
            let wanted = |shard: &&Shard| &*shard.index == index && shard.number == number;
            topology.shards.iter().filter(wanted).collect()
        };
        for number in [0, 1] {
            let docs = of("docs", number);
            let primaries = docs.iter().filter(|shard| shard.primary).count();
            assert_eq!((docs.len(), primaries), (2, 1), "{engine}");
            assert!(docs.iter().all(|shard| shard.state == ShardState::Started));
            assert_eq!(names(docs.iter().flat_map(|shard| &shard.node_name)).len(), 2);
        }
        assert!(of("docs", 2).is_empty());
        let thrice = of("thrice", 0);
        let nowhere: Vec<&&Shard> =
            thrice.iter().filter(|shard| shard.state == ShardState::Unassigned).collect();
        assert_eq!((thrice.len(), nowhere.len()), (4, 1));
        assert_eq!((nowhere[0].primary, &nowhere[0].node_name), (false, &None));
        let held = names(thrice.iter().flat_map(|shard| &shard.node_name));
        assert_eq!(held, ["logs-0", "logs-1", "logs-2"].into());
    }
}

#[test]
fn a_relocating_copy_is_at_its_source_and_names_its_target() {
    for (engine, source, target) in
        [(OPENSEARCH_2, "logs-2", "logs-0"), (ELASTICSEARCH_8, "logs-0", "logs-1")]
    {
        let shards = topology_of(engine, "state_relocating").shards;
        let big: Vec<&Shard> = shards.iter().filter(|shard| &*shard.index == "big").collect();
        let expected = Shard {
            index: "big".into(),
            number: 0,
            primary: true,
            search_only: false,
            state: ShardState::Relocating,
            node_name: Some(source.into()),
            relocating_to: Some(target.into()),
        };
        assert_eq!(big, [&expected], "{engine}");
    }
}

#[test]
fn an_index_without_a_second_copy_is_told_from_one_that_waits_for_it() {
    for engine in ALL {
        let shards = topology_of(engine, "state").shards;
        let alone = unreplicated(&shards);
        // One node has unassigned replicas of all the others.
        assert_eq!(names(&alone), ["single"].into(), "{engine}");
    }
    assert!(unreplicated(&[]).is_empty());
}

#[test] // proves RULE-4
fn a_search_replica_is_told_from_a_replica_and_is_no_second_copy() {
    let body = r#"{"routing_table":{"indices":{
        "searched":{"shards":{"0":[
            {"state":"STARTED","primary":true,"searchOnly":false,"node":"a","relocating_node":null},
            {"state":"STARTED","primary":false,"searchOnly":true,"node":"b","relocating_node":null}]}},
        "both":{"shards":{"0":[
            {"state":"STARTED","primary":true,"searchOnly":false,"node":"a","relocating_node":null},
            {"state":"STARTED","primary":false,"node":"c","relocating_node":null},
            {"state":"STARTED","primary":false,"searchOnly":true,"node":"b","relocating_node":null}]}}}}}"#;
    let copies = shards::parse(&made_up(200, body), &[]).unwrap().shards;
    let searching = copies.iter().filter(|copy| copy.search_only);
    let nodes: Vec<Option<&str>> = searching.map(|copy| copy.node_name.as_deref()).collect();
    assert_eq!(nodes, [Some("b"), Some("b")]);
    assert_eq!(names(&unreplicated(&copies)), ["searched"].into());
}

#[test]
fn an_unknown_node_and_an_unknown_state_are_kept() {
    let body = r#"{"routing_table":{"indices":{"i":{"shards":{"0":[
        {"state":"PONDERING","primary":true,"node":"gone","relocating_node":null}]}}}}}"#;
    let copies = shards::parse(&made_up(200, body), &[]).unwrap().shards;
    let shard = &copies[0];
    assert_eq!((shard.state, shard.node_name.as_deref()), (ShardState::Unknown, Some("gone")));
    let torn = body.replace(r#""0":["#, r#""zero":["#);
    let error = shards::parse(&made_up(200, &torn), &[]).unwrap_err();
    assert!(error.to_string().contains(r#"shard "zero" of index i"#), "{error}");
    // Without any index the filter leaves nothing of the answer.
    assert!(shards::parse(&made_up(200, "{}"), &[]).unwrap().shards.is_empty());
}
