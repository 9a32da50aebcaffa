//! The quorum rule, compared with enumeration: every case of up to nine masters is checked, except
//! those that differ only in names.

use std::collections::{BTreeMap, BTreeSet};

use super::{engine, id};
use crate::index::OwnedNameSet;
use crate::rules::{MasterVoters, QuorumAfterStop};
use crate::tests::world::votes::Votes as Model;
use crate::{Engine, Voting};

/// Each state of a master: in the committed configuration or not, in the accepted one or not.
const KINDS: usize = 4;
const COMMITTED: usize = 1;
const ACCEPTED: usize = 2;

/// For a set of voters and every set of masters, whether some majority of the voters is wholly in
/// it, found by trying every subset of the voters.
#[derive(Default)]
struct Enumerated(BTreeMap<u32, Vec<bool>>);

impl Enumerated {
    fn decide(&mut self, voters: u32, left: u32) -> bool {
        let of_voters = self.0.entry(voters).or_insert_with(|| {
            let is_majority = |subset: &u32| subset.count_ones() > (voters & !subset).count_ones();
            let majorities: Vec<u32> = subsets(voters).filter(is_majority).collect();
            let decide = |left: u32| majorities.iter().any(|majority| majority & !left == 0);
            (0..1 << 9).map(decide).collect()
        });
        of_voters[left as usize]
    }
}

/// Every subset of a set, itself and the empty one too.
fn subsets(set: u32) -> impl Iterator<Item = u32> {
    let next = move |subset: &u32| (*subset > 0).then(|| (subset - 1) & set);
    std::iter::successors(Some(set), next)
}

/// Every way to put so many things into so many boxes.
fn distributions(things: usize, boxes: usize) -> Vec<Vec<usize>> {
    if boxes == 1 {
        return vec![vec![things]];
    }
    let with = |first: usize| {
        distributions(things - first, boxes - 1).into_iter().map(move |mut rest| {
            rest.push(first);
            rest
        })
    };
    (0..=things).flat_map(with).collect()
}

fn name(place: u32) -> String {
    format!("m{place}")
}

/// Names of the masters in a set.
fn members(set: u32) -> BTreeSet<String> {
    (0..9).filter(|place| set & (1 << place) != 0).map(name).collect()
}

/// A cluster of masters, of which `listed` are in, with two configurations.
fn masters(listed: u32, committed: u32, accepted: u32) -> Engine {
    let nodes: Vec<String> = members(listed).iter().map(|name| format!("{name} master")).collect();
    let configuration = |set| members(set).iter().map(|name| id(name)).collect();
    let mut engine = engine(&format!("x ingest elected, {}", nodes.join(", ")));
    engine.voting = Ok(Voting::Configurations {
        committed: configuration(committed),
        accepted: configuration(accepted),
        excluded: BTreeSet::new(),
    });
    engine
}

/// True if the nodes that are left have a majority once the vote is handed over as an engine would do it.
fn is_handed_over(listed: u32, candidate: &str, left: u32) -> bool {
    let ids = |set: u32| members(set).iter().map(|name| format!("id-{name}")).collect();
    let mut model = Model::of(&[candidate]);
    model.exclude(candidate);
    model.reconfigure(&ids(listed), Some(candidate));
    !model.has(candidate) && model.can_elect(&ids(left))
}

/// Asks about every kind of node that is in, for these two configurations and these listed; how
/// many questions. `ups` is how many of each kind are listed.
fn compare(enumerated: &mut Enumerated, kinds: &[usize], ups: &[usize], asked: &mut usize) {
    let (mut committed, mut accepted, mut listed) = (0, 0, 0);
    // Of each kind, the masters that are in.
    let mut in_it = vec![Vec::new(); KINDS];
    let mut place = 0;
    for kind in 0..KINDS {
        for nth in 0..kinds[kind] {
            let bit = 1 << place;
            committed |= if kind & COMMITTED != 0 { bit } else { 0 };
            accepted |= if kind & ACCEPTED != 0 { bit } else { 0 };
            if nth < ups[kind] {
                listed |= bit;
                in_it[kind].push(place);
            }
            place += 1;
        }
    }
    if committed == 0 || accepted == 0 {
        // No engine has an empty configuration beside one that is not.
        return;
    }
    let engine = masters(listed, committed, accepted);
    let electorate = MasterVoters::of(&engine, "search/logs");
    for downs in every_fewer(ups) {
        // The last ones of each kind are down, so that the first is one that is up, if one is.
        let down = in_it.iter().zip(&downs).flat_map(|(of_kind, many)| {
            of_kind[of_kind.len() - many..].iter().map(|place| 1 << place)
        });
        let down: u32 = down.sum();
        let names: OwnedNameSet = members(down).into_iter().collect();
        let candidates = in_it.iter().flat_map(|of_kind| {
            let last = of_kind.last().filter(|last| Some(*last) != of_kind.first());
            of_kind.first().into_iter().chain(last).copied()
        });
        for place in candidates {
            let bit = 1 << place;
            let left = listed & !down & !bit;
            let decides = (committed | accepted) & bit == 0
                || enumerated.decide(committed, left) && enumerated.decide(accepted, left);
            let candidate = name(place);
            let question = || {
                format!(
                    "{candidate} of {listed:b}, {down:b} down, votes {committed:b} and {accepted:b}"
                )
            };
            *asked += 1;
            match electorate.after_stop(&candidate, &names, None) {
                QuorumAfterStop::Kept => assert!(decides, "loses the majority: {}", question()),
                QuorumAfterStop::KeptByHandover(vote_recipient) => {
                    assert!(
                        !decides && members(left).contains(&vote_recipient),
                        "{vote_recipient}: {}",
                        question()
                    );
                    assert!(is_handed_over(listed, &candidate, left), "{}", question());
                }
                QuorumAfterStop::Lost(_) => {
                    assert!(!decides, "refuses a safe step: {}", question());
                    let alone = committed == bit && accepted == bit;
                    let others_up = left != 0 && listed & down & !bit == 0;
                    assert!(!(alone && others_up), "could be handed over: {}", question());
                }
            }
        }
    }
}

/// Every combination of numbers that are no larger.
fn every_fewer(most: &[usize]) -> Vec<Vec<usize>> {
    most.iter().fold(vec![Vec::new()], |all, most| {
        let with = |one: Vec<usize>| {
            (0..=*most).map(move |next| one.iter().copied().chain([next]).collect())
        };
        all.into_iter().flat_map(with).collect()
    })
}

/// Every two configurations of so many masters, with every set of them in the cluster and every set
/// of those down, up to names.
fn enumerate(number: usize) -> usize {
    let mut asked = 0;
    let mut enumerated = Enumerated::default();
    for kinds in distributions(number, KINDS) {
        for ups in every_fewer(&kinds) {
            compare(&mut enumerated, &kinds, &ups, &mut asked);
        }
    }
    asked
}

/// Fewer masters than nine are nine of which some vote nowhere and are not in.
#[test] // proves RULE-1
fn no_step_up_to_nine_masters_loses_a_majority_and_no_safe_one_is_refused() {
    assert_eq!(enumerate(9), 747_410);
}

/// All masters vote, and `ready` of them are in the cluster. The rule `ready > (n + 1) / 2` that
/// another operator uses is wrong in exactly four places up to nine masters; and both refuse a
/// single one.
#[test]
fn counting_ready_masters_is_wrong_for_even_numbers() {
    let mut differ = Vec::new();
    for n in 1..=9_u32 {
        for ready in 1..=n {
            let all = (1 << n) - 1;
            let engine = masters((1 << ready) - 1, all, all);
            let ours = MasterVoters::of(&engine, "search/logs").after_stop(
                "m0",
                &OwnedNameSet::default(),
                None,
            );
            let majority = ready > n / 2 + 1;
            assert_eq!(ours == QuorumAfterStop::Kept, majority, "{ready} of {n}");
            if majority != (ready > n.div_ceil(2)) {
                assert!(!majority, "ours is the careful one");
                differ.push((n, ready));
            }
        }
    }
    assert_eq!(differ, [(2, 2), (4, 3), (6, 4), (8, 5)]);
    let one = masters(1, 1, 1);
    let one =
        MasterVoters::of(&one, "search/logs").after_stop("m0", &OwnedNameSet::default(), None);
    assert!(matches!(one, QuorumAfterStop::Lost(_)), "{one:?}");
}
