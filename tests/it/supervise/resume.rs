//! `resumeAfter` and `exit` of a stop, with the whole binary and a crash in between.

use serde_json::Value;

use super::pod::Pod;
use super::processes::{eventually, is_alive};

#[test] // proves STOP-23
fn a_stopped_engine_is_started_by_itself_when_its_time_is_over() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let stopped = manager.post("/es/stop?wait=20s", r#"{"sequence":5,"resumeAfter":"10s"}"#);
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()), "{stopped:?}");
    assert!(stopped.body["resume"]["at"].is_string(), "{stopped:?}");
    let resumed = manager.until_state("running");
    assert_eq!((&resumed["sequence"], &resumed["starts"]), (&5.into(), &2.into()));
    assert_eq!((&resumed["desired"], &resumed["resume"]), (&"running".into(), &Value::Null));
    let late = manager.post("/es/stop", r#"{"sequence":5,"resumeAfter":"10s"}"#);
    assert_eq!((late.code, late.problem()), (409, "superseded"), "a retry stops nothing");
}

#[test] // proves JOURNAL-5
fn the_time_outlives_the_container_and_an_accepted_request_ends_it() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let stop = r#"{"sequence":5,"resumeAfter":"1h"}"#;
    let at = manager.post("/es/stop?wait=20s", stop).body["resume"]["at"].clone();
    manager.crash();
    let manager = pod.start_sleeper();
    let status = manager.until_state("stopped");
    assert_eq!(status["resume"]["at"], at, "the journal's instant");
    assert_eq!(manager.post("/es/stop", stop).body["resume"]["at"], at, "a retry changes nothing");
    let again = manager.post("/es/stop", r#"{"sequence":6}"#);
    assert_eq!((again.code, &again.body["resume"]), (200, &Value::Null));
    assert_eq!(manager.post("/es/stop", r#"{"resumeAfter":"1s"}"#).code, 200);
    manager.crash();
    let manager = pod.start_sleeper();
    assert_eq!(manager.until_state("running")["sequence"], 7, "due at boot, or soon after");
}

#[test] // proves STOP-23
fn it_is_started_on_the_expected_config_only() {
    let pod = Pod::new();
    let config = pod.path("config");
    pod.write("config/elasticsearch.yml", "a: 1\n");
    let options = ["--config", config.to_str().unwrap()];
    let manager = pod.start(&options, &["sleep", "600"]);
    let expected = manager.until_state("running")["config"]["checksum"].clone();
    pod.write("config/elasticsearch.yml", "a: 2\n");
    manager.until("the change", |status| status["config"]["checksum"] != expected);
    let body = format!(r#"{{"resumeAfter":"1s","resumeChecksum":{expected}}}"#);
    assert_eq!(manager.post("/es/stop?wait=20s", &body).code, 200);
    let refused =
        manager.until("the refusal", |status| status["reason"]["code"] == "resume_refused");
    assert_eq!((&refused["state"], &refused["resume"]["checksum"]), (&"stopped".into(), &expected));
    let message = refused["reason"]["message"].as_str().unwrap();
    assert!(message.contains(expected.as_str().unwrap()), "{message}");
    pod.write("config/elasticsearch.yml", "a: 1\n");
    assert_eq!(manager.until_state("running")["run"]["checksum"], expected);
}

#[test] // proves RESTART-30
fn without_a_checksum_it_is_started_on_what_is_mounted_then() {
    let pod = Pod::new();
    let config = pod.path("config");
    pod.write("config/elasticsearch.yml", "a: 1\n");
    let manager = pod.start(&["--config", config.to_str().unwrap()], &["sleep", "600"]);
    let before = manager.until_state("running")["config"]["checksum"].clone();
    assert_eq!(manager.post("/es/stop?wait=20s", r#"{"resumeAfter":"10s"}"#).code, 200);
    pod.write("config/elasticsearch.yml", "a: 2\n");
    let resumed = manager.until_state("running");
    assert_eq!(resumed["run"]["checksum"], resumed["config"]["checksum"]);
    assert_ne!(resumed["run"]["checksum"], before);
}

#[test] // proves STOP-33
fn with_exit_the_manager_answers_and_ends_and_the_next_one_waits() {
    let pod = Pod::new();
    let mut manager = pod.start_sleeper();
    manager.until_state("running");
    let engine = manager.engine();
    let answer = manager.post("/es/stop?wait=20s", r#"{"sequence":5,"exit":true}"#);
    assert_eq!((answer.code, &answer.body["state"]), (200, &"stopped".into()), "{answer:?}");
    assert_eq!(manager.ended(), 0);
    assert!(!is_alive(engine));

    let mut manager = pod.start_sleeper();
    let status = manager.until_state("stopped");
    assert_eq!((&status["sequence"], &status["starts"]), (&5.into(), &0.into()));
    assert_eq!(status["last_exit"]["reason"], "stopped");
    let already = manager.post("/es/stop", r#"{"sequence":6,"exit":true}"#);
    assert_eq!(already.code, 200, "{already:?}");
    assert_eq!(manager.ended(), 0, "at once");
    let manager = pod.start_sleeper();
    manager.until_state("stopped");
    assert_eq!(manager.post("/es/start?wait=20s", r#"{"sequence":7}"#).code, 200);
}

#[test]
fn an_engine_that_is_killed_with_its_manager_again_and_again_is_held() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    pod.gate.set(false);
    let run = manager.post("/es/start", "{}").body["run"]["id"].clone();
    let mut manager = manager;
    let mut last = run;
    for _ in 1..3 {
        recorded(&pod, &last);
        manager.crash();
        manager = pod.start_sleeper();
        let status = manager.until_state("starting");
        let exit = &status["last_exit"];
        assert_eq!((&exit["run"], &exit["reason"]), (&last, &"ended_with_manager".into()));
        assert_eq!((&exit["code"], &exit["signal"]), (&Value::Null, &Value::Null), "{exit}");
        last = status["run"]["id"].clone();
    }
    recorded(&pod, &last);
    manager.crash();
    let manager = pod.start_sleeper();
    let status = manager.until_state("failed");
    assert_eq!(status["reason"]["code"], "ended_with_manager");
    assert_eq!((&status["starts"], &status["last_exit"]["run"]), (&0.into(), &last));
    pod.gate.set(true);
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
}

/// Waits until the run is in the journal: a container that is killed before leaves no trace of it.
fn recorded(pod: &Pod, run: &Value) {
    eventually("the run in the journal", || {
        let journal: Value = serde_json::from_slice(&std::fs::read(pod.journal()).ok()?).ok()?;
        (journal["run"]["id"] == *run).then_some(())
    });
}
