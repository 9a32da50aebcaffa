//! The quorum rule, by tables of cases.

use std::collections::BTreeSet;

use super::{code, engine, ids, message, names, unknown};
use crate::changes::{Check, refuse};
use crate::rules::{MasterVoters, QuorumAfterStop};
use crate::{Code, Engine, Voting};

const REFUSED: Option<Code> = Some(Code::Quorum);
const FIRST: Option<Code> = Some(Code::HandingOver);
const NOT_KNOWN: Option<Code> = Some(Code::EngineUnreachable);

const ONE: &str = "a master elected data";
const TWO: &str = "a master elected, b master";
const THREE: &str = "a master elected, b master, c master, d data, x";
const TWO_OF_THREE: &str = "a master elected, b master, d data";
const FOUR: &str = "a master elected, b master, c master, d master";
const FIVE: &str = "a master elected, b master, c master, d master, e master";

/// With these voters.
fn voting(nodes: &str, committed: &str, accepted: &str) -> Engine {
    let voting = Voting::Configurations {
        committed: ids(committed),
        accepted: ids(accepted),
        excluded: BTreeSet::new(),
    };
    Engine { voting: Ok(voting), ..engine(nodes) }
}

/// An Elasticsearch 6 with this minimum.
fn minimum(nodes: &str, minimum: u32) -> Engine {
    Engine { voting: Ok(Voting::MinimumMasterNodes(minimum)), ..engine(nodes) }
}

/// The rule for one node. A vote that has to be handed over first counts as not handed over yet.
fn quorum(engine: &Engine, candidate: &str, down: &str) -> Check {
    match MasterVoters::of(engine, "search/logs").after_stop(candidate, &names(down), None) {
        QuorumAfterStop::Kept => Ok(()),
        QuorumAfterStop::KeptByHandover(vote_recipient) => {
            refuse(Code::HandingOver, vote_recipient)
        }
        QuorumAfterStop::Lost(blocker) => Err(blocker),
    }
}

/// Asks for each.
fn check(cases: &[(&str, Engine, &str, &str, Option<Code>)]) {
    for (what, engine, candidate, down, answer) in cases {
        assert_eq!(code(&quorum(engine, candidate, down)), *answer, "{what}");
    }
}

#[test]
fn a_majority_of_both_configurations_stays() {
    check(&[
        ("one master", voting(ONE, "a", "a"), "a", "", REFUSED),
        ("two masters, both vote", voting(TWO, "a b", "a b"), "b", "", REFUSED),
        ("two masters, the one without a vote", voting(TWO, "a", "a"), "b", "", None),
        ("two masters, the one with the vote", voting(TWO, "a", "a"), "a", "", FIRST),
        ("three masters, all in", voting(THREE, "a b c", "a b c"), "a", "", None),
        ("three masters, one down", voting(THREE, "a b c", "a b c"), "a", "c", REFUSED),
        ("three masters, that one again", voting(THREE, "a b c", "a b c"), "c", "c", None),
        ("three masters, one not listed", voting(TWO_OF_THREE, "a b c", "a b c"), "a", "", REFUSED),
        ("a data node meanwhile", voting(TWO_OF_THREE, "a b c", "a b c"), "d", "", None),
        ("four masters, three vote, the fourth", voting(FOUR, "a b c", "a b c"), "d", "a", None),
        ("four masters, three vote, a voter", voting(FOUR, "a b c", "a b c"), "c", "d", None),
        ("four masters, all vote", voting(FOUR, "a b c d", "a b c d"), "c", "", None),
        ("four masters, all vote, one down", voting(FOUR, "a b c d", "a b c d"), "c", "b", REFUSED),
        ("five masters, one down", voting(FIVE, "a b c d e", "a b c d e"), "e", "b", None),
        ("five masters, two down", voting(FIVE, "a b c d e", "a b c d e"), "e", "b c", REFUSED),
        ("only the committed one would lose it", voting(FIVE, "a", "a b c"), "a", "", REFUSED),
        ("only the accepted one would lose it", voting(FIVE, "a b c", "a"), "a", "", REFUSED),
        ("a voter in the one only, both stay", voting(FIVE, "a b c", "a b c d e"), "d", "", None),
        (
            "no voter in either, and both are short",
            voting(FIVE, "a b c", "a b c"),
            "e",
            "a b",
            None,
        ),
        ("the elected master, by the same rule", voting(THREE, "a b c", "a b c"), "a", "d", None),
        (
            "a voter whose roles are unknown",
            voting("a master elected, b, c", "a b c", "a b c"),
            "b",
            "c",
            REFUSED,
        ),
    ]);
}

#[test]
fn who_is_not_in_the_cluster_takes_no_vote_away() {
    let alone = "a master, d data";
    check(&[
        (
            "in, it is one of three; out, two stay",
            voting(TWO_OF_THREE, "a b c", "a b c"),
            "c",
            "",
            None,
        ),
        ("all votes are in: it has none", voting(TWO, "a b", "a b"), "new", "a", None),
        (
            "the majority is lost, a master is there to say so",
            voting("a master elected", "a b c", "a b c"),
            "c",
            "",
            None,
        ),
        (
            "without a master it may be on the larger side",
            voting(alone, "a b c", "a b c"),
            "c",
            "",
            REFUSED,
        ),
        (
            "a voter that is in is being stopped: it may be about to save the majority",
            voting(TWO_OF_THREE, "a b c", "a b c"),
            "c",
            "b",
            REFUSED,
        ),
        (
            "in the cluster, with the majority lost",
            voting(alone, "a b c", "a b c"),
            "a",
            "",
            REFUSED,
        ),
    ]);
}

#[test]
fn elasticsearch_6_keeps_its_minimum_of_masters() {
    check(&[
        ("one master", minimum(ONE, 1), "a", "", REFUSED),
        ("one master, no minimum", minimum(ONE, 0), "a", "", REFUSED),
        ("two masters, a minimum of two", minimum(TWO, 2), "b", "", REFUSED),
        ("two masters, a minimum of one", minimum(TWO, 1), "b", "", None),
        ("three masters, a minimum of two", minimum(THREE, 2), "b", "", None),
        ("three masters, one down", minimum(THREE, 2), "b", "c", REFUSED),
        ("two of three masters in", minimum(TWO_OF_THREE, 2), "b", "", REFUSED),
        ("a data node", minimum(TWO_OF_THREE, 2), "d", "a", None),
        ("a node without roles, and enough", minimum(THREE, 2), "x", "", None),
        ("a node without roles only coordinates", minimum(THREE, 3), "x", "a", None),
        ("a node that is not in", minimum(TWO_OF_THREE, 2), "c", "", None),
    ]);
}

#[test]
fn what_is_not_known_keeps_every_possible_voter_up() {
    let silent = || Engine { voting: Err(unknown()), ..engine(THREE) };
    check(&[
        ("votes unknown, a master", silent(), "a", "", NOT_KNOWN),
        ("votes unknown, a data node", silent(), "d", "", None),
        ("votes unknown, a node that only coordinates", silent(), "x", "", None),
        ("votes unknown, not listed", silent(), "gone", "", NOT_KNOWN),
        ("nobody votes", voting(THREE, "", ""), "d", "", NOT_KNOWN),
    ]);
}

#[test]
fn two_nodes_of_one_name_go_down_together() {
    let mut twins = engine("a master elected, b master, b master");
    twins.nodes[2].id = "id of another b".to_owned();
    let voters: BTreeSet<String> = twins.nodes.iter().map(|node| node.id.clone()).collect();
    twins.voting = Ok(Voting::Configurations {
        committed: voters.clone(),
        accepted: voters,
        excluded: BTreeSet::new(),
    });
    check(&[
        ("the pair", twins.clone(), "b", "", REFUSED),
        ("the single one", twins.clone(), "a", "", None),
        ("the single one, the pair is down", twins, "a", "b", REFUSED),
    ]);
}

#[test]
fn the_sentence_names_numbers_who_is_missing_and_the_remedy() {
    let text = |engine: &Engine, candidate, down| message(quorum(engine, candidate, down));
    let outage = "kubectl stayput -n search restart logs --allow-outage";
    let cases = [
        (
            text(&voting(ONE, "a", "a"), "a", ""),
            vec!["no other node than a", "outage", outage, "three"],
        ),
        (text(&minimum(ONE, 1), "a", ""), vec!["no other node than a", outage]),
        (
            text(&voting(FIVE, "a b c d e", "a b c d e"), "e", "b c"),
            vec!["without e 2 of 5 voters of the committed", "b, c down", "3 are needed", outage],
        ),
        (
            text(&voting(TWO_OF_THREE, "a b c", "a b c"), "a", ""),
            vec!["without a 1 of 3 voters", "1 not in the cluster", "2 are needed"],
        ),
        (text(&voting(FIVE, "a b c", "a"), "a", ""), vec!["no other node than a"]),
        (
            text(&minimum(THREE, 2), "b", "c"),
            vec!["without b 1 master-eligible nodes", "c down", "2 are needed"],
        ),
    ];
    for (found, expected) in cases {
        for text in expected {
            assert!(found.contains(text), "{text}: {found}");
        }
    }
}
