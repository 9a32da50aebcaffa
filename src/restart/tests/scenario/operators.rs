//! The lines of a script about the object of an operator that makes the pods.

use super::command::full;
use crate::tests::driver::Driver;
use crate::{Operator, OperatorFacts, OperatorObject, OperatorState, Unknown};

pub(super) fn carry_out(driver: &mut Driver, words: &[&str]) {
    match words[..] {
        ["the", "pods", "are", how @ ("old" | "new")] => {
            let operators = driver.world.pods.iter_mut().filter_map(|pod| pod.operator.as_mut());
            operators.for_each(|operator| operator.replaces_pods = how == "old");
            driver.world.object.touch();
        }
        ["its", "object", "cannot", "be", "read"] => {
            set(driver, Err(Unknown { message: "not allowed".into() }));
        }
        ["its", "object", "is", "read"] => set(driver, Ok(OperatorFacts::default())),
        ["its", "object", "has", "the", "budget", budget] => {
            facts(driver).max_unavailable = Some(budget.parse().expect("a number"));
        }
        ["its", "object", "is", "paused"] => facts(driver).state = OperatorState::Paused,
        ["annotate", key, "-"] => _ = facts(driver).annotations.remove(&full(key)),
        ["annotate", key, value] => {
            facts(driver).annotations.insert(full(key), value.into());
        }
        _ => panic!("no such line about an operator: {words:?}"),
    }
}

fn set(driver: &mut Driver, facts: Result<OperatorFacts, Unknown>) {
    let made_by = driver.world.pods.iter().find_map(|pod| pod.operator.clone());
    let Operator { kind, object: name, .. } = made_by.expect("an operator makes the pods");
    driver.world.object.touch().operator_objects = vec![OperatorObject { kind, name, facts }];
}

fn facts(driver: &mut Driver) -> &mut OperatorFacts {
    let object = driver.world.object.touch().operator_objects.first_mut();
    object.expect("its object is read").facts.as_mut().expect("its object is read")
}
