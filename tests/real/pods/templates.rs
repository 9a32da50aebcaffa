//! The edited template of an OnDelete StatefulSet, carried out by the reconciler on a real kubelet:
//! what stays of each pod, row by row. The engines are stand-ins; claims and volumes are real.

mod crashes;
mod pending;
mod reverted;
mod set;
mod sizes;
mod stage;
mod victim;

use std::time::Instant;

use serde_json::{Value, json};

use super::fixture::OTHER;
use super::stateful_set::{any_node, status};
use stage::Stage;

/// Nobody has it.
const ABSENT: &str = "stayput.test/engine:absent";

#[test]
fn an_edited_template_reaches_the_pods_that_exist() {
    let test = "pods::templates::an_edited_template_reaches_the_pods_that_exist";
    let Some(mut stage) = Stage::set_up(test) else { return };
    stage.labels();
    stage.image();
    stage.variable();
    stage.file();
    stage.absent_image();
    stage.affinity();
    assert_eq!(stage.outcomes(), "done done done rolledBack done");
}

impl Stage {
    /// Labels: nothing is restarted.
    fn labels(&mut self) {
        self.template["metadata"]["labels"]["team"] = json!("a");
        let (before, after) = self.row("labels");
        assert_eq!(after, before);
        let path = "jsonpath={.items[*].metadata.labels.team}";
        let teams = self.fixture.run(&["get", "pods", "--selector=app=logs", "--output", path]);
        assert_eq!(teams, "a a a");
    }

    /// Another name of the image: another container in the same pod.
    fn image(&mut self) {
        self.container()["image"] = json!(OTHER);
        let (before, after) = self.row("image");
        self.assert_other_containers_in_the_same_pods(&before, &after);
        assert!(after.iter().all(|pod| pod.image == OTHER), "{after:#?}");
    }

    /// A variable from a ConfigMap: another container in the same pod.
    fn variable(&mut self) {
        assert_eq!(self.attribute("tier"), ["hot"; 3]);
        self.changed_at_start("tier", "warm");
        assert_eq!(self.attribute("tier"), ["warm"; 3]);
    }

    /// A file that is mounted by `subPath`: another container in the same pod.
    fn file(&mut self) {
        let (old, new) = ("fast, quick", "fast, quick, rapid");
        assert_eq!(self.synonyms(), vec![self.fixture.checksum(&[("synonyms", old)]); 3]);
        self.changed_at_start("synonyms", new);
        assert_eq!(self.synonyms(), vec![self.fixture.checksum(&[("synonyms", new)]); 3]);
    }

    /// Changes what a container reads when it is started. At rest such objects are read once a
    /// minute; a person's restart does not wait for that.
    fn changed_at_start(&mut self, key: &str, value: &str) {
        set::change_read_at_start(&self.fixture, key, value);
        let began = Instant::now();
        self.fixture.people.run("kubectl stayput -n search restart logs --watch");
        println!("{key}, with a person's restart: {} ms", began.elapsed().as_millis());
        let (before, after) = self.until_updated();
        self.assert_other_containers_in_the_same_pods(&before, &after);
    }

    /// The checksum of the directory of the file, in each container.
    fn synonyms(&self) -> Vec<String> {
        let checksum = |name: &String| {
            let line = ["exec", name, "--", crate::pods::fixture::MANAGER, "checksum", "/words"];
            self.fixture.run(&line).split_whitespace().next().expect("a checksum").to_owned()
        };
        self.pods.iter().map(|pod| checksum(&pod.name)).collect()
    }

    /// An image that nobody has: the first node comes back on the image that it had, and the others
    /// are not stopped.
    fn absent_image(&mut self) {
        let good = self.template.clone();
        self.container()["image"] = json!(ABSENT);
        let began = Instant::now();
        self.edit();
        let entry = self.until_ended("rolledBack");
        println!("an absent image is given up: {} ms: {entry}", began.elapsed().as_millis());
        let reason = entry["reason"].as_str().expect("a reason");
        assert!(reason.contains("ErrImageNeverPull"), "{reason}");
        let (before, after) = self.until_serving();
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert_eq!(others.count(), 1, "one node was stopped: {after:#?}");
        for (was, is) in before.iter().zip(&after) {
            assert_eq!(is.same_pod(), was.same_pod());
            assert_eq!(is.image, OTHER);
        }
        assert_eq!(status(&self.fixture)["updatedReplicas"], Value::Null);

        self.template = good;
        let (_, again) = self.row("the template is set back");
        assert_eq!(again, after, "all have it, and nothing is restarted");
    }

    /// Affinity: other pods of the same names, on the same claims.
    fn affinity(&mut self) {
        self.template["spec"]["affinity"] = any_node();
        let (before, after) = self.row("affinity");
        for (was, is) in before.iter().zip(&after) {
            assert_ne!(is.uid, was.uid, "{}: {after:#?}", is.name);
            assert_eq!(is.claim, was.claim);
        }
    }
}
