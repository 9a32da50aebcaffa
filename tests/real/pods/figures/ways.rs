//! A changed config and another image, each brought to three real OpenSearch nodes by the reconciler
//! and by deleting one pod after the other: seconds, and everybody's writes to the apiserver.
//!
//! One line of JSON for each change and way.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::pods::fixture::{ENGINE, Fixture, OTHER};
use crate::pods::nodes::NODES;
use crate::pods::opensearch::Jvm;
use crate::pods::opensearch_set::{Allocation, OpenSearchSet};
use crate::pods::seen::seen;
use crate::pods::stateful_set::{edit, until_updated};
use crate::support::wait::eventually;

#[test]
#[ignore = "a measurement: see bench/README.md"]
fn by_the_least_step_and_by_deletion() {
    const TEST: &str = "pods::figures::ways::by_the_least_step_and_by_deletion";
    let Some(set) = OpenSearchSet::set_up(TEST, "600Mi", |_, _| {}) else { return };
    let fixture = &set.fixture;
    let mut template = set.template.clone();
    measure(fixture, "config", "in place", || {
        set.configure("in-place", Jvm::Cold);
        fixture.people.run("kubectl stayput -n search restart logs --watch");
        set.until_green();
    });
    measure(fixture, "config", "by deletion", || {
        set.configure("deleted", Jvm::Cold);
        set.delete_pods(Allocation::Left);
    });
    set.carry_templates_out("inPlace");
    until_known(fixture);
    template["spec"]["containers"][0]["image"] = json!(OTHER);
    measure(fixture, "image", "in place", || {
        edit(fixture, &template);
        until_updated(fixture);
        fixture.until_idle();
        set.until_green();
    });
    set.carry_templates_out("off");
    until_known(fixture);
    template["spec"]["containers"][0]["image"] = json!(ENGINE);
    measure(fixture, "image", "by deletion", || {
        edit(fixture, &template);
        set.delete_pods(Allocation::Left);
    });
    assert!(seen(fixture).iter().all(|pod| pod.image == ENGINE));
}

/// Waits until the reconciler has seen the spec and all pods, and has nothing to do.
fn until_known(fixture: &Fixture) {
    eventually("all are seen, and nothing goes on", || {
        let logs = fixture.logs();
        let is_seen = logs["status"]["observedGeneration"] == logs["metadata"]["generation"];
        let status = &logs["status"];
        let is_idle = status["phase"] == "Idle" && status["counts"]["ready"] == NODES.len();
        (is_seen && is_idle).then_some(())
    });
}

/// Prints what a change takes, once nothing goes on.
fn measure(fixture: &Fixture, what: &str, way: &str, change: impl FnOnce()) {
    until_known(fixture);
    let (before, pods) = (writes(fixture), seen(fixture));
    let began = Instant::now();
    change();
    let ms = began.elapsed().as_millis();
    until_known(fixture);
    let mut each = writes(fixture);
    each.retain(|what, count| {
        *count -= before.get(what).copied().unwrap_or(0);
        *count > 0
    });
    let stay = seen(fixture).iter().zip(&pods).filter(|(is, was)| is.uid == was.uid).count();
    assert_eq!(stay, if way == "in place" { NODES.len() } else { 0 });
    let all: u64 = each.values().sum();
    let events: u64 =
        each.iter().filter(|(what, _)| what.ends_with("events")).map(|(_, n)| n).sum();
    let line: Value = json!({
        "change": what, "way": way, "ms": ms, "writes": all - events, "events": events,
        "each": each,
    });
    println!("{line}");
}

/// The apiserver's own count of requests that change something, by verb and resource. Leases are
/// renewed all the time, and tokens and reviews are not stored.
fn writes(fixture: &Fixture) -> BTreeMap<String, u64> {
    let text = fixture.admin().run(&["get", "--raw", "/metrics"]);
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
        let label = |name: &str| {
            let (_, rest) = line.split_once(&format!("{name}=\""))?;
            rest.split('"').next()
        };
        let (Some(verb), Some(resource), Some(code)) =
            (label("verb"), label("resource"), label("code"))
        else {
            continue;
        };
        let is_write = ["POST", "PUT", "PATCH", "APPLY", "DELETE"].contains(&verb)
            && code.starts_with('2')
            && resource != "leases"
            && !resource.ends_with("reviews")
            && label("subresource") != Some("token");
        let count = line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok());
        if let (true, Some(count)) = (is_write, count) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let count = count as u64;
            let sub = label("subresource").filter(|sub| !sub.is_empty());
            let of = sub.map_or(resource.to_owned(), |sub| format!("{resource}/{sub}"));
            *counts.entry(format!("{} {of}", verb.to_lowercase())).or_default() += count;
        }
    }
    counts
}
