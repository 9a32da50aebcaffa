//! Programs that are killed in the middle of a step: the engine, its manager, the reconciler.

use std::time::Instant;

use serde_json::json;

use super::Ladder;
use crate::pods::fixture::OTHER;
use crate::pods::history::{history, until_another_ended};
use crate::pods::seen::{Seen, seen};
use crate::pods::victim::Victim;
use crate::support::wait::eventually;

impl Ladder {
    /// An engine in the stop for another image, a manager in the start with another size, and the active
    /// reconciler once a pod was replaced.
    pub(super) fn programs_killed(&mut self) {
        self.container()["image"] = json!(OTHER);
        let (before, after) = self.row_with_a_kill("image", |ladder| {
            Victim::Engine.kill_in_phase(ladder.fixture(), "stop", None)
        });
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.image.as_str()), (was.same_pod(), OTHER));
        }

        for kind in ["requests", "limits"] {
            self.container()["resources"][kind]["memory"] = json!("950Mi");
        }
        let (before, after) = self.row_with_a_kill("size", |ladder| {
            Victim::Manager.kill_in_phase(ladder.fixture(), "start", None)
        });
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.memory.as_str()), (was.same_pod(), "950Mi"));
        }

        self.template["spec"]["terminationGracePeriodSeconds"] = json!(61);
        let (before, after) = self.row_with_a_kill("replaced", |ladder| {
            let is_another = |pod: &Seen| ladder.pods.iter().all(|before| before.uid != pod.uid);
            eventually("a pod is replaced", || {
                seen(ladder.fixture()).iter().any(is_another).then_some(())
            });
            ladder.fixture().kill_reconciler()
        });
        for (was, is) in before.iter().zip(&after) {
            assert_ne!(is.uid, was.uid, "{}", is.name);
            assert_eq!(is.claim, was.claim, "{}", is.name);
        }
    }

    /// Edits the set, and kills a program. If the update is given up for that, a person asks again.
    fn row_with_a_kill(
        &mut self,
        what: &str,
        kill: impl FnOnce(&Self) -> String,
    ) -> (Vec<Seen>, Vec<Seen>) {
        let (known, began) = (history(self.fixture()).len(), Instant::now());
        self.edit();
        let killed = kill(self);
        let entry = until_another_ended(self.fixture(), known);
        println!("{what}: killed in {killed}: {} ms, {entry}", began.elapsed().as_millis());
        if entry["outcome"] != "done" {
            let _ = self.until_serving();
            self.restart(what);
        }
        self.until_updated()
    }
}
