//! What cannot be done: an image that nobody has, and a pod that no Kubernetes node takes.

use std::time::Instant;

use serde_json::{Value, json};

use super::Ladder;
use crate::pods::fixture::ENGINE;
use crate::pods::history::until_ended;
use crate::pods::seen::{Seen, seen};
use crate::pods::stateful_set::status;
use crate::support::wait::eventually;

const ABSENT: &str = "stayput.test/engine:absent";

impl Ladder {
    /// An image that nobody has: the first node comes back on the image that it had, and the others
    /// are not stopped. Then a person sets the template back.
    pub(super) fn absent_image(&mut self) {
        let good = self.template.clone();
        self.container()["image"] = json!(ABSENT);
        let began = Instant::now();
        self.edit();
        let entry = until_ended(self.fixture(), "rolledBack");
        println!("an absent image is given up: {} ms: {entry}", began.elapsed().as_millis());
        let reason = entry["reason"].as_str().expect("a reason");
        assert!(reason.contains("ErrImageNeverPull"), "{reason}");
        let (before, after) = self.until_serving();
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert_eq!(others.count(), 1, "one node was stopped: {after:#?}");
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.image.as_str()), (was.same_pod(), ENGINE));
        }
        assert_eq!(status(self.fixture())["updatedReplicas"], Value::Null);

        self.template = good;
        self.edit();
        self.fixture().until_pending(0);
        let (_, again) = self.until_updated();
        assert_eq!(again, after, "all have it, and nothing is restarted");
    }

    /// An affinity that no Kubernetes node meets: the first pod is made anew and waits, and the others
    /// are not stopped. Once a node meets it, all are other pods of the same names, on the same
    /// claims.
    pub(super) fn affinity(&mut self) {
        let large = self.heaps();
        let term = json!({ "key": "somewhere", "operator": "Exists" });
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [term] }] });
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": terms });
        self.template["spec"]["affinity"] = json!({ "nodeAffinity": required });
        let began = Instant::now();
        self.edit();
        let name = self.until_not_scheduled();
        // There are three phases until it is given up, since an autoscaler may add a node: no time is
        // left.
        self.configure_restart(&json!({ "phaseTimeout": "1s", "drain": "0s" }));
        let entry = until_ended(self.fixture(), "aborted");
        println!("an affinity is given up: {} ms: {entry}", began.elapsed().as_millis());
        let reason = entry["reason"].as_str().expect("a reason");
        let said = format!("{name}: no Kubernetes node takes the new pod: 0/1 nodes");
        assert!(reason.contains(&said) && reason.contains("node affinity/selector"), "{reason}");
        let others: Vec<Seen> = self.pods.iter().filter(|pod| pod.name != name).cloned().collect();
        assert_eq!(seen(self.fixture()), others, "the others are not stopped");

        // A Kubernetes node takes it, and a person asks again.
        self.configure_restart(&json!({ "phaseTimeout": null, "drain": null }));
        self.fixture().admin().run(&["label", "node", "node", "somewhere="]);
        let (first, joined) = self.until_serving();
        assert!(others.iter().all(|pod| joined.contains(pod)), "{joined:#?}");
        self.restart("affinity");
        let (_, after) = self.until_updated();
        for (was, is) in first.iter().zip(&after) {
            assert_ne!(is.uid, was.uid, "{}: {after:#?}", is.name);
            assert_eq!((&is.claim, &is.memory), (&was.claim, &was.memory), "{}", is.name);
        }
        let waited = joined.iter().find(|pod| pod.name == name).expect("it is there");
        assert!(after.contains(waited), "it was as the template wants it: {after:#?}");
        assert_eq!(self.heaps(), large);
    }

    fn configure_restart(&self, restart: &Value) {
        self.fixture().configure(&json!({ "restart": restart }));
    }

    /// Waits until the scheduler says that no Kubernetes node takes a pod, and the SearchCluster shows
    /// that pod; returns its name.
    fn until_not_scheduled(&self) -> String {
        let pods =
            "jsonpath={.items[?(@.status.conditions[0].reason==\"Unschedulable\")].metadata.name}";
        let list = ["get", "pods", "--selector=app=logs", "--output", pods];
        let name = eventually("a pod is not scheduled", || {
            Some(self.fixture().run(&list)).filter(|name| !name.is_empty())
        });
        let shown = "no Kubernetes node takes the new pod";
        eventually(shown, || {
            let logs = self.fixture().logs();
            logs["status"].to_string().contains(shown).then_some(())
        });
        name
    }
}
