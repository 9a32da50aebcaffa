//! A setting, brought to three nodes by ECK alone and in place: seconds, pods kept, a client's requests, and
//! everybody's writes to the apiserver. `bench/eck` runs this and compares them.
//!
//! One line of JSON for each way and round.

use std::time::Instant;

use serde_json::{Value, json};

use super::edits::Engine;
use super::stage::Stage;
use crate::pods::clients::{Clients, Requests};
use crate::pods::seen::seen;
use crate::support::wait::eventually;

/// How many rounds, unless `STAYPUT_ROUNDS` is set.
const ROUNDS: u32 = 2;
const SETTING: &str = "indices.memory.index_buffer_size";

#[test]
#[ignore = "a measurement: bench/eck"]
fn a_setting_by_eck_and_in_place() {
    const TEST: &str = "pods::eck::figures::a_setting_by_eck_and_in_place";
    let Some(mut stage) = Stage::set_up(TEST) else { return };
    stage.create_load();
    let rounds = std::env::var("STAYPUT_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    for round in 0..rounds {
        let mut ways = [Way::InPlace, Way::Eck];
        // Each way is the first one in some round.
        ways.rotate_left(usize::try_from(round % 2).expect("a small number"));
        for way in ways {
            println!("{}", stage.measure(way, &format!("{}%", 11 + 2 * round + way as u32)));
        }
    }
}

/// Who brings a changed setting to the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    InPlace,
    /// By its default: one pod at a time.
    Eck,
}

impl Stage {
    fn measure(&mut self, way: Way, value: &str) -> Value {
        match way {
            Way::InPlace => self.carry_out(),
            Way::Eck => {
                self.fixture.configure(&json!({ "update": { "mode": "off" } }));
                self.set_budget(&Value::Null);
            }
        }
        self.until_content();
        let before: Vec<Engine> = self.engines_now().into_values().collect();
        let mark = self.fixture.cluster.audit.now();
        let clients = Clients::start(&self.fixture, self.door());
        let began = Instant::now();
        self.set(SETTING, value);
        match way {
            Way::InPlace => self.until_all_restarted(&before),
            Way::Eck => self.until_all_replaced(&before),
        }
        self.until_content();
        let ms = began.elapsed().as_millis();
        let count = clients.end();
        let after = self.engines_now();
        let kept = before.iter().filter(|was| after[&was.pod.name].pod.uid == was.pod.uid);
        let kept = kept.count();
        assert_eq!(kept, if way == Way::InPlace { before.len() } else { 0 });
        let writes = self.fixture.cluster.audit.writes_since(mark);
        let by: serde_json::Map<String, Value> = writes
            .iter()
            .map(|(program, counts)| (program.clone(), json!(counts.writes())))
            .collect();
        let each: Vec<String> =
            writes.iter().map(|(program, counts)| format!("{program}: {counts}")).collect();
        let requests = |of: Requests| {
            let refused = of.unanswered();
            json!({ "sent": of.sent, "refused": refused, "failed": of.failed })
        };
        json!({
            "way": if way == Way::InPlace { "in place" } else { "by ECK" },
            "ms": ms,
            "kept": kept,
            "clients": {
                "writes": requests(count.writes),
                "searches": requests(count.searches),
                "failing_ms": count.failing.as_millis(),
                "incomplete_ms": count.incomplete.as_millis(),
            },
            "writes": by,
            "each": each,
        })
    }

    /// Waits until each pod is another one than before.
    pub(super) fn until_all_replaced(&mut self, before: &[Engine]) {
        eventually("all pods were replaced", || {
            let pods = seen(&self.fixture);
            let is_another = |was: &Engine| {
                pods.iter().any(|pod| pod.name == was.pod.name && pod.uid != was.pod.uid)
            };
            before.iter().all(is_another).then_some(())
        });
        self.meet_new_pods();
    }
}
