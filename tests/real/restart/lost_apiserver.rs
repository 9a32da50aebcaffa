//! The apiserver is lost when engines are being stopped, and stays away: they come back all the
//! same, and the restart ends well once it answers again.

use std::collections::BTreeSet;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stayput_restart::Outcome;

use super::fixture::{Fixture, NAMES, until};
use super::step;
use crate::support::api::Api;
use crate::support::cluster::Member;

/// The start is in the ledger, and is sent without the apiserver.
pub(super) fn rolling(fixture: &Fixture) {
    step("rolling, and the apiserver is lost when a node is being stopped");
    fixture.policy(&json!({ "drain": "5s" }));
    let expected = fixture.configure("logs-1", "node.attr.stayput: alone", str::to_owned);
    let before = fixture.facts();
    let api = api(fixture, "logs-1");
    fixture.ask("alone", "rolling", &["logs-1"]);
    api.until_state("stopping");
    fixture.server.freeze();
    // It is started again within a second.
    let stopped = &before["logs-1"].run;
    api.status_when("it was stopped", |status| status["last_exit"]["run"] == *stopped);
    step("stopped");
    let status = api.until_ready();
    step("ready again, while the apiserver is away");
    assert_eq!(status["run"]["checksum"].as_str(), Some(&*expected), "{status:#}");
    fixture.server.thaw();
    let entry = fixture.until_over("alone");
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 1), "{entry:?}");
    fixture.until_formed();
    let (was, is) = (&before["logs-1"], &fixture.facts()["logs-1"]);
    assert_eq!((was.manager_pid, &was.boot), (is.manager_pid, &is.boot));
    assert_eq!(status["run"]["id"], is.run, "it was started twice");
}

/// No start is in the ledger before all are stopped, and nothing can be written there: each manager
/// starts its engine by itself, all on the new config. The restart goes on afterwards.
pub(super) fn while_all_are_stopped(fixture: &Fixture) {
    let apis: Vec<Api> = NAMES.iter().map(|name| api(fixture, name)).collect();
    for api in &apis {
        api.status_when("it is being stopped", |status| {
            matches!(status["state"].as_str(), Some("stopping" | "stopped"))
        });
    }
    fixture.server.freeze();
    for api in &apis {
        api.until_state("stopped");
    }
    step("all are stopped, and the apiserver is away");
    {
        let mut cluster = fixture.cluster();
        for member in &mut cluster.members {
            pass_the_time(member);
        }
    }
    for api in &apis {
        api.until_ready();
    }
    let names = || -> Option<BTreeSet<String>> {
        let health = |node: &crate::support::cluster::Rest| -> Option<Value> {
            node.send("GET", "/_cluster/health?wait_for_nodes=3", None).ok().map(|one| one.body)
        };
        let all: Vec<Value> = fixture.nodes().iter().filter_map(health).collect();
        let formed = all.len() == NAMES.len() && all.iter().all(|one| one["number_of_nodes"] == 3);
        let name = |one: &Value| one["cluster_name"].as_str().unwrap_or_default().to_owned();
        formed.then(|| all.iter().map(name).collect())
    };
    let names = until("one cluster has formed while the apiserver is away", names);
    step("one cluster has formed, while the apiserver is away");
    assert!(names.len() == 1 && names.iter().all(|name| name.starts_with("renamed-")), "{names:?}");
    fixture.server.thaw();
    fixture.policy(&json!({ "drain": "1s" }));
}

/// The container ends and begins again when the time of `resumeAfter` is over. On its disk that time
/// is moved to now, instead of waiting ten minutes.
fn pass_the_time(member: &mut Member) {
    member.kill_manager();
    let journal = member.state_dir().join("journal.json");
    let text = fs::read_to_string(&journal).expect("a journal");
    let mut content: Value = serde_json::from_str(&text).expect("JSON");
    let at = &mut content["intent"]["resume"]["at"];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    assert!(u128::from(at.as_u64().expect("it resumes by itself")) > now, "{at}");
    *at = json!(u64::try_from(now).expect("milliseconds"));
    fs::write(&journal, content.to_string()).expect("a write");
    member.start_manager();
}

fn api(fixture: &Fixture, name: &str) -> Api {
    fixture.with(name, |member| member.manager().api.clone())
}
