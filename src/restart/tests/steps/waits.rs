//! Whoever waits is not changed in the same plan.

use proptest::prelude::*;

use super::changes_of;
use crate::changes::{Changes, Draft};
use crate::context::Context;
use crate::flow::each_step;
use crate::ledger::{LedgerChange, RestartChange};
use crate::tests::properties::{always_the_same, case, snapshots};
use crate::{Direction, Reason, Unknown};

/// What contradicts that a pod waits, in the changes of one call of a step.
fn contradictions(changes: &Changes) -> Vec<String> {
    let turns_back = changes.ledger.contains(&RestartChange::SetDirection(Direction::Back).into());
    if turns_back {
        return Vec::new();
    }
    let mut found = Vec::new();
    for wait in changes.waits.iter().filter(|wait| wait.code.blocks()) {
        let Some(uid) = wait.pod.as_deref() else { continue };
        let is_changed = changes.ledger.iter().any(|change| match change {
            LedgerChange::Restart(RestartChange::SetMember { member, .. }) => member.pod_uid == uid,
            LedgerChange::AddKeptStopped(kept) => kept.pod_uid == uid,
            _ => false,
        });
        let is_asked = changes.actions.iter().any(|action| action.pod() == Some(uid));
        let is_patched = changes.patches.iter().any(|(patched, _)| patched == uid);
        let reports = [Reason::RestartSkipped, Reason::InputIgnored, Reason::ForeignController];
        let is_reported = changes
            .events
            .iter()
            .any(|event| event.pod.as_deref() == Some(uid) && !reports.contains(&event.reason));
        if is_changed || is_asked || is_patched || is_reported {
            found.push(format!("{wait:?} in {changes:#?}"));
        }
    }
    found
}

proptest! {
    #![proptest_config(always_the_same(6))]

    #[test]
    fn whoever_waits_is_not_changed(case in case(), hidden in 0_usize..32) {
        let (driver, seen) = snapshots(&case);
        for mut snapshot in seen {
            for (at, pod) in snapshot.pods.iter_mut().enumerate() {
                if hidden & (1 << at) != 0 {
                    pod.manager = Err(Unknown { message: "not this time".into() });
                }
            }
            let context = Context::new(&snapshot, &driver.policy);
            let mut found = Vec::new();
            each_step(&mut Draft::new(&context), |draft, step| {
                let all = changes_of(draft, step);
                found.extend(all.iter().flat_map(contradictions));
            });
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}
