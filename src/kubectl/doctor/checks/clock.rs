//! Checks that this machine's clock and the reconciler's agree with the apiserver's, and the managers'
//! with the reconciler's. Tokens and Leases have times in them.

use stayput_http::jwt::LEEWAY;
use stayput_restart::Time;

use crate::doctor::facts::{ApiserverTime, Facts, Taken};
use crate::doctor::finding::Finding;

/// A difference that is worth a finding, in milliseconds.
const LARGE: i64 = 5_000;
/// A difference that makes the finding an error, in milliseconds. Managers accept tokens of clocks that
/// are ten minutes wrong at most.
const TOO_LARGE: i64 = 5 * 60_000;

const RECONCILER: &str = "Deployment/stayput-reconciler";
const REMEDY: &str = "kubectl get nodes -o wide; on the nodes: timedatectl status";

/// How far a clock is ahead of this machine's, at least and at most, in milliseconds.
type Ahead = [i64; 2];

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let taken = facts.snapshot.as_ref().ok();
    let mut found: Vec<Finding> = match &facts.apiserver_time {
        Err(unknown) => {
            vec![Finding::error("clock", RECONCILER, &unknown.message, REMEDY).into_unknown()]
        }
        Ok(time) => {
            let reconciler = taken.and_then(|taken| reconciler(time, taken));
            machine(time).into_iter().chain(reconciler).collect()
        }
    };
    found.extend(taken.into_iter().flat_map(|taken| managers(facts, taken)));
    found
}

/// Compares this machine's clock with the apiserver's.
fn machine(time: &ApiserverTime) -> Option<Finding> {
    let difference = apart([0, 0], of_apiserver(time));
    let message = format!(
        "this machine's clock is {} the apiserver's: times and ages are shown wrong by as much",
        in_words(difference)
    );
    let finding = || Finding::error("clock", "this machine", message, "timedatectl status");
    (difference.abs() >= LARGE).then(|| finding().into_warning())
}

/// Compares the reconciler's clock with the apiserver's.
fn reconciler(time: &ApiserverTime, taken: &Taken) -> Option<Finding> {
    let reconciler = ahead_of_us(taken.saved.snapshot.now, taken.asked, taken.answered);
    let difference = apart(reconciler, of_apiserver(time));
    // The apiserver's time has no fractions of a second.
    if difference.abs() < LARGE {
        return None;
    }
    let message = format!("the reconciler's clock is {} the apiserver's", in_words(difference));
    let finding = Finding::error("clock", RECONCILER, message, REMEDY);
    Some(if difference.abs() < TOO_LARGE { finding.into_warning() } else { finding })
}

/// Compares the managers' clocks with the reconciler's.
fn managers(facts: &Facts, taken: &Taken) -> Vec<Finding> {
    let sends_tokens = facts.cluster.spec.manager.auth.client_certificate_secret.is_none();
    let of_pod = |pod: &stayput_restart::Pod| {
        let difference = pod.manager.as_ref().ok()?.clock_ahead.saturating_mul(1000);
        if difference.abs() < LARGE {
            return None;
        }
        let object = format!("Pod/{}", pod.name);
        let message = format!("its manager's clock is {} the reconciler's", in_words(difference));
        if sends_tokens && difference.unsigned_abs() >= LEEWAY * 1000 {
            let message = format!("{message}: it may refuse tokens, {LEEWAY} s are allowed");
            return Some(Finding::error("clock", object, message, REMEDY));
        }
        Some(Finding::error("clock", object, message, REMEDY).into_warning())
    };
    taken.saved.snapshot.pods.iter().filter_map(of_pod).collect()
}

/// A difference in words; a negative one is behind.
fn in_words(milliseconds: i64) -> String {
    let direction = if milliseconds > 0 { "ahead of" } else { "behind" };
    format!("{} s {direction}", milliseconds.unsigned_abs() / 1000)
}

fn of_apiserver(time: &ApiserverTime) -> Ahead {
    ahead_of_us(time.server, time.asked, time.answered)
}

/// The range for a clock that was read at some time between these two times of this machine.
fn ahead_of_us(there: Time, asked: Time, answered: Time) -> Ahead {
    [answered, asked].map(|here| {
        let since = |one: Time, other: Time| i64::try_from(one.since(other)).unwrap_or(i64::MAX);
        if there >= here { since(there, here) } else { -since(here, there) }
    })
}

/// How far the first clock is ahead of the other one for certain.
fn apart([least, most]: Ahead, other: Ahead) -> i64 {
    if least > other[1] { least - other[1] } else { (most - other[0]).min(0) }
}
