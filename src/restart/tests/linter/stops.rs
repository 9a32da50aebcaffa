//! Stop requests that are sent in a wrong way: when the drain ends, and what the manager does later.

use super::{finds, has, is_stop, moment, play_to};
use crate::tests::lint::lint;
use crate::tests::scenario::play_line;
use crate::tests::{driver::Driver, world::World};
use crate::{Action, Drain, Endpoint, Plan, Policy, Snapshot};

#[test]
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
    let other = spoiled(&|resume| resume.as_mut().unwrap().checksum = Some("v1".into()));
    finds("resumes on Some(Some(\"v1\")), not on Some(Some(\"v2\"))", &snapshot, &other);
    finds("resumes on None", &snapshot, &spoiled(&|resume| *resume = None));
}

#[test]
fn a_drain_that_ends_too_early_is_found() {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let policy = Policy { drain: Drain::Auto, ..Policy::default() };
    let mut driver = Driver::new(World::new(&nodes), policy);
    play_line(&mut driver, "services send requests to logs-*");
    play_line(&mut driver, "request rolling r1");
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
    finds("does not drain", auto, &|pod| pod.manager.as_mut().unwrap().draining = false);
    let fixed = Policy { drain: Drain::Fixed(10_000), ..auto.clone() };
    finds("though its time is fixed", &fixed, &|_| {});
}
