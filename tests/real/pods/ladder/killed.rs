//! Programs that are killed in the middle of a step: the engine, its manager, the reconciler.

use std::time::Instant;

use serde_json::json;

use super::Ladder;
use crate::pods::clients::Clients;
use crate::pods::door::Door;
use crate::pods::fixture::OTHER;
use crate::pods::history::{history, until_another_ended};
use crate::pods::seen::{Seen, seen};
use crate::pods::victim::Victim;
use crate::support::wait::eventually;

#[test]
#[ignore = "five minutes; cargo test --test real -- --ignored ladder::killed"]
fn documents_are_written_while_programs_are_killed_and_none_is_lost() {
    const TEST: &str =
        "pods::ladder::killed::documents_are_written_while_programs_are_killed_and_none_is_lost";
    let Some(mut ladder) = Ladder::set_up(TEST) else { return };
    let clients = Clients::start(ladder.fixture(), Door::plain());
    for row in [Ladder::engine_killed, Ladder::manager_killed, Ladder::reconciler_killed] {
        let before = clients.written();
        row(&mut ladder);
        assert!(clients.written() > before, "nothing was written meanwhile");
    }
    ladder.assert_none_lost(clients);
}

impl Ladder {
    /// An engine that is killed while it is stopped for another image.
    fn engine_killed(&mut self) {
        self.container()["image"] = json!(OTHER);
        let (before, after) = self.row_with_a_kill("image", |ladder| {
            Victim::Engine.kill_in_phase(ladder.fixture(), "stop", None)
        });
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.image.as_str()), (was.same_pod(), OTHER));
        }
    }

    /// A manager that is killed while its engine starts with another size.
    fn manager_killed(&mut self) {
        for kind in ["requests", "limits"] {
            self.container()["resources"][kind]["memory"] = json!("950Mi");
        }
        let (before, after) = self.row_with_a_kill("size", |ladder| {
            Victim::Manager.kill_in_phase(ladder.fixture(), "start", None)
        });
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((is.same_pod(), is.memory.as_str()), (was.same_pod(), "950Mi"));
        }
    }

    /// The active reconciler, killed once a pod was replaced.
    fn reconciler_killed(&mut self) {
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
        // Real engines take longer than what is waited for otherwise.
        let idle = "--for=jsonpath={.status.phase}=Idle";
        self.fixture().run(&["wait", "searchcluster/logs", idle, "--timeout=600s"]);
        let entry = until_another_ended(self.fixture(), known);
        println!("{what}: killed in {killed}: {} ms, {entry}", began.elapsed().as_millis());
        if entry["outcome"] != "done" {
            let _ = self.until_serving();
            self.restart(what);
        }
        self.until_updated()
    }
}
