//! The timeline of a rolling restart of three idle nodes: `bench/rolling` runs this and shows the time of
//! each part. Nothing is mounted again and nothing is drained, so the restart waits only for the engines.
//! With the engines' own JVM options, without and with an archive of classes in turns; and with one compiler.
//!
//! One line of JSON per restart, all times in milliseconds since 1970 by the clock of this machine.

mod observations;
mod proxy;
mod statuses;

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Outcome;

use super::fixture::{Fixture, NAMES};
use super::{load, on};
use crate::support::archive;
use crate::support::cluster::{Flavor, Member};
use observations::{Observations, Views};
use proxy::Waits;
use statuses::Statuses;

/// How many restarts of each kind, unless `STAYPUT_ROUNDS` is set.
const ROUNDS: u32 = 3;

#[test]
#[ignore = "a measurement: bench/rolling"]
fn rolling() {
    on("figures::rolling", Flavor::ShippedOpenSearch, |fixture| measure(&fixture, &[false, true]));
}

/// With one compiler and a small heap, so that engines answer without waiting for their compilers.
#[test]
#[ignore = "a measurement: bench/rolling"]
fn with_one_compiler() {
    on("figures::with_one_compiler", Flavor::OpenSearch, |fixture| measure(&fixture, &[true]));
}

/// Carries out restarts, whose engines start without (`false`) and with an archive of classes.
fn measure(fixture: &Fixture, kinds: &[bool]) {
    let rounds = std::env::var("STAYPUT_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    load::create(fixture.nodes()[0]);
    for id in 0..300 {
        assert!(fixture.nodes()[0].index(load::INDEX, id), "{id} is not taken");
    }
    let (port, waits) = proxy::before(&fixture.nodes());
    let spec = json!({ "engine": { "port": port }, "restart": { "drain": "0s" } });
    fixture.kube.merge::<SearchCluster>("logs", &json!({ "spec": spec }));
    for round in 0..rounds {
        // Another one is first each time: what has run for longer may be quicker.
        let mut order = kinds.to_vec();
        order.rotate_left(round as usize % kinds.len());
        for warm in order {
            NAMES.iter().for_each(|name| fixture.with(name, |member| use_archive(member, warm)));
            let id = format!("{}-{round}", if warm { "warm" } else { "cold" });
            let mut times = restart(fixture, &waits, &id);
            for name in NAMES {
                let status = fixture.with(name, |member| member.manager().api.status());
                let archive = &status["archive"];
                assert_eq!(archive["used"] == true, warm, "{name}: {archive:#}");
            }
            times["warm"] = json!(warm);
            println!("{times}");
        }
    }
}

/// Beside the mounted config, so that the config stays as it is.
fn use_archive(member: &Member, warm: bool) {
    let file = member.work().join("config/jvm.options.d/warm.options");
    let option = archive::option(archive::of_opensearch().expect("OpenSearch is installed"));
    fs::write(file, if warm { option } else { String::new() }).expect("an option file");
}

/// Carries out a restart; returns its times.
fn restart(fixture: &Fixture, waits: &Waits, id: &str) -> Value {
    fixture.until_formed();
    let before = fixture.facts();
    let apis = NAMES.map(|name| fixture.with(name, |member| member.manager().api.clone()));
    let (observations, statuses) = (Observations::start(&fixture.nodes()), Statuses::start(apis));
    let asked = now();
    fixture.ask(id, "rolling", &[]);
    let entry = fixture.until_over(id);
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    let (views, statuses) = (observations.end(), statuses.end());
    let log = Log::of(&fixture.reconciler.log(), id);
    let after = fixture.facts();
    let node = |(at, name): (usize, &str)| {
        let (was, is) = (&before[name], &after[name]);
        assert_eq!(was.manager_pid, is.manager_pid, "{name}");
        assert_ne!(was.run, is.run, "{name}");
        let new = is.ephemeral.clone().expect("it is listed");
        let times = statuses[at].of_run(&was.run, &is.run);
        let others = Views::without(&views, at);
        let joined = others.until_listed(&new);
        let restored = Views::all(&views).since_restored(joined);
        json!({
            "node": name,
            "slot": log.at(name, "restarting"),
            "stop": times.stop,
            "ending": times.exited - times.took,
            "exited": times.exited,
            "start": times.start,
            "spawned": times.spawned,
            "joined": joined,
            "joined_all": others.until_all_list(&new),
            "restored": restored,
            "ready": times.ready,
            "green": Views::all(&views).until_green(restored),
            "released": log.at(name, "finished"),
        })
    };
    let nodes: Vec<Value> = NAMES.into_iter().enumerate().map(node).collect();
    let mut waits = std::mem::take(&mut *waits.lock().expect("a lock"));
    waits.retain(|(_, until)| (asked..).contains(until));
    json!({ "asked": asked, "over": log.over, "nodes": nodes, "answers": waits })
}

/// The log of the reconciler about one restart.
struct Log {
    /// By node and step.
    ledger: BTreeMap<(String, String), u64>,
    over: u64,
}

impl Log {
    fn of(text: &str, id: &str) -> Self {
        let (mut ledger, mut over) = (BTreeMap::new(), None);
        let mark = format!("restart={id}");
        for line in text.lines().filter(|line| line.split(' ').any(|word| word == mark)) {
            let field = |name: &str| {
                line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            };
            let at = moment(line.split(' ').next().expect("a moment"));
            match (line.contains("ledger written"), field("node"), field("step")) {
                (true, Some(node), Some(step)) => {
                    ledger.insert((node.to_owned(), step.to_owned()), at);
                }
                _ if line.contains("restart ended") => over = Some(at),
                _ => {}
            }
        }
        Self { ledger, over: over.expect("it is over") }
    }

    /// The end of the last node is the end of the restart: then the ledger has no member any more.
    fn at(&self, node: &str, step: &str) -> u64 {
        let key = (node.to_owned(), step.to_owned());
        self.ledger.get(&key).copied().unwrap_or(self.over)
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    millis(SystemTime::now())
}

fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_millis();
    u64::try_from(since).expect("before the year 500000000")
}

/// Parses a time of RFC 3339.
fn moment(text: &str) -> u64 {
    millis(humantime::parse_rfc3339(text).unwrap_or_else(|_| panic!("no moment: {text}")))
}
