//! Whether the reconciler's clock is that of the apiserver, and the managers' that of the reconciler.
//! Tokens and Leases have times in them.

use super::{Facts, Finding};
use crate::kubectl::doctor::facts::Taken;
use stayput_net::jwt::LEEWAY;
use stayput_restart::Time;

/// A difference that should not be, in milliseconds.
const LARGE: i64 = 5_000;
/// Managers accept tokens of clocks that are ten minutes wrong at most.
const TOO_LARGE: i64 = 5 * 60_000;

const REMEDY: &str = "kubectl get nodes -o wide; on the nodes: timedatectl status";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Ok(taken) = &facts.snapshot else { return Vec::new() };
    reconciler(facts, taken).into_iter().chain(managers(facts, taken)).collect()
}

/// Against the apiserver's.
fn reconciler(facts: &Facts, taken: &Taken) -> Option<Finding> {
    let object = "Deployment/stayput-reconciler";
    let (server, here) = match &facts.apiserver_time {
        Ok(times) => *times,
        Err(unknown) => {
            return Some(Finding::error("clock", object, &unknown.message, REMEDY).into_unknown());
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
        return None;
    }
    let message = format!("the reconciler's clock is {} the apiserver's", apart(difference));
    let finding = Finding::error("clock", object, message, REMEDY);
    Some(if difference.abs() < TOO_LARGE { finding.into_warning() } else { finding })
}

/// Against the reconciler's.
fn managers(facts: &Facts, taken: &Taken) -> Vec<Finding> {
    let sends_tokens = facts.cluster.spec.manager.auth.client_certificate_secret.is_none();
    let of_pod = |pod: &stayput_restart::Pod| {
        let difference = pod.manager.as_ref().ok()?.clock_ahead.saturating_mul(1000);
        if difference.abs() < LARGE {
            return None;
        }
        let object = format!("Pod/{}", pod.name);
        let message = format!("its manager's clock is {} the reconciler's", apart(difference));
        if sends_tokens && difference.unsigned_abs() >= LEEWAY * 1000 {
            let message = format!("{message}: it may refuse tokens, {LEEWAY} s are allowed");
            return Some(Finding::error("clock", object, message, REMEDY));
        }
        Some(Finding::error("clock", object, message, REMEDY).into_warning())
    };
    taken.saved.snapshot.pods.iter().filter_map(of_pod).collect()
}

/// In words; negative is behind.
fn apart(milliseconds: i64) -> String {
    let direction = if milliseconds > 0 { "ahead of" } else { "behind" };
    format!("{} s {direction}", milliseconds.unsigned_abs() / 1000)
}

fn ahead(there: Time, here: Time) -> i64 {
    let since = |one: Time, other: Time| i64::try_from(one.since(other)).unwrap_or(i64::MAX);
    if there >= here { since(there, here) } else { -since(here, there) }
}
