//! Whether the reconciler's clock is that of the apiserver. Tokens and Leases have times in them.

use super::{Facts, Finding};
use stayput_restart::Time;

/// A difference that should not be, in milliseconds.
const LARGE: i64 = 5_000;
/// Managers accept tokens of clocks that are ten minutes wrong at most.
const TOO_LARGE: i64 = 5 * 60_000;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Ok(taken) = &facts.snapshot else { return Vec::new() };
    let remedy = "kubectl get nodes -o wide; on the nodes: timedatectl status";
    let object = "Deployment/stayput-reconciler";
    let (server, here) = match &facts.apiserver_time {
        Ok(times) => *times,
        Err(unknown) => {
            return vec![Finding::error("clock", object, &unknown.message, remedy).into_unknown()];
        }
    };
    // By this machine's clock, which may be wrong itself.
    let server_is_ahead = ahead(server, here);
    let [least, most] =
        [taken.answered, taken.asked].map(|here| ahead(taken.saved.snapshot.now, here));
    let difference = if server_is_ahead < least {
        least - server_is_ahead
    } else {
        most.min(server_is_ahead) - server_is_ahead
    };
    // The apiserver's time has no fractions of a second.
    if difference.abs() < LARGE {
        return Vec::new();
    }
    let direction = if difference > 0 { "ahead of" } else { "behind" };
    let seconds = difference.unsigned_abs() / 1000;
    let message = format!("the reconciler's clock is {seconds} s {direction} the apiserver's");
    let finding = Finding::error("clock", object, message, remedy);
    vec![if difference.abs() < TOO_LARGE { finding.into_warning() } else { finding }]
}

fn ahead(there: Time, here: Time) -> i64 {
    let since = |one: Time, other: Time| i64::try_from(one.since(other)).unwrap_or(i64::MAX);
    if there >= here { since(there, here) } else { -since(here, there) }
}
