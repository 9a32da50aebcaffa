//! Laws for every cluster that can be described, however unusual: nothing panics, the order of the
//! input does not matter, and updated counts are the same as new ones.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::table::{Case, cases};
use crate::index::{Index, NameSet};
use crate::rules::node_counts::NodeCounts;
use crate::rules::{Evaluation, order};
use crate::{Disabled, Pod, ShardCopies, ShardCopy, Share, Snapshot, Strategy as How};
use stayput_api::State;

const ROLES: [&str; 12] = [
    "",
    "master",
    "master data",
    "cluster_manager",
    "master voting_only",
    "data",
    "data_hot data_content",
    "data_warm ingest",
    "data_cold data_frozen",
    "search",
    "ingest",
    "quantum",
];
const STATES: [&str; 15] = [
    "version 8.19.0",
    "version 8.19.0",
    "version 8.19.1",
    "not asked",
    "elected",
    "not ready",
    "crash-looping",
    "terminating",
    "manager silent",
    "process ended",
    "not in the cluster",
    "no pod",
    "kept stopped",
    "under way",
    "version main",
];
/// Few names, so that two nodes often have the same.
const NAMES: [&str; 8] = ["a-0", "a-1", "a-2", "b-0", "b-10", "b-9", "c", "d-x"];
const HEALTHS: [&str; 6] = [
    "green",
    "yellow, 1 unassigned",
    "yellow, 2 initializing, 1 delayed",
    "red, 4294967295 unassigned",
    "odd, busy",
    "unread",
];
const LIMITS: [&str; 4] = ["1", "2", "50%", "4294967295"];
const DISABLED: [&str; 4] = ["", "one_master_at_a_time,quorum", "require_started_replica", "*"];

/// A cluster in text, as in the tables.
fn cluster_text() -> impl Strategy<Value = String> {
    let node = (0..NAMES.len(), 0..ROLES.len(), 0..STATES.len(), 0..STATES.len());
    let copy = (0..NAMES.len() + 2, 0_u32..3, any::<bool>());
    let settings = (0..HEALTHS.len(), 0..LIMITS.len(), 0..DISABLED.len(), any::<bool>(), 0..3_u32);
    (prop::collection::vec(node, 1..9), prop::collection::vec(copy, 0..9), settings).prop_map(
        |(nodes, copies, (health, limit, disabled, outage, voting))| {
            let mut seen = BTreeSet::new();
            let nodes: Vec<String> = nodes
                .into_iter()
                .map(|(name, roles, one, other)| {
                    // A second node of the same name has no pod.
                    let states = if seen.insert(name) {
                        format!("{}; {}", STATES[one], STATES[other])
                    } else {
                        "no pod".to_owned()
                    };
                    format!("{} {} ({states})", NAMES[name], ROLES[roles])
                })
                .collect();
            let copies: Vec<String> = copies
                .into_iter()
                .map(|(at, shard, primary)| {
                    let node = NAMES.get(at).copied().unwrap_or("?");
                    format!("i/{shard}: {node}{}", if primary { "*" } else { "" })
                })
                .collect();
            let mut text = format!("case: any\nnodes: {}\n", nodes.join(", "));
            if !copies.is_empty() {
                text += &format!("shards: {}\n", copies.join("; "));
            }
            text += match voting {
                0 => "",
                1 => "voters: unread\n",
                _ => "minimum of masters: 2\n",
            };
            text += if outage { "outage: allowed\n" } else { "" };
            text + &format!(
                "health: {}\nmax: {}\nmax of data: 1\ndisabled: {}\n",
                HEALTHS[health], LIMITS[limit], DISABLED[disabled]
            )
        },
    )
}

fn case(text: &str) -> Case {
    cases(text).remove(0)
}

/// Proptest settings with a fixed seed: the same cases in every run.
fn always_the_same() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(20_261_121),
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    }
}

proptest! {
    #![proptest_config(always_the_same())]

    #[test]
    fn nothing_panics_and_every_no_says_why(text in cluster_text()) {
        for how in [How::Rolling, How::Immediate] {
            let case = Case { strategy: how, ..case(&text) };
            let answers = case.select();
            let goes = answers.iter().filter(|(_, no)| no.is_none()).count();
            prop_assert!(goes <= case.policy.max_unavailable.of(case.snapshot.pods.len()));
            for (name, no) in answers {
                if let Some((_, message)) = no {
                    prop_assert!(message.len() > 10 && !message.contains("nobody is"), "{name}: {message}");
                }
            }
        }
    }

    #[test]
    fn the_order_of_what_was_read_is_of_no_matter(text in cluster_text(), turn in 0_usize..9) {
        let one = case(&text);
        let mut other = case(&text);
        let turned = turn % other.snapshot.pods.len().max(1);
        other.snapshot.pods.rotate_left(turned);
        other.snapshot.pods.reverse();
        if let Some(restart) = &mut other.snapshot.ledger.restart {
            restart.members.reverse();
        }
        other.asked.reverse();
        let engine = other.snapshot.engine.as_mut().expect("an engine");
        engine.nodes.reverse();
        if let Ok(copies) = &mut engine.shards {
            let mut all = copies.to_vec();
            let turned = turn % all.len().max(1);
            all.rotate_left(turned);
            *copies = all.into_iter().collect();
        }
        prop_assert_eq!(one.select(), other.select());
    }

    #[test]
    fn counting_on_is_counting_anew(text in cluster_text()) {
        let case = case(&text);
        let view = Index::new(&case.snapshot);
        let evaluation = Evaluation::of(&view, &case.snapshot.ledger, &case.policy, &NameSet::default());
        let Ok(mut evaluation) = evaluation else { return Ok(()) };
        let asked: Vec<&Pod> =
            case.snapshot.pods.iter().filter(|pod| case.asked.contains(&pod.name)).collect();
        for pod in order(asked.into_iter(), view.engine().ok()) {
            evaluation.take_slot(&pod.uid);
            prop_assert_eq!(&evaluation.counts, &NodeCounts::of(evaluation.peers()));
        }
    }

    #[test] // proves RULE-2
    fn every_shard_that_is_there_stays_there(text in cluster_text()) {
        let mut case = case(&text);
        case.policy.disabled = Disabled::default();
        case.policy.allow_outage = false;
        case.policy.max_unavailable = Share::Nodes(9);
        let Snapshot { ledger, engine: Ok(engine), pods, .. } = &case.snapshot else {
            return Ok(());
        };
        let members = ledger.restart.iter().flat_map(|restart| &restart.members);
        let under_way = members.filter(|one| one.is_under_way()).map(|one| &one.node);
        let ended = pods.iter().filter(|pod| {
            pod.manager.as_ref().is_ok_and(|manager| manager.state != State::Running)
        });
        let kept_stopped = ledger.kept_stopped.iter().map(|entry| &entry.node);
        let down: BTreeSet<&String> =
            under_way.chain(ended.map(|pod| &pod.node)).chain(kept_stopped).collect();
        let goes: BTreeSet<String> =
            case.select().into_iter().filter(|(_, no)| no.is_none()).map(|(name, _)| name).collect();
        let answers = |copy: &&ShardCopy| {
            let listed = |name: &&String| engine.nodes.iter().any(|node| node.name == **name);
            let up = |name: &&String| listed(name) && !down.contains(name);
            copy.started && copy.node.as_ref().is_some_and(|name| up(&name))
        };
        let copies: Vec<ShardCopy> = engine.shards.iter().flat_map(ShardCopies::to_vec).collect();
        for copy in copies.iter().filter(answers) {
            let mut all = copies.iter().filter(answers);
            let stays = all.any(|other| {
                (&other.index, other.shard) == (&copy.index, copy.shard)
                    && other.node.as_ref().is_some_and(|name| !goes.contains(name))
            });
            prop_assert!(stays, "{copy:?} is lost by the restart of {goes:?}");
        }
        let masters = engine.nodes.iter().filter(|node| node.is_master_eligible());
        let leave: BTreeSet<&str> =
            masters.map(|node| node.name.as_str()).filter(|name| goes.contains(*name)).collect();
        prop_assert!(leave.len() <= 1, "{leave:?} at once");
    }
}
