//! A template that needs other pods while their Kubernetes node takes none: nobody is stopped.

use serde_json::json;

use super::stage::Stage;
use crate::pods::history::waits;
use crate::pods::seen::seen;
use crate::support::wait::eventually_or;

const CORDONED: &str = "the node is cordoned: `kubectl uncordon node`";
const TOO_LARGE: &str = "it requests 1048576 MiB memory of which";

impl Stage {
    /// Other pods, of a size that the node on which the volumes are does not have.
    pub(super) fn edit_to_what_is_too_large(&mut self) {
        let memory = self.pods[0].memory.clone();
        self.want_memory("1Ti");
        self.edit();
        self.until_would_not_fit(|says| says.contains(TOO_LARGE) && !says.contains(CORDONED));
        self.want_memory(&memory);
    }

    /// Edits the set while that node is cordoned. Then it takes pods again.
    pub(super) fn edit_while_cordoned(&self) {
        self.fixture.people.run("kubectl cordon node");
        self.edit();
        self.until_would_not_fit(|says| says.contains(CORDONED) && !says.contains(TOO_LARGE));
        self.fixture.people.run("kubectl uncordon node");
    }

    /// Waits until the SearchCluster says why the pods would not fit; they are as they were.
    pub(super) fn until_would_not_fit(&self, is_why: impl Fn(&str) -> bool) {
        let status = || self.fixture.logs()["status"].take();
        let is_said = || {
            let status = status();
            let says = status["message"].as_str().unwrap_or_default();
            (status["blocked"] == "would_not_fit" && is_why(says)).then(|| says.to_owned())
        };
        let says = eventually_or("it would not fit", is_said, || waits(&self.fixture));
        println!("{says}");
        assert_eq!(status()["counts"]["restarting"], json!(0));
        assert_eq!(seen(&self.fixture), self.pods, "the same pods");
    }
}
