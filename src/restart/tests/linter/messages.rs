//! Messages that break a rule are found.

use super::{finds, moment};
use crate::tests::lint::lint;
use crate::{Code, Plan, Policy, Waiting};

#[test] // proves RESTART-116
fn words_against_the_rules_are_found() {
    let (snapshot, made) = moment(|made, _| !made.waiting.is_empty());
    let first = "advises first what costs something";
    let empty = "has an empty part";
    for (message, fault) in [
        ("waits; spec.restart.allowOutage: true accepts it", first),
        ("waits; kubectl stayput restart --allow-outage", first),
        ("write x into the annotation eck.k8s.elastic.co/disable-upgrade-predicates", first),
        ("waits; kubectl stayput restart logs --allow-unreplicated single", first),
        ("waits; kubectl stayput restart logs --skip-rule x", first),
        ("its config is None", "shows a value of the program"),
        ("its config is Some(v2)", "shows a value of the program"),
        ("restart r1 ended as aborted ()", empty),
        ("the image is \"\" now", empty),
        ("logs-0: ", empty),
        ("logs-0 waits: ; it goes on later", empty),
        ("no node takes it: 3 Insufficient memory.; then it waits", "full stop before another"),
        ("it waits..", "full stop before another"),
        ("it waits for 30", "does not say of what"),
        ("it has waited for 30; it goes on", "does not say of what"),
        ("logs-0: logs-0: cancelled", "says a name twice in a row"),
    ] {
        let mut spoiled = made.clone();
        spoiled.waiting[0].message = message.into();
        finds(fault, &snapshot, &spoiled);
    }
}

#[test]
fn words_by_the_rules_are_not_found() {
    let (snapshot, mut made) = moment(|made, _| !made.waiting.is_empty());
    for message in [
        "waits; as a last resort, kubectl stayput restart --allow-outage",
        "the engine ended with code 1; 2 of 3 nodes are down for 30 s (shard 0 of logs)",
        "image a → b, at 2026-11-25T21:00:00.000Z",
        "GET /_cluster/health?wait_for_status=green says more",
        "3 Insufficient memory. preemption: not helpful...",
    ] {
        made.waiting[0].message = message.into();
        let found = lint(&snapshot, &Policy::default(), &made);
        assert_eq!(found, Vec::<String>::new(), "{message}");
    }
}

#[test] // proves RESTART-116
fn a_block_that_names_nothing_is_found() {
    let (snapshot, made) = moment(|made, _| !made.waiting.is_empty());
    let mut nameless = made.clone();
    nameless.waiting.iter_mut().for_each(|one| one.code = Code::Paused);
    nameless.waiting.iter_mut().for_each(|one| one.message = "held for now".into());
    finds("what blocks (paused) is not named", &snapshot, &nameless);
}

#[test]
fn a_zone_that_does_not_name_the_node_that_blocks_it_is_found() {
    let (snapshot, made) = moment(|made, _| !made.waiting.is_empty());
    let wait = |blocked: &str| Waiting {
        pod: None,
        node: None,
        code: Code::OwnerWillReplace,
        message: format!(
            "zone a is restarted as a whole or not at all, and 1 of its 3 nodes may not \
             be stopped now{blocked} (owner_will_replace: its StatefulSet has a newer revision); a \
             smaller step that is possible now: --node logs-1, one after the other"
        )
        .into(),
    };
    let spoiled = |blocked: &str| Plan { waiting: vec![wait(blocked)], ..made.clone() };
    let fault = "what blocks (owner_will_replace) is not named";
    finds(fault, &snapshot, &spoiled(""));
    let found = lint(&snapshot, &Policy::default(), &spoiled(": logs-0"));
    assert!(!found.iter().any(|line| line.contains(fault)), "{found:#?}");
}

#[test] // proves RESTART-116
fn a_last_good_config_that_is_not_there_is_found() {
    let (mut snapshot, made) = moment(|made, _| made.waiting.iter().any(|one| one.pod.is_some()));
    let mut spoiled: Plan = made.clone();
    let wait = spoiled.waiting.iter_mut().find(|one| one.pod.is_some()).unwrap();
    wait.message = "start it again, or with the last good one".into();
    let pod = snapshot.pods.iter_mut().find(|pod| Some(&pod.uid) == wait.pod.as_ref()).unwrap();
    pod.manager.as_mut().unwrap().last_good = None;
    finds("names a last good config", &snapshot, &spoiled);
}
