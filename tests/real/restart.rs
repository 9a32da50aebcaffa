//! The shipped `stayput-reconciler` with real parts: the real apiserver and etcd, three real nodes
//! under three real managers, and a kubelet that is part of this test. Each has three engines.

mod aborts;
mod elasticsearch;
mod figures;
pub(crate) mod fixture;
pub(crate) mod kubelet;
mod load;
mod lost_apiserver;
mod newest;
mod opensearch;
pub(crate) mod reconciler;
mod rolling;
pub(crate) mod sampler;
mod tls;

use crate::support::cluster::Flavor;
use crate::support::skip;

/// Runs a test, unless something that it needs is missing here.
fn on(name: &str, flavor: Flavor, test: impl FnOnce(fixture::Fixture)) {
    match fixture::Fixture::start(flavor) {
        Ok(fixture) => test(fixture),
        Err(why) => skip(&format!("restart::{name}"), &why),
    }
}

/// Prints the next step and the time, so that a failure can be read together with the steps before
/// it.
pub(crate) fn step(what: &str) {
    let now = humantime::format_rfc3339_millis(std::time::SystemTime::now());
    println!("-- {now} {what}");
}
