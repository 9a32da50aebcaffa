//! A journal in the state directory is followed, or the engine is held and the status says why.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::pod::Pod;
use super::processes::eventually;

#[test] // proves REQUEST-3, JOURNAL-4
fn stopped_stays_stopped_and_retries_are_known_after_a_crash() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let stop = r#"{"sequence":41}"#;
    assert_eq!(manager.post("/es/stop?wait=20s", stop).code, 200);
    let journal: Value = serde_json::from_slice(&fs::read(pod.journal()).unwrap()).unwrap();
    assert_eq!(journal["last_exit"]["reason"], "stopped", "on disk before the answer: {journal}");
    manager.crash();

    let manager = pod.start_sleeper();
    let status = manager.until_state("stopped");
    assert_eq!((&status["sequence"], &status["starts"]), (&41.into(), &0.into()));
    assert_eq!(status["last_exit"]["reason"], "stopped");
    // Waits until this boot's own first entry is on disk.
    assert_eq!(manager.post("/es/stop?wait=20s", stop).code, 200, "a retry");
    let reused = manager.post("/es/start", stop);
    assert_eq!((reused.code, reused.problem()), (409, "sequence_reused"));
    let stale = manager.post("/es/start", r#"{"sequence":40}"#);
    assert_eq!((stale.code, stale.problem()), (409, "stale_sequence"));
    assert_eq!(manager.post("/es/start?wait=20s", r#"{"sequence":42}"#).code, 200);
    manager.crash();

    let manager = pod.start_sleeper();
    manager.until_state("running");
    let retry = manager.post("/es/start?wait=20s", r#"{"sequence":42}"#);
    assert_eq!((retry.code, &retry.body["starts"]), (200, &1.into()));
}

#[test] // proves JOURNAL-9
fn a_journal_that_cannot_be_used_is_held_and_said_so() {
    let newer = r#"{"schema":99,"something":"else"}"#;
    let contents: [(&str, &[u8], &str); 6] = [
        ("torn", br#"{"schema":1,"boot_id":"ab"#, "torn"),
        ("empty", b"", "empty"),
        ("foreign", b"#!/bin/sh\necho no journal\n", "no journal of stayput"),
        ("newer", newer.as_bytes(), "schema 99"),
        ("other JSON", b"[1,2,3]", "no journal of stayput"),
        ("a part", br#"{"schema":1}"#, "not a whole journal"),
    ];
    for (what, content, word) in contents {
        let pod = Pod::new();
        fs::write(pod.journal(), content).unwrap();
        let mut manager = pod.start_sleeper();
        let status = manager.until_state("failed");
        assert_eq!(
            (&status["reason"]["code"], &status["starts"]),
            (&"journal_unreadable".into(), &0.into())
        );
        let message = status["reason"]["message"].as_str().unwrap();
        assert!(message.contains(word) && message.contains("journal.json"), "{what}: {message}");
        assert_eq!(manager.get("/livez").code, 200);
        manager.signal(Signal::SIGTERM);
        manager.ended();
        assert_eq!(fs::read(pod.journal()).unwrap(), content, "{what}: it was not changed");

        let manager = pod.start_sleeper();
        manager.until_state("failed");
        // Any sequence may follow: the highest one is not known.
        let started = manager.post("/es/start?wait=20s", r#"{"sequence":5000000}"#);
        assert_eq!(started.code, 200, "{what}: {started:?}");
        let kept = pod.path("state/journal.json.unreadable");
        assert_eq!(fs::read(kept).unwrap(), content, "{what}: kept for the user");
        manager.crash();
        let manager = pod.start_sleeper();
        assert_eq!(manager.until_state("running")["sequence"], 5_000_000);
    }
}

#[test]
fn a_stop_resolves_an_unusable_journal_as_well() {
    let pod = Pod::new();
    fs::write(pod.journal(), "{").unwrap();
    let manager = pod.start_sleeper();
    manager.until_state("failed");
    let stopped = manager.post("/es/stop", "{}");
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()));
    assert_eq!(pod.read("state/journal.json.unreadable"), "{");
    manager.crash();
    pod.start_sleeper().until_state("stopped");
}

#[test] // proves JOURNAL-9
fn the_journal_of_another_pod_is_not_followed() {
    let pod = Pod::new();
    let of = |uid: &str| {
        let mut command = pod.command::<&str>(&[], &["sleep", "600"]);
        command.env("STAYPUT_POD_UID", uid);
        pod.spawn(&mut command)
    };
    let manager = of("0b7e1f0c-7a57-4a86-9d3e-2f0c5a3b8a11");
    manager.until_state("running");
    // Not `durable`: the first start was not requested, so a crash could lose nothing.
    eventually("a journal", || pod.journal().exists().then_some(()));
    manager.crash();
    let manager = of("0b7e1f0c-7a57-4a86-9d3e-2f0c5a3b8a12");
    let status = manager.until_state("failed");
    let message = status["reason"]["message"].as_str().unwrap();
    assert!(message.contains("2f0c5a3b8a11") && message.contains("emptyDir"), "{message}");
}

#[test]
fn a_state_directory_that_cannot_be_written_refuses_stops_and_runs_the_engine() {
    let pod = Pod::new();
    // Root may write everywhere, but a directory in the place of the new file stops root, too.
    fs::create_dir(pod.path("state/journal.json.new")).unwrap();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let refused = manager.post("/es/stop?wait=20s", "{}");
    assert_eq!((refused.code, refused.problem()), (503, "journal_unavailable"));
    assert!(refused.detail().contains("--state-dir"), "{}", refused.detail());
    let status = manager.until_state("running");
    assert_eq!((&status["desired"], &status["starts"]), (&"running".into(), &1.into()));
    assert_eq!((manager.get("/livez").code, manager.get("/readyz").code), (200, 200));
    let started = manager.post("/es/start", "{}");
    assert_eq!((started.code, &started.body["manager"]["durable"]), (200, &false.into()));

    fs::remove_dir(pod.path("state/journal.json.new")).unwrap();
    let stopped = manager.post("/es/stop?wait=20s", "{}");
    assert_eq!(stopped.code, 200, "mended: {stopped:?}");
    assert_eq!(stopped.body["manager"]["durable"], true);
}

#[test]
fn the_journal_is_private() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    assert_eq!(fs::metadata(pod.journal()).unwrap().permissions().mode() & 0o777, 0o600);
}
