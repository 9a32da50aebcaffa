//! A majority stays, by tables and by enumeration.

use std::collections::BTreeSet;

use super::{code, engine, id, ids, names, sentence, unknown};
use crate::restart::gate::Gate;
use crate::restart::gates::Electorate;
use crate::restart::{Code, Engine, Voting};

const REFUSED: Option<Code> = Some(Code::Quorum);
const NOT_KNOWN: Option<Code> = Some(Code::EngineUnreachable);

const ONE: &str = "a master elected data";
const TWO: &str = "a master elected, b master";
const THREE: &str = "a master elected, b master, c master, d data, x";
const TWO_OF_THREE: &str = "a master elected, b master, d data";
const FOUR: &str = "a master elected, b master, c master, d master";
const FIVE: &str = "a master elected, b master, c master, d master, e master";

/// With these voters.
fn voting(nodes: &str, committed: &str, accepted: &str) -> Engine {
    let voting = Voting::Configurations { committed: ids(committed), accepted: ids(accepted) };
    Engine { voting: Ok(voting), ..engine(nodes) }
}

/// An Elasticsearch 6 with this minimum.
fn minimum(nodes: &str, minimum: u32) -> Engine {
    Engine { voting: Ok(Voting::MinimumMasterNodes(minimum)), ..engine(nodes) }
}

/// What the rule says of one node.
fn quorum(engine: &Engine, candidate: &str, down: &BTreeSet<String>, allow_outage: bool) -> Gate {
    Electorate::of(engine).gate(candidate, down, allow_outage)
}

/// Asks for each; with an outage allowed everything passes.
fn check(cases: &[(&str, Engine, &str, &str, Option<Code>)]) {
    for (what, engine, candidate, down, answer) in cases {
        assert_eq!(code(&quorum(engine, candidate, &names(down), false)), *answer, "{what}");
        assert_eq!(quorum(engine, candidate, &names(down), true), Ok(()), "{what}, outage allowed");
    }
}

#[test]
fn a_majority_of_both_configurations_stays() {
    check(&[
        ("one master", voting(ONE, "a", "a"), "a", "", REFUSED),
        ("two masters, both vote", voting(TWO, "a b", "a b"), "b", "", REFUSED),
        ("two masters, the one without a vote", voting(TWO, "a", "a"), "b", "", None),
        ("two masters, the one with the vote", voting(TWO, "a", "a"), "a", "", REFUSED),
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
            "a voter that told no roles",
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
        ("a node without roles may be a master", minimum(THREE, 3), "x", "a", REFUSED),
        ("a node that is not in", minimum(TWO_OF_THREE, 2), "c", "", None),
    ]);
}

#[test]
fn what_is_not_known_keeps_every_possible_voter_up() {
    let silent = || Engine { voting: Err(unknown()), ..engine(THREE) };
    check(&[
        ("votes unknown, a master", silent(), "a", "", NOT_KNOWN),
        ("votes unknown, a data node", silent(), "d", "", None),
        ("votes unknown, roles too", silent(), "x", "", NOT_KNOWN),
        ("votes unknown, not listed", silent(), "gone", "", NOT_KNOWN),
        ("nobody votes", voting(THREE, "", ""), "d", "", NOT_KNOWN),
    ]);
}

#[test]
fn two_nodes_of_one_name_go_down_together() {
    let mut twins = engine("a master elected, b master, b master");
    twins.nodes[2].id = "id of another b".to_owned();
    let voters: BTreeSet<String> = twins.nodes.iter().map(|node| node.id.clone()).collect();
    twins.voting = Ok(Voting::Configurations { committed: voters.clone(), accepted: voters });
    check(&[
        ("the pair", twins.clone(), "b", "", REFUSED),
        ("the single one", twins.clone(), "a", "", None),
        ("the single one, the pair is down", twins, "a", "b", REFUSED),
    ]);
}

#[test]
fn the_sentence_names_numbers_who_is_missing_and_the_remedy() {
    let told =
        |engine: &Engine, candidate, down| sentence(quorum(engine, candidate, &names(down), false));
    let outage = "spec.restart.allowOutage: true";
    let cases = [
        (told(&voting(ONE, "a", "a"), "a", ""), vec!["nobody but a", "outage", outage, "three"]),
        (told(&minimum(ONE, 1), "a", ""), vec!["nobody but a", outage]),
        (
            told(&voting(FIVE, "a b c d e", "a b c d e"), "e", "b c"),
            vec!["without e 2 of 5 voters of the committed", "b, c down", "takes 3", outage],
        ),
        (
            told(&voting(TWO_OF_THREE, "a b c", "a b c"), "a", ""),
            vec!["without a 1 of 3 voters", "1 not in the cluster", "takes 2"],
        ),
        (told(&voting(FIVE, "a b c", "a"), "a", ""), vec!["nobody but a"]),
        (
            told(&minimum(THREE, 2), "b", "c"),
            vec!["without b 1 master-eligible nodes", "c down", "takes 2"],
        ),
    ];
    for (told, words) in cases {
        for word in words {
            assert!(told.contains(word), "{word}: {told}");
        }
    }
}

/// Voters out of nine masters, and for every set of masters whether some majority of the voters is
/// wholly in it, found by trying every subset.
struct Voters {
    set: u32,
    decide: Vec<bool>,
}

impl Voters {
    fn new(set: u32) -> Self {
        let is_majority = |subset: &u32| subset.count_ones() > (set & !subset).count_ones();
        let majorities: Vec<u32> = subsets(set).filter(is_majority).collect();
        let decide = |left: u32| majorities.iter().any(|majority| majority & !left == 0);
        Self { set, decide: (0..1 << 9).map(decide).collect() }
    }
}

/// Names of the masters in a set: `m0`, `m1`, ...
fn members(set: u32) -> BTreeSet<String> {
    (0..9).filter(|bit| set & (1 << bit) != 0).map(|bit| format!("m{bit}")).collect()
}

/// A cluster of masters, of which `listed` are in, with two configurations.
fn masters(listed: u32, committed: u32, accepted: u32) -> Engine {
    let nodes: Vec<String> = members(listed).iter().map(|name| format!("{name} master")).collect();
    let configuration = |set| members(set).iter().map(|name| id(name)).collect();
    let mut engine = engine(&format!("x ingest elected, {}", nodes.join(", ")));
    engine.voting = Ok(Voting::Configurations {
        committed: configuration(committed),
        accepted: configuration(accepted),
    });
    engine
}

/// Asks about every node that is in, with every set of listed nodes down; how many questions.
fn compare(listed: u32, committed: &Voters, accepted: &Voters) -> usize {
    let engine = masters(listed, committed.set, accepted.set);
    let electorate = Electorate::of(&engine);
    let candidates: Vec<(u32, String)> = (0..9)
        .map(|place| (1 << place, format!("m{place}")))
        .filter(|(bit, _)| listed & bit != 0)
        .collect();
    let mut asked = 0;
    for down in subsets(listed) {
        let names = members(down);
        for (bit, candidate) in &candidates {
            let left = listed & !down & !bit;
            let decide = |voters: &Voters| voters.decide[left as usize];
            let expected = (committed.set | accepted.set) & bit == 0
                || (decide(committed) && decide(accepted));
            assert_eq!(
                electorate.gate(candidate, &names, false).is_ok(),
                expected,
                "{candidate} of {listed:b}, {down:b} down, votes {:b} and {:b}",
                committed.set,
                accepted.set
            );
            asked += 1;
        }
    }
    asked
}

/// Every subset of a set, itself and the empty one too.
fn subsets(set: u32) -> impl Iterator<Item = u32> {
    let next = move |subset: &u32| (*subset > 0).then(|| (subset - 1) & set);
    std::iter::successors(Some(set), next)
}

/// Every number of voters up to nine, with every set of them in the cluster and every set of those
/// down. Which of the nine are the voters is only a matter of names.
#[test]
fn up_to_nine_masters_agree_with_enumeration() {
    let mut asked = 0;
    for number in 1..=9 {
        let voters = Voters::new((1 << number) - 1);
        asked += (0..1 << 9).map(|listed| compare(listed, &voters, &voters)).sum::<usize>();
    }
    // Each of nine is in, down, or out: 9 candidates that are in, or in and down, times 3^8 others.
    assert_eq!(asked, 9 * 9 * 2 * 3_usize.pow(8));
}

/// Every two configurations of four masters.
#[test]
fn any_two_configurations_agree_with_enumeration() {
    let voters: Vec<Voters> = (1..16).map(Voters::new).collect();
    for listed in 0..16 {
        for committed in &voters {
            for accepted in &voters {
                assert_eq!(compare(listed, committed, accepted) == 0, listed == 0);
            }
        }
    }
}

/// With all masters voting and `ready` of them in. The rule `ready > (n + 1) / 2` that another
/// operator uses is wrong in exactly four places up to nine masters.
#[test]
fn counting_ready_masters_is_wrong_for_even_numbers() {
    let mut differ = Vec::new();
    for n in 1..=9_u32 {
        for ready in 1..=n {
            let all = (1 << n) - 1;
            let engine = masters((1 << ready) - 1, all, all);
            let ours = quorum(&engine, "m0", &names(""), false).is_ok();
            if ours != (ready > n.div_ceil(2)) {
                assert!(!ours, "ours is the careful one");
                differ.push((n, ready));
            }
        }
    }
    assert_eq!(differ, [(2, 2), (4, 3), (6, 4), (8, 5)]);
}
