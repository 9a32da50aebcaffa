//! The rules on nodes that have another started copy.

use super::{engine, names, shards, unknown};
use crate::Engine;
use crate::rules::copies::{Copies, ShardName};

/// Three data nodes, one that holds none and one without roles.
fn nodes(lines: &[&str]) -> Engine {
    let mut engine = engine("a data, b data_hot, c data_cold, m master elected, x");
    engine.shards = Ok(shards(lines));
    engine
}

/// Shards that would be lost, as `replicated / single`.
fn lost(engine: &Engine, candidate: &str, down: &str) -> Option<String> {
    let copies = Copies::of(engine, &names(down));
    let lost = copies.lost(candidate).ok()?;
    let list = |shards: &mut dyn Iterator<Item = ShardName<'_>>| {
        shards.map(|shard| shard.to_string()).collect::<Vec<_>>().join(", ")
    };
    let more = match lost.number {
        0 | 1 => String::new(),
        many => format!(" and {} more", many - 1),
    };
    let mut single = copies.single(candidate).ok()?;
    Some(format!("{}{more} / {}", list(&mut lost.first.into_iter()), list(&mut single)))
}

/// Name of the case, the shards, the candidate, the nodes that are down, and what is lost.
type Case = (&'static str, &'static [&'static str], &'static str, &'static str, &'static str);

const NOTHING: &str = " / ";
const LAST: &str = "shard 0 of i / ";
const SINGLE: &str = " / shard 0 of i";

#[test] // proves RULE-4
fn another_started_copy_stays_up_or_the_shard_is_lost() {
    let cases: [Case; 25] = [
        ("primary here, replica there", &["i/0: a* b"], "a", "", NOTHING),
        ("replica here, primary there", &["i/0: b* a"], "a", "", NOTHING),
        ("the replica's node is down", &["i/0: a* b"], "a", "b", LAST),
        ("one of two replicas' nodes is down", &["i/0: a* b c"], "a", "b", NOTHING),
        ("the replica is being built", &["i/0: a* ~b"], "a", "", LAST),
        ("the replica is nowhere", &["i/0: a* ?"], "a", "", LAST),
        ("the replica is here, the primary is nowhere", &["i/0: ?* a"], "a", "", LAST),
        ("the replica's node is not listed", &["i/0: a* gone"], "a", "", LAST),
        ("what is being built here is no loss", &["i/0: b* ~a"], "a", "", NOTHING),
        ("no replica at all", &["i/0: a*"], "a", "", SINGLE),
        ("no replica at all, elsewhere", &["i/0: b*"], "a", "", NOTHING),
        ("no replica, and it is being built", &["i/0: ~a*"], "a", "", NOTHING),
        (
            "every shard counts",
            &["i/0: a* b", "i/1: b* a", "j/0: a* ?", "k/3: a*"],
            "a",
            "",
            "shard 0 of j / shard 3 of k",
        ),
        (
            "shards of other indices do not help",
            &["i/0: a* ?", "j/0: b*", "k/0: c*"],
            "a",
            "",
            LAST,
        ),
        ("a node that is not listed holds nothing", &["i/0: a*"], "gone", "", NOTHING),
        ("a node that is down does not help itself", &["i/0: a* b"], "a", "a", NOTHING),
        (
            "two copies on one node are one loss",
            &["i/0: a* a"],
            "a",
            "",
            "shard 0 of i and 1 more / ",
        ),
        ("a search replica is no other copy", &["i/0: a* +b"], "a", "", SINGLE),
        ("nor does it stand in for a replica", &["i/0: a* ? +b"], "a", "", LAST),
        ("a search replica beside the primary", &["i/0: b* +a"], "a", "", NOTHING),
        ("the last search replica that is started", &["i/0: b* +a +?"], "a", "", NOTHING),
        ("a missing search replica is no loss", &["i/0: a* b +?"], "a", "", NOTHING),
        ("an index that is only searched", &["i/0: +a +b"], "a", "", NOTHING),
        ("… and its last started copy", &["i/0: +a ~+b"], "a", "", LAST),
        ("… and its only copy", &["i/0: +a"], "a", "", SINGLE),
    ];
    for (what, lines, candidate, down, answer) in cases {
        assert_eq!(lost(&nodes(lines), candidate, down).as_deref(), Some(answer), "{what}");
    }
}

#[test]
fn unknown_shards_are_no_answer_for_who_may_hold_some() {
    let mut engine = nodes(&[]);
    engine.shards = Err(unknown());
    for (what, node, is_known) in [
        ("data of every tier", "a", false),
        ("data of one tier", "c", false),
        ("roles that hold no data", "m", true),
        ("no roles: coordinating only", "x", true),
        ("not listed", "gone", false),
    ] {
        assert_eq!(lost(&engine, node, "").as_deref(), is_known.then_some(NOTHING), "{what}");
    }
}

#[test] // proves RULE-4
fn shared_names_the_shard_and_the_other() {
    let engine = nodes(&["i/0: a* b", "j/0: a* c", "j/1: c* ~a", "k/0: b*"]);
    let copies = Copies::of(&engine, &names(""));
    let shared = |candidate: &str, others: &str| {
        let found = copies.shared(candidate, &names(others)).expect("known");
        found.map(|(shard, other)| format!("{shard} with {other}"))
    };
    assert_eq!(shared("a", "b").as_deref(), Some("shard 0 of i with b"));
    assert_eq!(shared("a", "c").as_deref(), Some("shard 0 of j with c"));
    assert_eq!(shared("b", "c"), None);
    assert_eq!(shared("a", "a"), None, "not with itself");
    let engine = nodes(&["i/0: a* +b +c"]);
    let copies = Copies::of(&engine, &names(""));
    let found = |candidate: &str, others: &str| {
        copies.shared(candidate, &names(others)).expect("known").is_some()
    };
    assert!(found("b", "c"), "search replicas stand in for each other");
    assert!(!found("b", "a") && !found("a", "b"), "and for no other copy");
    assert_eq!(shared("m", "a b c"), None);
    assert_eq!(shared("gone", "a b c"), None);
}

#[test]
fn rows_come_in_any_order() {
    let mut engine = nodes(&["i/0: a* b", "i/1: b* a", "i/10: a* ?", "j/0: c* a"]);
    let expected = lost(&engine, "a", "c");
    assert_eq!(expected.as_deref(), Some("shard 10 of i and 1 more / "));
    let rows = engine.shards.as_ref().expect("known").to_vec();
    for turn in 0..rows.len() {
        let mut turned = rows.clone();
        turned.rotate_left(turn);
        if turn % 2 == 1 {
            turned.reverse();
        }
        engine.shards = Ok(turned.into_iter().collect());
        assert_eq!(lost(&engine, "a", "c"), expected);
    }
}

/// A ring of nodes that hold each other's copies: the index knows every neighbor.
#[test]
fn one_look_answers_for_every_node() {
    let list: Vec<String> = (0..200).map(|node| format!("n-{node} data")).collect();
    let mut engine = engine(&list.join(", "));
    let lines: Vec<String> = (0..2_000)
        .map(|shard| format!("index/{shard}: n-{}* n-{}", shard % 200, (shard + 1) % 200))
        .collect();
    engine.shards = Ok(shards(&lines.iter().map(String::as_str).collect::<Vec<_>>()));
    let mut copies = Copies::of(&engine, &names(""));
    assert_eq!(copies.lost("n-6").expect("known").number, 0);
    copies.set_down("n-7");
    let loses = |name: &str| copies.lost(name).expect("known").number > 0;
    let refused: Vec<&str> =
        engine.nodes.iter().map(|node| node.name.as_str()).filter(|name| loses(name)).collect();
    assert_eq!(refused, ["n-6", "n-8"], "the neighbors of the one that is down");
}
