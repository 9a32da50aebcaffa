//! Programs that are killed in the middle of a step: the engine, its manager, the reconciler.

use std::time::Instant;

use serde_json::{Value, json};

use super::set;
use super::stage::Stage;
use crate::pods::fixture::{ENGINE, OTHER};
use crate::pods::history::{history, outcomes, until_another_ended};
use crate::pods::phases::shown;
use crate::pods::seen::Seen;
use crate::pods::victim::Victim;
use crate::support::wait::eventually_briefly;

/// Each of the two programs, before and after the pod is changed.
const MOMENTS: [(Victim, &str); 4] = [
    (Victim::Manager, "stop"),
    (Victim::Engine, "stop"),
    (Victim::Manager, "start"),
    (Victim::Engine, "start"),
];

#[test] // proves UPDATE-26
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

#[test] // proves UPDATE-26
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

#[test] // proves UPDATE-9, UPDATE-26
fn a_program_that_is_killed_while_a_pod_is_resized_or_replaced_leaves_no_node_behind() {
    let test = "pods::templates::crashes::a_program_that_is_killed_while_a_pod_is_resized_or_replaced_leaves_no_node_behind";
    let Some(mut stage) = Stage::set_up(test) else { return };
    // After a kill in its start the old, lower size is put back.
    for ((victim, phase), size) in MOMENTS.into_iter().zip(["80Mi", "96Mi", "112Mi", "128Mi"]) {
        stage.want_memory(size);
        let (before, after) = stage.with_a_kill(victim, phase, "size", Stage::edit);
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.memory.as_str()), (was.same_pod(), size));
        }
    }
    let (victim, phase) = MOMENTS[0];
    // Another pod starts its engine by itself, and shows no start.
    stage.template["spec"]["terminationGracePeriodSeconds"] = json!(6);
    stage.edit_to_what_is_too_large();
    let (before, after) = stage.with_a_kill(victim, phase, "replaced", Stage::edit_while_cordoned);
    for (was, is) in before.iter().zip(&after) {
        assert_ne!(is.uid, was.uid, "{}", is.name);
        assert_eq!(is.claim, was.claim, "{}", is.name);
    }
}

#[test] // proves RESTART-20
fn a_reconciler_that_is_killed_after_a_write_is_followed_by_the_other() {
    let test = "pods::templates::crashes::a_reconciler_that_is_killed_after_a_write_is_followed_by_the_other";
    let Some(mut stage) = Stage::set_up(test) else { return };
    stage.container()["image"] = json!(OTHER);
    let first = shown(&stage.fixture)[0]["revision"].clone();
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
        let killed = victim.kill_in_phase(&self.fixture, phase, None);
        let entry = until_another_ended(&self.fixture, known);
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

    /// How many pods show this.
    fn count(&self, is_written: impl Fn(&Value) -> bool) -> usize {
        shown(&self.fixture).iter().filter(|pod| is_written(pod)).count()
    }

    /// Kills the active reconciler once more pods than `known` show what was written.
    fn kill_reconciler_once(&self, what: &str, known: usize, is_written: impl Fn(&Value) -> bool) {
        eventually_briefly(what, || (self.count(&is_written) > known).then_some(()));
        println!("{} was killed once {what}", self.fixture.kill_reconciler());
    }
}
