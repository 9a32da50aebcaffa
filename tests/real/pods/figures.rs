//! Three real OpenSearch nodes of a StatefulSet, with storage that outlives their pods, brought to
//! a changed config in five ways: restarted in place by the reconciler, by deleting one pod after the
//! other, the same with allocation limited for each, by `kubectl rollout`, and in place on a warm JVM;
//! all with all defaults and while a client writes and searches through a Service. `bench/rolling`
//! runs this and compares them.
//!
//! One line of JSON for each way and round.

mod ledgers;
mod ways;

use std::time::Instant;

use serde_json::{Value, json};

use super::clients::{Clients, Count, Requests};
use super::door::Door;
use super::fixture::{ACCOUNT, Fixture, MANAGER};
use super::nodes::{NODES, assert_restarted_in_place, attribute, observe, until_formed};
use super::opensearch::{Jvm, shared_archive};
use super::opensearch_set::{Allocation, OpenSearchSet};
use crate::support::wait::eventually;
use ledgers::Ledgers;

/// How many rounds, unless `STAYPUT_ROUNDS` is set. Each uses new addresses for pods, and the nodes
/// know only the first sixty-four.
const ROUNDS: u32 = 2;

#[test]
#[ignore = "a measurement: bench/rolling"]
fn in_place_and_by_deletion() {
    const TEST: &str = "pods::figures::in_place_and_by_deletion";
    let Some(set) = OpenSearchSet::set_up(TEST, "1500Mi", |_, _| {}) else { return };
    let rounds = std::env::var("STAYPUT_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    for round in 0..rounds {
        // Each way is the first one, the second one and so on in some round.
        let mut ways = WAYS;
        ways.rotate_left(usize::try_from(round).expect("a small number") % WAYS.len());
        for way in ways {
            println!("{}", set.measure(way, round));
        }
    }
}

/// How the three nodes are brought to another config.
#[derive(Debug, Clone, Copy)]
enum Way {
    InPlace(Jvm),
    Replaced(Replacing),
}

const WAYS: [Way; 5] = [
    Way::InPlace(Jvm::Cold),
    Way::Replaced(Replacing::Deletion),
    Way::Replaced(Replacing::LimitedDeletion),
    Way::Replaced(Replacing::Rollout),
    Way::InPlace(Jvm::Warm),
];

impl OpenSearchSet {
    fn measure(&self, way: Way, round: u32) -> Value {
        match way {
            Way::InPlace(jvm) => self.in_place(&format!("{jvm:?}-{round}").to_lowercase(), jvm),
            Way::Replaced(replacing) => self.replaced(replacing, round),
        }
    }

    /// Restarts in place, and counts the requests to the apiserver.
    fn in_place(&self, round: &str, jvm: Jvm) -> Value {
        let fixture = &self.fixture;
        // The reconciler has also seen the pods that replaced the others.
        eventually("all are seen, and nothing goes on", || {
            let status = fixture.logs()["status"].clone();
            (status["phase"] == "Idle" && status["counts"]["ready"] == 3).then_some(())
        });
        let before = observe(fixture, MANAGER);
        let expected = self.configure(round, jvm);
        let mark = fixture.cluster.audit.now();
        let ledgers = Ledgers::follow(fixture);
        let clients = Clients::start(fixture, Door::plain());
        let began = Instant::now();
        fixture.people.run("kubectl stayput -n search restart logs --watch");
        until_formed(&before);
        let took = began.elapsed();
        let requests = clients.end();
        let ledger_writes = ledgers.end(fixture);
        let after = observe(fixture, MANAGER);
        assert_restarted_in_place(&before, &after, |_| expected.clone());
        assert_eq!(attribute(&after, "round"), vec![json!(round); 3]);
        assert_eq!(archives_in_use(fixture), if jvm == Jvm::Warm { NODES.len() } else { 0 });
        let events = fixture.cluster.audit.since(mark, ACCOUNT);
        let asked = |verb: &str, resource: &str, sub: &Value| {
            let is_one = |event: &&Value| {
                let of = &event["objectRef"];
                event["verb"] == verb && of["resource"] == resource && of["subresource"] == *sub
            };
            events.iter().filter(is_one).count()
        };
        let is_conflict = |event: &&Value| {
            matches!(event["responseStatus"]["code"].as_u64(), Some(409 | 422))
                && event["objectRef"]["resource"] != "leases"
        };
        for conflict in events.iter().filter(is_conflict) {
            println!("a conflict: {conflict}");
        }
        json!({
            "way": if jvm == Jvm::Warm { "in place, warm" } else { "in place" },
            "ms": took.as_millis(),
            "clients": told(&requests),
            "pod_patches": asked("patch", "pods", &Value::Null),
            "status_writes": asked("patch", "searchclusters", &json!("status")),
            "ledger_writes": ledger_writes,
            "events": asked("create", "events", &Value::Null) + asked("patch", "events", &Value::Null),
            "writes": fixture.asked_since(mark).writes(),
            "conflicts": events.iter().filter(is_conflict).count(),
            "all": fixture.asked_since(mark).to_string(),
        })
    }

    /// Every pod is replaced by another one.
    fn replaced(&self, way: Replacing, round: u32) -> Value {
        let fixture = &self.fixture;
        let before = observe(fixture, MANAGER);
        let round = format!("{way:?}-{round}").to_lowercase();
        self.configure(&round, Jvm::Cold);
        let clients = Clients::start(fixture, Door::plain());
        let began = Instant::now();
        match way {
            Replacing::Deletion => self.delete_pods(Allocation::Left),
            Replacing::LimitedDeletion => self.delete_pods(Allocation::Limited),
            Replacing::Rollout => self.roll_out(),
        }
        let took = began.elapsed();
        let requests = clients.end();
        let after = observe(fixture, MANAGER);
        assert!(NODES.iter().all(|name| before[*name].uid != after[*name].uid), "{after:#?}");
        assert_eq!(attribute(&after, "round"), vec![json!(round); 3]);
        json!({ "way": way.name(), "ms": took.as_millis(), "clients": told(&requests) })
    }

    /// As users of a set that Kubernetes updates: it replaces the next pod once the last one is ready,
    /// and asks the engine nothing.
    fn roll_out(&self) {
        self.update_by("RollingUpdate");
        self.fixture.run(&["rollout", "restart", "statefulset/logs"]);
        self.fixture.run(&["rollout", "status", "statefulset/logs", "--timeout=600s"]);
        self.until_green();
        self.update_by("OnDelete");
    }

    fn update_by(&self, strategy: &str) {
        let patch =
            json!({ "spec": { "updateStrategy": { "type": strategy, "rollingUpdate": null } } });
        self.fixture.run(&["patch", "statefulset", "logs", "--patch", &patch.to_string()]);
    }
}

/// How all pods are replaced.
#[derive(Debug, Clone, Copy)]
enum Replacing {
    /// One pod after the other, each once the cluster is green.
    Deletion,
    /// The same, without replicas meanwhile.
    LimitedDeletion,
    /// By the set's controller.
    Rollout,
}

impl Replacing {
    const fn name(self) -> &'static str {
        match self {
            Self::Deletion => "by deletion",
            Self::LimitedDeletion => "by deletion, allocation limited",
            Self::Rollout => "by kubectl rollout",
        }
    }
}

/// How many nodes have mapped the archive.
fn archives_in_use(fixture: &Fixture) -> usize {
    let archive = shared_archive().display();
    let look = format!("cat /proc/[0-9]*/maps | grep -q {archive} && echo mapped || echo without");
    let has = |name: &&&str| {
        fixture.run(&["exec", name, "--", "/bin/sh", "-c", &look]).contains("mapped")
    };
    NODES.iter().filter(has).count()
}

/// What became of the requests through the Service, as JSON.
fn told(count: &Count) -> Value {
    let requests =
        |of: Requests| json!({ "sent": of.sent, "refused": of.unanswered(), "failed": of.failed });
    json!({
        "writes": requests(count.writes),
        "searches": requests(count.searches),
        "failing_ms": count.failing.as_millis(),
        "incomplete_ms": count.incomplete.as_millis(),
    })
}
