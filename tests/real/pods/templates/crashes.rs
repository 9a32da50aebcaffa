//! Programs that are killed in the middle of a step: the engine, its manager, the reconciler.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};
use stayput_reconciler::cluster::SearchClusterStatus;
use stayput_restart::Step;

use super::set;
use super::stage::Stage;
use super::victim::Victim;
use crate::pods::fixture::{ENGINE, OTHER};
use crate::pods::history::{history, outcomes, waits};
use crate::pods::seen::Seen;
use crate::support::wait::{eventually, eventually_or};

/// Where the reconciler shows how far a node is.
const PHASE: &str = "elasticsearch.k8s.elastic.co/restart-phase";
/// Each of the two programs, before and after the pod is changed.
const MOMENTS: [(Victim, &str); 4] = [
    (Victim::Manager, "stop"),
    (Victim::Engine, "stop"),
    (Victim::Manager, "start"),
    (Victim::Engine, "start"),
];

#[test]
fn a_program_that_is_killed_while_a_container_is_made_anew_leaves_no_node_behind() {
    let test = "pods::templates::crashes::a_program_that_is_killed_while_a_container_is_made_anew_leaves_no_node_behind";
    let Some(mut stage) = Stage::set_up(test) else { return };
    for ((victim, phase), image) in MOMENTS.into_iter().zip([OTHER, ENGINE, OTHER, ENGINE]) {
        stage.container()["image"] = json!(image);
        let (before, after) = stage.with_a_kill(victim, phase, "image", Stage::edit);
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.image.as_str()), (was.same_pod(), image));
        }
    }
}

#[test]
fn a_program_that_is_killed_while_a_node_is_restarted_leaves_no_node_behind() {
    let test = "pods::templates::crashes::a_program_that_is_killed_while_a_node_is_restarted_leaves_no_node_behind";
    let Some(mut stage) = Stage::set_up(test) else { return };
    for ((victim, phase), round) in MOMENTS.into_iter().zip(["1", "2", "3", "4"]) {
        let (before, after) = stage.with_a_kill(victim, phase, "restart", |stage| {
            set::configure(&stage.fixture, round);
            stage.fixture.people.run("kubectl stayput -n search restart logs");
        });
        for (was, is) in before.iter().zip(&after) {
            assert_eq!(is.same_pod(), was.same_pod());
        }
        // A container ends with its manager, and with an engine that was not to end.
        let others = before.iter().zip(&after).filter(|(was, is)| was.container != is.container);
        assert!(others.count() <= 1, "only of the node whose program was killed: {after:#?}");
        assert_eq!(stage.attribute("round"), [round; 3]);
    }
}

#[test]
fn a_program_that_is_killed_while_a_pod_is_resized_or_replaced_leaves_no_node_behind() {
    let test = "pods::templates::crashes::a_program_that_is_killed_while_a_pod_is_resized_or_replaced_leaves_no_node_behind";
    let Some(mut stage) = Stage::set_up(test) else { return };
    // After a kill in its start the old, lower size is put back.
    for ((victim, phase), size) in [MOMENTS[0], MOMENTS[2]].into_iter().zip(["96Mi", "128Mi"]) {
        stage.want_memory(size);
        let (before, after) = stage.with_a_kill(victim, phase, "size", Stage::edit);
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.memory.as_str()), (was.same_pod(), size));
        }
    }
    let (victim, phase) = MOMENTS[0];
    // Another pod starts its engine by itself, and shows no start.
    stage.template["spec"]["terminationGracePeriodSeconds"] = json!(6);
    let (before, after) = stage.with_a_kill(victim, phase, "replaced", Stage::edit);
    for (was, is) in before.iter().zip(&after) {
        assert_ne!(is.uid, was.uid, "{}", is.name);
        assert_eq!(is.claim, was.claim, "{}", is.name);
    }
}

#[test]
fn a_reconciler_that_is_killed_after_a_write_is_followed_by_the_other() {
    let test = "pods::templates::crashes::a_reconciler_that_is_killed_after_a_write_is_followed_by_the_other";
    let Some(mut stage) = Stage::set_up(test) else { return };
    stage.container()["image"] = json!(OTHER);
    let first = stage.shown()[0]["revision"].clone();
    let began = Instant::now();
    stage.edit();
    // The slot is in the ledger, an image is patched, labels are patched: each of a node of which that
    // was not so when the reconciler before was killed.
    let has_turn = |pod: &Value| pod["phase"] == "stop";
    let is_patched = |pod: &Value| pod["image"] == OTHER;
    let is_labelled = |pod: &Value| pod["revision"] != first;
    stage.kill_reconciler_once("a node has its turn", 0, has_turn);
    stage.kill_reconciler_once("an image is patched", stage.count(is_patched), is_patched);
    stage.kill_reconciler_once("a pod has its labels", stage.count(is_labelled), is_labelled);
    let (before, after) = stage.until_updated();
    println!("an image, with three reconcilers killed: {} ms", began.elapsed().as_millis());
    stage.assert_other_containers_in_the_same_pods(&before, &after);
    assert_eq!(outcomes(&stage.fixture), "done");
}

impl Stage {
    /// Begins a restart, and kills a program of the first node that shows this phase. If the restart
    /// is given up for that, a person asks again.
    fn with_a_kill(
        &mut self,
        victim: Victim,
        phase: &str,
        what: &str,
        begin: impl FnOnce(&Self),
    ) -> (Vec<Seen>, Vec<Seen>) {
        let (known, began) = (history(&self.fixture).len(), Instant::now());
        begin(self);
        let killed = eventually(&format!("{phase} of a node"), || {
            let node = self.shown().into_iter().find(|pod| pod["phase"] == phase)?;
            victim.kill(node["container"].as_str()?).then(|| node["name"].clone())
        });
        let next = || {
            let history = history(&self.fixture);
            (history.len() > known).then(|| history.last().cloned())?
        };
        let entry = eventually_or("the restart is over", next, || waits(&self.fixture));
        println!(
            "{what}: {victim:?} of {killed} killed in its {phase}: {} ms, {entry}",
            began.elapsed().as_millis()
        );
        if entry["outcome"] != "done" {
            self.until_serving();
            self.fixture.people.run("kubectl stayput -n search restart logs --watch");
        }
        self.until_updated()
    }

    /// Names of the nodes that hold a slot.
    fn under_way(&self) -> BTreeSet<String> {
        let status = self.fixture.json(&["get", "searchcluster", "logs"])["status"].take();
        let status: SearchClusterStatus = serde_json::from_value(status).expect("a status");
        let members = status.ledger.restart.into_iter().flat_map(|restart| restart.members);
        members.filter(|one| one.step == Step::Restarting).map(|one| one.node).collect()
    }

    /// What each pod shows of its step. A short stop is not shown on the pod: there it is that of a node
    /// that holds a slot and is not started yet.
    fn shown(&self) -> Vec<Value> {
        let under_way = self.under_way();
        let list = self.fixture.json(&["get", "pods", "--selector", "app=logs"]);
        let pods = list["items"].as_array().expect("a list").iter().map(|pod| {
            let name = pod["metadata"]["name"].as_str().expect("a name");
            let shown = pod["metadata"]["annotations"][PHASE].as_str();
            let is_stopped = under_way.contains(name) && shown != Some("start");
            json!({
                "name": name,
                "phase": if is_stopped { Some("stop") } else { shown },
                "revision": pod["metadata"]["labels"]["controller-revision-hash"],
                "image": pod["spec"]["containers"][0]["image"],
                "container": pod["status"]["containerStatuses"][0]["containerID"],
            })
        });
        pods.collect()
    }

    /// How many pods show this.
    fn count(&self, is_written: impl Fn(&Value) -> bool) -> usize {
        self.shown().iter().filter(|pod| is_written(pod)).count()
    }

    /// Kills the active reconciler once more pods than `known` show what was written.
    fn kill_reconciler_once(&self, what: &str, known: usize, is_written: impl Fn(&Value) -> bool) {
        eventually(what, || (self.count(&is_written) > known).then_some(()));
        println!("{} was killed once {what}", self.fixture.kill_reconciler());
    }
}
