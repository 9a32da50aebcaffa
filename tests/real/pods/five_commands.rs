//! "In five commands" of `docs/first-ten-minutes.md`, one after the other, and "Uninstall": from a StatefulSet
//! without stayput to its first restart in place, and back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::document::Document;
use super::first_ten_minutes::{FIVE, SECTIONS, STAYPUT, UNINSTALL};
use super::fixture::Fixture;
use super::nodes::{NODES, Node, observe, until_formed, until_ready};
use super::official;
use super::opensearch::Parts;
use super::stateful_set::{volumes, with_claims};
use crate::support::engine::Kind;

/// What the document promises, with the images at hand.
const TEN_MINUTES: Duration = Duration::from_secs(600);
/// On a machine on which three engines take more than a minute to start, the limit is this many times
/// as long as they take.
const STARTS: u32 = 10;

#[test] // proves RESTART-2, RESTART-4
fn five_commands_to_the_first_restart_in_place() {
    const TEST: &str = "pods::five_commands::five_commands_to_the_first_restart_in_place";
    // Engines and JVM are mounted from the machine.
    let Some((parts, fixture)) = Parts::lay(TEST, Kind::OpenSearch, "privileged") else { return };
    official::load(&fixture, &parts, official::IMAGE);
    fixture.secret("logs-config", &[("opensearch.yml", &official::config(&fixture))]);
    let _storage = volumes(&fixture, &NODES);
    let mut set = with_claims(official::stateful_set(&parts));
    set["spec"]["updateStrategy"] = json!({ "type": "RollingUpdate" });
    let began = Instant::now();
    fixture.admin().apply(&set);
    until_ready(&fixture, &NODES);
    let start = began.elapsed();
    let template = || {
        let path = "--output=jsonpath={.spec.template.spec}";
        fixture.run(&["get", "statefulset/logs", path])
    };
    let plain = template();

    let reader = Document::read(&fixture, "first-ten-minutes.md", &SECTIONS);
    let [install @ .., restart] = &reader.commands(FIVE)[..] else { panic!("no commands") };
    assert_eq!(install.len(), 4, "{install:?}");
    let began = Instant::now();
    for command in install {
        let one = Instant::now();
        let printed = fixture.people.run(command);
        println!("{} ms: {command}\n{printed}", one.elapsed().as_millis());
    }
    // Pods as they stay from now on.
    let before = observe(&fixture, STAYPUT);
    let one = Instant::now();
    let printed = fixture.people.run(restart);
    println!("{} ms: {restart}\n{printed}", one.elapsed().as_millis());
    let took = began.elapsed();
    println!("five commands took {} s, the start before {} s", took.as_secs(), start.as_secs());
    assert!(took < TEN_MINUTES.max(start * STARTS), "{took:?}");

    let after = observe(&fixture, STAYPUT);
    until_formed(&after);
    for (name, node) in &after {
        assert_eq!(node.stays, before[name].stays, "{name} is another pod or container");
        assert_ne!(node.run(), before[name].run(), "{name} was not restarted");
        assert_eq!(node.status["state"], "running", "{name}: {:#}", node.status);
    }

    let answers = Document::read_all(&fixture, "curl.md").section("In a cluster");
    let states = answers.replace(": ", ":").matches("\"state\":\"running\"").count();
    assert_eq!(states, 4, "{answers}");

    reader.section_with(UNINSTALL, |script| {
        if script.contains("uninject") {
            detached(&fixture, &after);
        }
    });
    assert_eq!(template(), plain);
    until_ready(&fixture, &NODES);
    let kinds = "secrets,configmaps,roles,rolebindings";
    let ours = "app.kubernetes.io/managed-by=stayput";
    let left = fixture.run(&["get", kinds, "--selector", ours, "--output", "name"]);
    assert_eq!(left, "");
    let definition = ["get", "customresourcedefinition", "searchclusters.stayput.dev"];
    let gone = fixture.admin().attempt(&definition, "").expect_err("it is deleted");
    assert!(gone.contains("not found"), "{gone}");
}

/// Nothing of ours is left on the pods, and the same engines run in them.
fn detached(fixture: &Fixture, before: &BTreeMap<String, Node>) {
    for (name, node) in observe(fixture, STAYPUT) {
        assert_eq!(node.stays, before[&name].stays, "{name} is another pod or container");
        assert_eq!(node.run(), before[&name].run(), "{name} was restarted");
    }
    let left =
        fixture.run(&["get", "pods", "--output", "jsonpath={.items[*].metadata.annotations}"]);
    assert!(!left.contains("stayput.dev/") && !left.contains("restart-phase"), "{left}");
}
