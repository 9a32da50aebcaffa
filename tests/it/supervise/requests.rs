//! Stop and start over the API: checked by sequence, answered as promised, never carried out twice.

use std::os::unix::fs::PermissionsExt;
use std::{fs, thread};

use serde_json::Value;

use super::client::{self, Answer};
use super::pod::Pod;
use super::processes::{eventually, is_alive};
use crate::http::faults_of;
use crate::support::programs::{children, write_program};

#[test]
fn an_engine_is_stopped_and_started_again_under_one_manager() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    let first = manager.until_state("running");
    assert_eq!((&first["ready"], &first["starts"]), (&true.into(), &1.into()));
    let engine = manager.engine();

    let stopped = manager.post("/es/stop?wait=20s", r#"{"sequence":7}"#);
    assert_eq!(stopped.code, 200, "{stopped:?}");
    assert!(!is_alive(engine));
    let status = stopped.body;
    assert_eq!((&status["state"], &status["desired"]), (&"stopped".into(), &"stopped".into()));
    assert_eq!((&status["run"], &status["sequence"]), (&Value::Null, &7.into()));
    let exit = &status["last_exit"];
    assert_eq!((&exit["signal"], &exit["reason"]), (&15.into(), &"stopped".into()), "{exit}");
    assert_eq!(status["last_request"]["by"], format!("uid:{}", nix::unistd::getuid()));

    let started = manager.post("/es/start?wait=20s", "{}");
    assert_eq!(started.code, 200, "{started:?}");
    assert_eq!((&started.body["state"], &started.body["ready"]), (&"running".into(), &true.into()));
    assert_eq!((&started.body["sequence"], &started.body["starts"]), (&8.into(), &2.into()));
    assert_ne!(started.body["run"]["id"], first["run"]["id"]);
    assert_eq!(started.body["manager"]["boot_id"], first["manager"]["boot_id"]);
}

#[test]
fn a_stop_is_202_while_stopping_and_a_second_one_only_shortens_it() {
    let pod = Pod::new();
    let manager = pod.start_deaf(&["--grace", "300s"]);
    let engine = manager.engine();
    let first = manager.post("/es/stop", "{}");
    assert_eq!((first.code, &first.body["state"]), (202, &"stopping".into()));
    let due = |status: &serde_json::Value| status["reason"]["message"].clone();
    let longer = manager.post("/es/stop", r#"{"grace":"2h"}"#);
    assert_eq!((longer.code, due(&longer.body)), (202, due(&first.body)), "not lengthened");
    let waited = manager.post("/es/stop?wait=10ms", "{}");
    assert_eq!(waited.code, 202, "{waited:?}");
    assert!(is_alive(engine));

    let shorter = manager.post("/es/stop?wait=20s", r#"{"grace":"0s"}"#);
    assert_eq!(shorter.code, 200, "{shorter:?}");
    assert!(!is_alive(engine));
    let exit = &shorter.body["last_exit"];
    assert_eq!((&exit["signal"], &exit["reason"]), (&9.into(), &"killed".into()), "{exit}");
}

#[test] // proves STOP-17
fn two_people_who_start_it_at_the_same_time_both_get_what_they_asked_for() {
    let pod = Pod::new();
    pod.gate.set(false);
    let manager = pod.start_sleeper();
    manager.until_state("starting");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| manager.post("/es/start?wait=20s", "{}"));
        manager.until("the first start", |status| status["last_request"]["kind"] == "start");
        let second = scope.spawn(|| manager.post("/es/start?wait=20s", "{}"));
        manager.until("the second start", |status| status["sequence"] == 3);
        pod.gate.set(true);
        (first.join().expect("an answer"), second.join().expect("an answer"))
    });
    assert_eq!((first.code, second.code), (200, 200), "{first:?} {second:?}");
    assert_eq!(second.body["starts"], 2, "started once");

    // The same for two stops.
    let manager = {
        drop(manager);
        pod.start_deaf(&["--grace", "300s"])
    };
    let codes = thread::scope(|scope| {
        let before = manager.status()["sequence"].as_u64().unwrap();
        let first = scope.spawn(|| manager.post("/es/stop?wait=20s", "{}"));
        manager.until("the first stop", |status| status["sequence"] == before + 1);
        let second = manager.post("/es/stop?wait=20s", r#"{"grace":"0s"}"#);
        (first.join().expect("an answer").code, second.code)
    });
    assert_eq!(codes, (200, 200));
}

#[test]
fn sequences_are_fenced() {
    let pod = Pod::new();
    let manager = pod.start_obedient(&[]);
    manager.until_state("running");
    let ask = |target: &str, body: &str| {
        let answer = manager.post(target, body);
        (answer.code, answer.problem().to_owned())
    };
    let fine = |code: u16| (code, String::new());
    let refused = |code: u16, problem: &str| (code, problem.to_owned());

    assert_eq!(ask("/es/stop?wait=20s", r#"{"sequence":10}"#), fine(200));
    assert_eq!(ask("/es/start", r#"{"sequence":9}"#), refused(409, "stale_sequence"));
    assert_eq!(ask("/es/start", r#"{"sequence":10}"#), refused(409, "sequence_reused"));
    let other = r#"{"sequence":10,"grace":"5s"}"#;
    assert_eq!(ask("/es/stop", other), refused(409, "sequence_reused"));
    assert_eq!(ask("/es/start", r#"{"sequence":1000011}"#), refused(400, "sequence_jump"));
    let above = r#"{"sequence":9007199254740992}"#;
    assert_eq!(ask("/es/start", above), refused(400, "sequence_jump"));
    assert_eq!(ask("/es/stop", r#"{"sequence":10}"#), fine(200), "a retry");
    assert_eq!(manager.status()["starts"], 1);
    assert_eq!(ask("/es/start?wait=20s", r#"{"sequence":1000010}"#), fine(200), "the largest jump");
    assert_eq!(ask("/es/start?wait=20s", r#"{"sequence":1000010}"#), fine(200), "a retry");
    assert_eq!(ask("/es/stop", r#"{"sequence":10}"#), refused(409, "stale_sequence"));
    let status = manager.status();
    assert_eq!((&status["sequence"], &status["starts"]), (&1_000_010.into(), &2.into()));
}

#[test]
fn a_refused_request_takes_its_sequence_and_may_be_sent_again() {
    let pod = Pod::new();
    let manager = pod.start_deaf(&["--grace", "300s"]);
    assert_eq!(manager.post("/es/stop", r#"{"sequence":4}"#).code, 202);
    let start = r#"{"sequence":6}"#;
    let refused = manager.post("/es/start", start);
    assert_eq!((refused.code, refused.problem()), (409, "stopping"));
    assert_eq!((&refused.body["current"]["state"]), &"stopping");
    assert_eq!(refused.body["current"]["last_request"]["accepted"], false);
    let late = manager.post("/es/stop", r#"{"sequence":5}"#);
    assert_eq!(
        (late.code, late.problem()),
        (409, "stale_sequence"),
        "the refused sequence was recorded"
    );
    let journal: serde_json::Value =
        serde_json::from_slice(&fs::read(pod.journal()).unwrap()).unwrap();
    assert_eq!(journal["intent"]["fencing"]["sequence"], 6, "written before it was answered");
    assert_eq!(journal["intent"]["desired"], "stopped", "what was refused changed nothing");

    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(manager.engine()).unwrap()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    manager.until_state("stopped");
    assert_eq!(manager.post("/es/start?wait=20s", start).code, 200, "decided anew");
}

#[test] // proves REQUEST-4
fn a_request_for_another_pod_is_refused() {
    let pod = Pod::new();
    {
        let manager = pod.start_sleeper();
        manager.until_state("running");
        let unknown = manager.post("/es/stop", r#"{"pod":"a-uid"}"#);
        assert_eq!((unknown.code, unknown.problem()), (409, "pod_unknown"));
    }
    let mut command = pod.command::<&str>(&[], &["sleep", "600"]);
    command
        .env("STAYPUT_POD_UID", "0b7e1f0c-7a57-4a86-9d3e-2f0c5a3b8a11")
        .env("STAYPUT_POD_NAME", "logs-2");
    let manager = pod.spawn(command.env("STAYPUT_POD_NAMESPACE", "search"));
    manager.until_state("running");
    let wrong = manager.post("/es/stop", r#"{"pod":"a-uid","sequence":3}"#);
    assert_eq!((wrong.code, wrong.problem()), (409, "wrong_pod"));
    assert!(
        wrong.detail().contains("a-uid")
            && wrong.detail().contains("0b7e1f0c-7a57-4a86-9d3e-2f0c5a3b8a11")
    );
    assert_eq!(
        manager.status()["sequence"],
        0,
        "it was for another pod, so its sequence is not recorded"
    );
    assert_eq!(manager.status()["manager"]["pod"]["name"], "logs-2");
    let right = manager.post(
        "/es/stop?wait=20s",
        r#"{"pod":"0b7e1f0c-7a57-4a86-9d3e-2f0c5a3b8a11","sequence":3}"#,
    );
    assert_eq!(right.code, 200);
}

#[test] // proves STOP-8
fn forty_starts_at_once_make_one_engine() {
    let pod = Pod::new();
    let manager = pod.start_obedient(&[]);
    manager.until_state("running");
    for body in ["{}", r#"{"sequence":1000}"#] {
        assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
        let before = manager.status()["starts"].as_u64().unwrap();
        let answers: Vec<Answer> = thread::scope(|scope| {
            let starts: Vec<_> =
                (0..40).map(|_| scope.spawn(|| manager.post("/es/start?wait=30s", body))).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        for answer in answers {
            // Without a sequence each is a separate request, and a later one may replace it. 202:
            // the limit of waiting requests is reached, so this one is answered before it is done.
            let done = matches!(answer.code, 200 | 202)
                || (body == "{}" && answer.problem() == "superseded");
            assert!(done, "{answer:?}");
        }
        manager.until_state("running");
        assert_eq!(manager.status()["starts"], before + 1);
        let engines = children(manager.pid());
        assert_eq!(engines.len(), 1, "{engines:?}");
    }
}

#[test]
fn a_stop_beats_an_engine_that_is_starting() {
    let pod = Pod::new();
    pod.gate.set(false);
    let manager = pod.start_sleeper();
    let status = manager.until_state("starting");
    assert_eq!((&status["ready"], &status["reason"]["code"]), (&false.into(), &"starting".into()));
    let socket = pod.socket();
    let engine = manager.engine();
    let waiting = thread::spawn(move || {
        client::ask(&socket, "POST", "/es/start?wait=30s", r#"{"sequence":1}"#).unwrap()
    });
    manager.until("the start is judged", |status| status["sequence"] == 1);
    let stopped = manager.post("/es/stop?wait=20s", r#"{"sequence":2}"#);
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()));
    assert!(!is_alive(engine));
    let waited = waiting.join().unwrap();
    assert_eq!((waited.code, waited.problem()), (409, "superseded"), "{waited:?}");
}

#[test]
fn a_start_that_waits_is_told_when_the_engine_is_not_ready_in_time() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    pod.gate.set(false);
    let started = manager.post("/es/start?wait=10ms", "{}");
    assert_eq!((started.code, &started.body["state"]), (202, &"starting".into()));
    pod.gate.set(true);
    manager.until_state("running");
    assert_eq!(manager.post("/es/start", "{}").code, 200, "it runs as asked");
}

#[test]
fn a_command_that_cannot_be_executed_any_more_is_503_and_held() {
    let pod = Pod::new();
    let engine = pod.path("engine");
    write_program(&engine, b"#!/bin/sh\nexec sleep 600\n");
    let mode = |mode| fs::set_permissions(&engine, fs::Permissions::from_mode(mode)).unwrap();
    let manager = pod.start::<&str>(&[], &[engine.to_str().unwrap()]);
    manager.until_state("running");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    mode(0o644);
    // A child that is late on a busy machine has been started, and fails then.
    let refused = eventually("it fails in time", || {
        let refused = manager.post("/es/start?wait=20s", "{}");
        assert_eq!(refused.code, 503, "{refused:?}");
        (refused.problem() == "spawn_failed").then_some(refused)
    });
    assert!(refused.detail().contains("Permission denied"), "{}", refused.detail());
    let status = manager.until_state("failed");
    assert_eq!(status["reason"]["code"], "spawn_failed");
    mode(0o755);
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
}

#[test]
fn a_drain_is_unready_at_once_and_alive() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let engine = manager.engine();
    assert_eq!((manager.get("/readyz").code, manager.get("/livez").code), (200, 200));
    let stopping = manager.post("/es/stop", r#"{"drain":"300s"}"#);
    assert_eq!((stopping.code, &stopping.body["state"]), (202, &"stopping".into()));
    assert_eq!(stopping.body["reason"]["code"], "draining");
    assert_eq!((manager.get("/readyz").code, manager.get("/livez").code), (503, 200));
    assert!(is_alive(engine), "no signal was sent yet");
    let stopped = manager.post("/es/stop?wait=20s", r#"{"drain":"0s"}"#);
    assert_eq!(stopped.code, 200, "a repeated stop cuts the drain short: {stopped:?}");
    assert_eq!((manager.get("/readyz").code, manager.get("/livez").code), (503, 200));
}

#[test] // proves ACCESS-23
fn each_status_is_what_the_schema_says() {
    let pod = Pod::new();
    pod.write("config/a.yml", "a: 1\n");
    let config = pod.path("config").display().to_string();
    let manager = pod.start_obedient(&["--config", &config, "--on-exit", "hold"]);
    let is_right = |status: &Value| {
        assert_eq!(faults_of(status), Vec::<String>::new(), "{status:#}");
    };
    is_right(&manager.until_state("running"));
    pod.write("config/a.yml", "a: 2\n");
    is_right(&manager.until("drift", |status| status["config"]["drift"] == true));
    pod.exit(3);
    is_right(&manager.until("its end", |status| status["last_exit"]["code"] == 3));
    let start = manager.post("/es/start?wait=20s", r#"{"sequence":1}"#);
    assert_eq!(start.code, 200, "{:#}", start.body);
    is_right(&start.body);
    let stop = r#"{"sequence":2,"resumeAfter":"10m"}"#;
    let stopped = manager.post("/es/stop?wait=20s", stop).body;
    assert_eq!(stopped["state"], "stopped", "{stopped:#}");
    is_right(&stopped);
}
