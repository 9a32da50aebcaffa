//! Somebody else has a started copy.

use std::collections::BTreeSet;

use super::{code, engine, names, sentence, shards, unknown};
use crate::restart::gate::Gate;
use crate::restart::gates::Copies;
use crate::restart::{Code, Engine};

/// Three data nodes and one that holds none.
fn nodes(lines: &[&str]) -> Engine {
    let mut engine = engine("a data, b data_hot, c data_cold, m master elected, x");
    engine.shards = Ok(shards(lines));
    engine
}

/// What it shows, the shards, the candidate, who is down, and the answer.
type Case = (&'static str, &'static [&'static str], &'static str, &'static str, Option<Code>);

const LAST: Option<Code> = Some(Code::LastCopy);
const SINGLE: Option<Code> = Some(Code::UnreplicatedIndex);

/// What the rule says of one node.
fn copies(engine: &Engine, candidate: &str, down: &BTreeSet<String>, allow_outage: bool) -> Gate {
    Copies::of(engine).gate(candidate, down, allow_outage)
}

#[test]
fn another_started_copy_stays_up_or_the_node_does() {
    let cases: [Case; 15] = [
        ("primary here, replica there", &["i/0: a* b"], "a", "", None),
        ("replica here, primary there", &["i/0: b* a"], "a", "", None),
        ("the replica's node is down", &["i/0: a* b"], "a", "b", LAST),
        ("one of two replicas' nodes is down", &["i/0: a* b c"], "a", "b", None),
        ("the replica is being built", &["i/0: a* ~b"], "a", "", LAST),
        ("the replica is nowhere", &["i/0: a* ?"], "a", "", LAST),
        ("the replica is here, the primary is nowhere", &["i/0: ?* a"], "a", "", LAST),
        ("the replica's node is not listed", &["i/0: a* gone"], "a", "", LAST),
        ("what is being built here is no loss", &["i/0: b* ~a"], "a", "", None),
        ("no replica at all", &["i/0: a*"], "a", "", SINGLE),
        ("no replica at all, elsewhere", &["i/0: b*"], "a", "", None),
        ("every shard counts", &["i/0: a* b", "i/1: b* a", "j/0: a* ?"], "a", "", LAST),
        (
            "shards of other indices do not help",
            &["i/0: a* ?", "j/0: b*", "k/0: c*"],
            "a",
            "",
            LAST,
        ),
        ("a node that is not listed holds nothing", &["i/0: a*"], "gone", "", None),
        ("a node that is down does not help itself", &["i/0: a* b"], "a", "a", None),
    ];
    for (what, lines, candidate, down, answer) in cases {
        let engine = nodes(lines);
        let gate = |allow| code(&copies(&engine, candidate, &names(down), allow));
        assert_eq!(gate(false), answer, "{what}");
        assert_eq!(gate(true), None, "{what}, outage allowed");
    }
}

#[test]
fn unknown_shards_keep_every_node_up_that_may_hold_some() {
    let mut engine = nodes(&[]);
    engine.shards = Err(unknown());
    for (what, node, passes) in [
        ("data of every tier", "a", false),
        ("data of one tier", "c", false),
        ("roles that hold no data", "m", true),
        ("no roles told", "x", false),
        ("not listed", "gone", false),
    ] {
        let answer = if passes { None } else { Some(Code::EngineUnreachable) };
        assert_eq!(code(&copies(&engine, node, &names(""), false)), answer, "{what}");
        assert_eq!(code(&copies(&engine, node, &names(""), true)), None, "{what}, outage allowed");
    }
}

#[test]
fn the_sentence_names_node_shard_index_and_remedy() {
    let cases: [(&[&str], &[&str]); 3] = [
        (&["events/3: a* ?"], &["a holds the last started copy of shard 3 of events:"]),
        (
            &["events/3: a*", "zoo/0: a* ?"],
            &["only copy of shard 3 of events", "number_of_replicas"],
        ),
        // What does not pass by waiting is told before what does.
        (
            &["events/3: a* ?", "x/0: a* ?", "zoo/0: a*"],
            &["shard 0 of zoo", "2 more shards", "spec.restart.allowOutage: true"],
        ),
    ];
    for (lines, words) in cases {
        let told = sentence(copies(&nodes(lines), "a", &names(""), false));
        for word in words {
            assert!(told.contains(word), "{word}: {told}");
        }
    }
}

#[test]
fn rows_come_in_any_order() {
    let mut engine = nodes(&["i/0: a* b", "i/1: b* a", "i/10: a* ?", "j/0: c* a"]);
    let expected = copies(&engine, "a", &names("c"), false);
    let rows = engine.shards.clone().expect("known");
    for turn in 0..rows.len() {
        let mut turned = rows.clone();
        turned.rotate_left(turn);
        if turn % 2 == 1 {
            turned.reverse();
        }
        engine.shards = Ok(turned);
        assert_eq!(copies(&engine, "a", &names("c"), false), expected);
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
    let look = Copies::of(&engine);
    let down = names("n-7");
    let refused =
        engine.nodes.iter().filter(|node| look.gate(&node.name, &down, false).is_err()).count();
    // The neighbors of the one that is down.
    assert_eq!(refused, 2);
}
