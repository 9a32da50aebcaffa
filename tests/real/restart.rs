//! The shipped `stayput-reconciler` with real parts: the real apiserver and etcd, three real nodes
//! under three real managers, and a kubelet that is part of this test. One test at a time, because
//! each has three engines.

mod aborts;
mod elasticsearch;
mod figures;
pub(crate) mod fixture;
pub(crate) mod kube;
pub(crate) mod kubelet;
mod load;
mod lost_apiserver;
mod opensearch;
pub(crate) mod reconciler;
mod rolling;
pub(crate) mod sampler;
mod tls;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::cluster::Flavor;
use crate::support::skip::skip;

/// Runs a test, unless something that it needs is missing here.
fn on(name: &str, flavor: Flavor, test: impl FnOnce(fixture::Fixture)) {
    let _turn = turn();
    match fixture::Fixture::start(flavor) {
        Ok(fixture) => test(fixture),
        Err(why) => skip(&format!("restart::{name}"), &why),
    }
}

pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // If a test fails, nothing is left of it: all processes end with it.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints the next step and the time, so that a failure can be read together with the steps before
/// it.
pub(crate) fn step(what: &str) {
    let now = humantime::format_rfc3339_millis(std::time::SystemTime::now());
    println!("-- {now} {what}");
}
