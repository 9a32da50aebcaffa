//! A pod as the apiserver has it: what a step keeps, and what it replaces.

use serde_json::Value;

use super::fixture::Fixture;
use super::nodes::ask;
use crate::support::wait::eventually;

/// One pod at one time.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) address: String,
    /// The uid of its claim's volume.
    pub(super) claim: String,
    pub(super) container: String,
    /// As its spec has it: a runtime may report any name of an image.
    pub(super) image: String,
    /// The limit that the kubelet has put into effect.
    pub(super) memory: String,
    pub(super) ready: bool,
}

/// Equal pods are the same ones, with nothing replaced. A slow probe makes any pod not ready for a moment.
impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        let all = |seen: &Self| {
            let Self { name, uid, address, claim, container, image, memory, ready: _ } =
                seen.clone();
            [name, uid, address, claim, container, image, memory]
        };
        all(self) == all(other)
    }
}

impl Seen {
    /// What must be the same in the same pod.
    pub(super) fn same_pod(&self) -> [&str; 4] {
        [&self.name, &self.uid, &self.address, &self.claim]
    }

    pub(super) fn ask(&self, target: &str) -> Option<Value> {
        ask(&self.address, target)
    }
}

/// Checks that nothing but the containers was made anew.
#[track_caller]
pub(super) fn assert_other_containers_in_the_same_pods(before: &[Seen], after: &[Seen]) {
    assert_eq!(after.len(), before.len(), "{after:#?}");
    for (was, is) in before.iter().zip(after) {
        assert_eq!(is.same_pod(), was.same_pod());
        assert_ne!(is.container, was.container, "{}", is.name);
    }
}

/// All pods that have an address and a container.
pub(super) fn seen(fixture: &Fixture) -> Vec<Seen> {
    let pods = fixture.pods();
    let seen = pods.iter().filter_map(|pod| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let status = &pod["status"]["containerStatuses"][0];
        let volumes = pod["spec"]["volumes"].as_array()?;
        let claim = volumes.iter().find_map(|one| text(&one["persistentVolumeClaim"]["claimName"]));
        let claim = fixture.read(&format!("persistentvolumeclaims/{}", claim?));
        Some(Seen {
            name: text(&pod["metadata"]["name"])?,
            uid: text(&pod["metadata"]["uid"])?,
            address: text(&pod["status"]["podIP"])?,
            claim: text(&claim["metadata"]["uid"])?,
            container: text(&status["containerID"])?,
            image: text(&pod["spec"]["containers"][0]["image"])?,
            memory: text(&status["resources"]["limits"]["memory"])?,
            ready: status["ready"] == true,
        })
    });
    seen.collect()
}

/// The attribute of each node of the cluster.
pub(super) fn attributes(fixture: &Fixture, name: &str) -> Vec<String> {
    let answer = eventually("an engine answers", || {
        let pods = fixture.pods();
        let mut addresses = pods.iter().filter_map(|pod| pod["status"]["podIP"].as_str());
        addresses.find_map(|address| ask(address, "/_nodes"))
    });
    let nodes = answer["nodes"].as_object().expect("nodes").values();
    nodes.map(|node| node["attributes"][name].as_str().unwrap_or("none").to_owned()).collect()
}
