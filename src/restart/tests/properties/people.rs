//! What people do where only people can.

use stayput_api::State;

use super::super::driver::Driver;
use super::super::scenario::play_line;
use super::FAULT_TIME;
use crate::Code;

/// A manager refuses a start while it still stops the engine: people wait for that.
pub(super) fn until_ended(driver: &mut Driver, name: &str) {
    let is_ending = |driver: &Driver| {
        let pod = driver.world.pods.iter().find(|pod| pod.name == name);
        let state = pod.map(|pod| pod.machine.life().state());
        matches!(state, Some(State::Stopping | State::Killing))
    };
    driver.run(FAULT_TIME, |driver| !is_ending(driver));
}

/// Names of the pods whose engine a person has stopped.
pub(super) fn stopped_by_hand(driver: &Driver) -> Vec<String> {
    let stopped = driver.world.pods.iter().filter(|pod| {
        let life = pod.machine.life();
        let by_hand = life.last_request().as_ref().is_some_and(|last| last.by == "person");
        by_hand && life.desired() == stayput_api::Desired::Stopped
    });
    stopped.map(|pod| pod.name.clone()).collect()
}

/// Nobody can request another restart of a SearchCluster that is being deleted: people stop and start
/// each node that is stranded, and start those that are down.
pub(super) fn restart_by_hand(driver: &mut Driver) {
    let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
    let plan = driver.make(&snapshot);
    let stranded = plan.waiting.iter().filter(|wait| wait.code == Code::Stranded);
    let stranded: Vec<String> = stranded.filter_map(|wait| wait.node.clone()).collect();
    let failed = driver.world.pods.iter().filter(|pod| {
        !pod.gone && pod.machine.life().state() == State::Failed && !stranded.contains(&pod.name)
    });
    let mut down: Vec<String> = failed.map(|pod| pod.name.clone()).collect();
    down.extend(stopped_by_hand(driver));
    for name in &stranded {
        play_line(driver, &format!("person stops {name}"));
    }
    for name in stranded.iter().chain(&down) {
        until_ended(driver, name);
        play_line(driver, &format!("person starts {name}"));
    }
}
