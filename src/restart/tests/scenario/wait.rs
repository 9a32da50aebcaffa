//! `run until …`: what a script waits for. The script fails if it does not happen.

use super::command::span_of;
use crate::tests::driver::Driver;
use crate::{MemberStep, annotation};

/// The longest a script waits.
const LONGEST: u64 = 4 * 60 * 60 * 1000;

pub(super) fn until(driver: &mut Driver, words: &[&str]) {
    let came = match words {
        ["done"] => {
            driver.run(2_000, |_| false);
            let came = driver.run(LONGEST, |driver| {
                driver.is_at_rest() && driver.world.engine.allocation.marker.is_none()
            });
            // Actions that follow at once belong to it.
            came && {
                driver.run(2_000, |_| false);
                true
            }
        }
        ["done", "within", span] => driver.run(span_of(span), Driver::is_at_rest),
        [pod, "shows", phase] => driver.run(LONGEST, |driver| {
            let found = driver.world.pods.iter().find(|other| other.name == *pod);
            found.is_some_and(|pod| {
                pod.annotations.get(annotation::PHASE).map(String::as_str) == Some(phase)
            })
        }),
        ["allocation", "is", setting] => driver.run(LONGEST, |driver| {
            driver.world.engine.effective_setting().unwrap_or("unset") == *setting
        }),
        [node, "is", "excluded"] => {
            driver.run(LONGEST, |driver| driver.world.engine.votes.excluded.contains(*node))
        }
        ["restart", "begins"] => {
            driver.run(LONGEST, |driver| driver.world.ledger().restart.is_some())
        }
        ["restart", "is", "over"] => {
            driver.run(LONGEST, |driver| driver.world.ledger().restart.is_none())
        }
        ["something", "is", "owed"] => {
            driver.run(LONGEST, |driver| !driver.world.ledger().debts.start.is_empty())
        }
        [pod, "drains"] => driver.run(LONGEST, |driver| {
            let found = driver.world.pods.iter().find(|other| other.name == *pod);
            found.is_some_and(|pod| pod.machine.is_draining())
        }),
        [node, "takes", "its", "slot"] => driver.run(LONGEST, |driver| {
            let ledger = driver.world.ledger();
            ledger.under_way().any(|member| member.node == *node)
        }),
        [node, "comes", "back"] => driver.run(LONGEST, |driver| {
            let ledger = driver.world.ledger();
            let mut aborting = ledger.members().filter(|one| one.step == MemberStep::Aborting);
            aborting.any(|member| member.node == *node)
        }),
        [pod, "is", state] => driver.run(LONGEST, |driver| {
            let found = driver.world.pods.iter().find(|other| other.name == *pod);
            found.is_some_and(|pod| pod.machine.life().state().as_str() == *state)
        }),
        other => panic!("nothing to wait for: {other:?}"),
    };
    if !came {
        driver.wrong.push(format!("waited in vain until {}", words.join(" ")));
        driver.page.script("… in vain");
    }
}
