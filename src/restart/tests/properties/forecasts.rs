//! A forecast matches what the controller then does.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::driver::Driver;
use super::super::scenario::play_line;
use super::{Case, How, always_the_same, case};
use crate::{Forecast, ForecastStepKind, ForecastTime, Snapshot, forecast, needs_engine};

/// Nodes in the order in which their managers received a stop request.
fn stopped(driver: &Driver) -> Vec<String> {
    let stops = driver.world.judged.iter().filter(|one| one.is_stop && one.took_effect);
    stops.map(|one| one.pod.clone()).collect()
}

/// Whether `done` is what was predicted: step after step, in any order within one. An immediate
/// restart stops the next node whenever one is back, so that only the set of nodes can be
/// predicted. Nodes that are not predicted yet may go or not.
fn check_as_forecast(
    predicted: &Forecast,
    before: &[String],
    done: &[String],
) -> Result<(), String> {
    let is_open =
        |name: &&String| predicted.not_yet.iter().any(|one| one.node.as_ref() == Some(*name));
    let done: Vec<String> = done.iter().filter(|name| !is_open(name)).cloned().collect();
    let done = &done[..];
    if predicted.request.strategy == How::Immediate {
        let expected = predicted.steps.iter().flat_map(|step| &step.nodes).map(|node| &node.name);
        let expected: BTreeSet<&String> = expected.filter(|node| !before.contains(node)).collect();
        let done: BTreeSet<&String> = done.iter().collect();
        return if expected == done {
            Ok(())
        } else {
            Err(format!("{expected:?} was predicted, {done:?} went"))
        };
    }
    let mut rest = done;
    let steps = predicted.steps.iter().filter(|step| step.kind != ForecastStepKind::Start);
    for step in steps {
        let all = step.nodes.iter().map(|node| &node.name);
        let new: BTreeSet<&String> = match step.when {
            ForecastTime::UnderWay => all.filter(|node| !before.contains(node)).collect(),
            ForecastTime::Now | ForecastTime::Later => all.collect(),
        };
        let (now, then) = rest.split_at(new.len().min(rest.len()));
        if now.iter().collect::<BTreeSet<_>>() != new {
            return Err(format!("{new:?} was predicted, and {now:?} went, of {done:?}"));
        }
        rest = then;
    }
    if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?} went, too")) }
}

/// A snapshot with the engine read, as a forecast needs it.
fn observed(driver: &mut Driver) -> Snapshot {
    let (mut snapshot, _) = driver.world.observe(&driver.flushed.clone());
    if !needs_engine(&snapshot) {
        snapshot.engine = driver.world.engine.observe(driver.world.now);
    }
    snapshot
}

fn driver(case: &Case) -> Driver {
    let mut driver = case.driver();
    driver.fates.clear();
    play_line(&mut driver, "change config logs-* v2");
    driver
}

proptest! {
    #![proptest_config(always_the_same(24))]

    #[test] // proves RULE-19
    fn a_restart_goes_as_was_forecast_before_it(case in case()) {
        let mut driver = driver(&case);
        play_line(&mut driver, &format!("request {} r1 deadline 15m", case.how.as_str()));
        let snapshot = observed(&mut driver);
        let predicted = forecast(&snapshot, &driver.policy, None);
        driver.run(40 * 60_000, |driver| driver.is_at_rest() && !driver.world.ledger().history.is_empty());
        let done = stopped(&driver);
        let result = check_as_forecast(&predicted, &[], &done);
        prop_assert!(result.is_ok(), "{}\n{predicted:#?}\n{}", result.unwrap_err(), driver.page.text());
        let never = predicted.never.len() + predicted.not_yet.len();
        let nodes: usize = predicted.steps.iter().filter(|step| step.kind != ForecastStepKind::Start)
            .map(|step| step.nodes.len()).sum();
        prop_assert_eq!(nodes + never, case.nodes.len(), "{:#?}", predicted);
    }

    #[test] // proves RULE-20
    fn it_goes_on_as_is_forecast_in_the_middle_of_it(case in case(), at in 0_u64..60_000) {
        let mut driver = driver(&case);
        play_line(&mut driver, &format!("request {} r1 deadline 15m", case.how.as_str()));
        driver.run(at, |_| false);
        let snapshot = observed(&mut driver);
        // Past its end there is nothing to predict.
        prop_assume!(snapshot.ledger.restart.is_some());
        let before = stopped(&driver);
        let predicted = forecast(&snapshot, &driver.policy, None);
        driver.run(40 * 60_000, |driver| driver.is_at_rest() && !driver.world.ledger().history.is_empty());
        let done = stopped(&driver);
        let result = check_as_forecast(&predicted, &before, &done[before.len()..]);
        prop_assert!(result.is_ok(), "{}\n{predicted:#?}\n{}", result.unwrap_err(), driver.page.text());
    }

    #[test]
    fn asking_beforehand_is_as_asking(case in case()) {
        let mut driver = driver(&case);
        let snapshot = observed(&mut driver);
        let request = crate::Request {
            id: "r1".into(), strategy: case.how, ..crate::Request::default()
        };
        let before = forecast(&snapshot, &driver.policy, Some(&request));
        play_line(&mut driver, &format!("request {} r1", case.how.as_str()));
        let asked = forecast(&observed(&mut driver), &driver.policy, None);
        prop_assert_eq!(&before.steps, &asked.steps);
        prop_assert_eq!(&before.never, &asked.never);
        prop_assert_eq!(&before.not_yet, &asked.not_yet);
        prop_assert_eq!(&before.waiting, &asked.waiting);
    }

    #[test]
    fn any_state_can_be_forecast(case in case(), at in 0_u64..90_000) {
        let mut driver = case.driver();
        driver.policy.max_unavailable = case.max_unavailable;
        play_line(&mut driver, &format!("request {} r1", case.how.as_str()));
        for (moment, fault) in case.faults.iter().filter(|(moment, _)| *moment < at) {
            driver.run(moment.saturating_sub(driver.world.now - super::super::world::START), |_| false);
            fault.happens(&mut driver);
        }
        driver.run(at, |_| false);
        let mut snapshot = observed(&mut driver);
        for request in [None, Some(crate::Request { id: "other".into(), ..Default::default() })] {
            let predicted = forecast(&snapshot, &driver.policy, request.as_ref());
            let mut seen: Vec<&str> = predicted.steps.iter().filter(|step| step.kind != ForecastStepKind::Start)
                .flat_map(|step| &step.nodes).map(|node| node.name.as_str())
                .chain(predicted.never.iter().chain(&predicted.not_yet).filter_map(|one| one.node.as_deref())).collect();
            let all = seen.len();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len(), all, "a node is listed twice: {:#?}", predicted);
            snapshot.pods.reverse();
            prop_assert_eq!(predicted, forecast(&snapshot, &driver.policy, request.as_ref()));
        }
    }
}
