//! Stop requests that are sent in a wrong way: when the drain ends, and what the manager does later.

use super::{finds, has, is_stop, moment, play_to};
use crate::tests::lint::lint;
use crate::tests::scenario::play_line;
use crate::tests::{driver::Driver, world::World};
use crate::{Action, Drain, Endpoint, Plan, Policy, Snapshot};

#[test] // proves RESTART-30
fn a_stop_that_ends_by_itself_on_something_else_is_found() {
    let (snapshot, made) = moment(|made, _| has(made, is_stop));
    let spoiled = |spoil: &dyn Fn(&mut Option<crate::Resume>)| {
        let mut spoiled = made.clone();
        for action in &mut spoiled.actions {
            if let Action::Stop { resume, .. } = action {
                spoil(resume);
            }
        }
        spoiled
    };
    let other = spoiled(&|resume| resume.as_mut().unwrap().checksum = Some("v2".into()));
    finds("resumes on Some(Some(\"v2\")), not on Some(None)", &snapshot, &other);
    finds("resumes on None", &snapshot, &spoiled(&|resume| *resume = None));
}

/// A rolling restart of nodes that Services send requests to.
fn draining() -> Driver {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let policy = Policy { drain: Drain::Auto, ..Policy::default() };
    let mut driver = Driver::new(World::new(&nodes), policy);
    play_line(&mut driver, "services send requests to logs-*");
    play_line(&mut driver, "request rolling r1");
    driver
}

#[test] // proves STOP-22
fn a_drain_that_begins_too_early_is_found() {
    let mut driver = draining();
    let drains = |action: &Action| matches!(action, Action::Drain { .. });
    let (snapshot, made) = play_to(&mut driver, |made, _| has(made, drains));
    let finds = |complaint: &str, policy: &Policy, made: &Plan| {
        let found = lint(&snapshot, policy, made);
        let is_found = found.iter().any(|line| line.contains(complaint));
        assert!(is_found, "{complaint:?} not in {found:#?}");
    };
    let spoiled = |spoil: &dyn Fn(&mut String, &mut u64)| {
        let mut spoiled = made.clone();
        for action in &mut spoiled.actions {
            if let Action::Drain { uid, sequence } = action {
                spoil(uid, sequence);
            }
        }
        spoiled
    };
    let auto = &driver.policy;
    let other = snapshot.pods.iter().find(|pod| pod.name == "logs-0").unwrap();
    finds("has no slot", auto, &spoiled(&|uid, _| *uid = "unknown".into()));
    finds("not the stop of its slot", auto, &spoiled(&|uid, _| uid.clone_from(&other.uid)));
    finds("not the stop of its slot", auto, &spoiled(&|_, sequence| *sequence += 1));
    let mut alone = made.clone();
    alone.actions.retain(|action| !matches!(action, Action::Flush { .. }));
    finds("its stop is not prepared", auto, &alone);
    let fixed = Policy { drain: Drain::Fixed(10_000), ..auto.clone() };
    finds("though its time is fixed", &fixed, &made);
}

#[test]
fn a_drain_that_ends_too_early_is_found() {
    let mut driver = draining();
    let ends = |action: &Action| matches!(action, Action::EndDrain { .. });
    let (snapshot, made) = play_to(&mut driver, |made, _| has(made, ends));
    let uid = made.actions.iter().find(|action| ends(action)).and_then(Action::pod).unwrap();
    let finds = |complaint: &str, policy: &Policy, spoil: &dyn Fn(&mut crate::Pod)| {
        let mut spoiled: Snapshot = snapshot.clone();
        spoil(spoiled.pods.iter_mut().find(|pod| pod.uid == uid).unwrap());
        let found = lint(&spoiled, policy, &made as &Plan);
        let is_found = found.iter().any(|line| line.contains(complaint));
        assert!(is_found, "{complaint:?} not in {found:#?}");
    };
    let auto = &driver.policy;
    finds("at Ok(Ready)", auto, &|pod| pod.endpoint = Ok(Endpoint::Ready));
    finds("ms more at Ok(NotReady)", auto, &|pod| pod.unserved_since = None);
    finds("does not drain", auto, &|pod| pod.manager.as_mut().unwrap().draining = false);
    let fixed = Policy { drain: Drain::Fixed(10_000), ..auto.clone() };
    finds("though its time is fixed", &fixed, &|_| {});
}
