//! At the pids limit of a container: an engine that leaks threads has taken all.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::engine::work_directory;
use crate::support::manager::{AS_ENGINE, Launch};
use crate::support::namespace::cannot_isolate;
use crate::support::pids::{PidsLimit, TAKES_ALL, until_full};
use crate::support::skip;
use crate::support::wait::eventually;

/// More than a manager has threads.
const MOST: u32 = 60;

fn limit() -> Result<PidsLimit, String> {
    cannot_isolate().map_or(Ok(()), Err)?;
    PidsLimit::new(MOST)
}

fn launch(work: &std::path::Path, limit: &PidsLimit) -> Launch {
    let config = work.join("config");
    fs::write(config.join("a.yml"), "one").expect("a file");
    let path = |name: &str| work.join(name).to_str().expect("UTF-8").to_owned();
    let stage = format!("{}={}", path("config"), path("staged"));
    let options = ["--on-exit", "hold", "--config", &path("config"), "--stage", &stage];
    let launch = Launch::new(work, ["python3", "-c", TAKES_ALL]).options(options).never_ready();
    let wrapper = limit.wrapper().into_iter().chain(AS_ENGINE.map(str::to_owned)).collect();
    Launch { wrapper, ..launch }
}

#[test] // proves STOP-9
fn an_engine_that_has_all_threads_is_stopped_and_started() {
    let work = work_directory(&["config", "staged"]);
    let limit = match limit() {
        Ok(limit) => limit,
        Err(why) => {
            return skip("pids::an_engine_that_has_all_threads_is_stopped_and_started", &why);
        }
    };
    let mut manager = launch(work.path(), &limit).start();
    let api = manager.api.clone();
    for (text, starts) in [("two", 2), ("three", 3)] {
        until_full(work.path());
        let before = api.status()["config"]["checksum"].clone();
        fs::write(work.path().join("config/a.yml"), text).expect("a file");
        let changed = api.status_when("the change is seen", |status| {
            status["config"]["checksum"] != before && status["config"]["checksum"].is_string()
        });
        assert_eq!(changed["config"]["drift"], true);
        assert_eq!(api.get("/livez").status, 200);

        let stopped = api.stop();
        assert_eq!(stopped["last_exit"]["reason"], "stopped", "{stopped:#}");
        assert_eq!(stopped["manager"]["durable"], true);
        let journal = fs::read(work.path().join("state/journal.json")).expect("the journal");
        let journal: Value = serde_json::from_slice(&journal).expect("JSON");
        assert_eq!(journal["intent"]["desired"], "stopped", "{journal:#}");
        manager.assert_alone();

        let expected = json!({ "checksum": changed["config"]["checksum"] });
        let started = api.post("/es/start", &expected).expect(202);
        assert_eq!(started["starts"], starts);
        assert_eq!(fs::read_to_string(work.path().join("staged/a.yml")).expect("a copy"), text);
    }
    until_full(work.path());
    assert_eq!(api.status()["manager"]["errors"], json!([]));
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 143);
}

#[test] // proves STOP-9
fn a_start_for_which_no_process_can_be_made_is_refused_and_works_later() {
    let work = work_directory(&["config", "staged"]);
    let limit = match limit() {
        Ok(limit) => limit,
        Err(why) => {
            let name = "pids::a_start_for_which_no_process_can_be_made_is_refused_and_works_later";
            return skip(name, &why);
        }
    };
    let manager = launch(work.path(), &limit).start();
    let api = &manager.api;
    api.until_state("starting");
    api.stop();
    // In the container, but not the engine's.
    let filler = limit.fill(work.path());
    let problem = api.post("/es/start", &json!({})).expect_problem(503, "spawn_failed");
    let detail = problem["detail"].as_str().expect("a sentence");
    assert!(detail.contains("raise the limit on processes"), "{detail}");
    assert_eq!(api.get("/livez").status, 200);
    assert_eq!(api.stop()["manager"]["durable"], true);
    drop(filler);
    eventually("a process can be made again", || {
        let answer = api.post("/es/start", &json!({}));
        (answer.status == 202).then_some(())
    });
    until_full(work.path());
    assert_eq!(api.stop()["last_exit"]["reason"], "stopped");
}
