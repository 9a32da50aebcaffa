//! A process of the engine that KILL cannot end: it waits in the kernel (D) for a disk that does
//! not answer.

use std::fs;

use serde_json::{Value, json};

use crate::support::engine::work_directory;
use crate::support::manager::Launch;
use crate::support::mounts::FrozenDisk;
use crate::support::namespace::cannot_isolate;
use crate::support::programs::write_program;
use crate::support::skip;
use crate::support::wait::eventually;

#[test] // proves STOP-6
fn out_of_reach_of_kill_until_the_disk_is_gone() {
    let work = work_directory(&["backing", "disk"]);
    fs::write(work.path().join("backing/hang"), "x").expect("a file");
    let mounted = match cannot_isolate() {
        Some(why) => Err(why),
        None => FrozenDisk::mount(&work.path().join("backing"), &work.path().join("disk")),
    };
    let disk = match mounted {
        Ok(disk) => disk,
        Err(why) => return skip("stuck::out_of_reach_of_kill_until_the_disk_is_gone", &why),
    };
    let engine = ["sh", "-c", "cat disk/hang & exec sleep infinity"];
    let manager =
        Launch::new(work.path(), engine).options(["--tree-grace", "200ms"]).never_ready().start();
    manager.api.until_state("starting");
    eventually("the disk hangs", || disk.is_frozen().then_some(()));
    eventually("the shell is another program", || {
        let others = manager.others();
        (others.iter().filter(|one| one.command.contains("cat")).count() == 1).then_some(())
    });
    let blocked = manager.find("cat").pid;

    // The stop: the engine ends, this process does not.
    let problem = manager.api.post("/es/stop?wait=60s", &json!({})).expect_problem(409, "stuck");
    let named = |status: &Value| {
        let message = status["reason"]["message"].as_str().expect("a sentence").to_owned();
        assert!(message.contains(&blocked.to_string()), "{message}");
    };
    let status = manager.api.status();
    assert_eq!((&status["state"], &status["desired"]), (&json!("stuck"), &json!("stopped")));
    named(&status);
    assert!(problem["detail"].is_string());
    assert_eq!(manager.find("cat").state, 'D');

    // No other engine is started meanwhile.
    manager.api.post("/es/start", &json!({})).expect_problem(409, "stuck");
    assert_eq!(manager.api.get("/livez").status, 200);
    assert_eq!(manager.others().len(), 1, "{:#?}", manager.others());

    // The disk answers with errors: the stop is done, and a start is possible.
    drop(disk);
    let status = manager.api.until_state("stopped");
    assert_eq!(status["last_exit"]["stragglers"][0]["pid"], blocked);
    manager.assert_alone();
    manager.api.post("/es/start", &json!({})).expect(202);
    manager.api.until_state("starting");
}

/// The engine's program itself is on that disk.
#[test] // proves STOP-11
fn a_program_on_a_dead_disk_stops_nothing_but_itself() {
    let work = work_directory(&["backing", "disk"]);
    let program = work.path().join("backing/hang");
    write_program(&program, b"#!/bin/sh\nexec sleep infinity\n");
    let mounted = match cannot_isolate() {
        Some(why) => Err(why),
        None => FrozenDisk::mount(&work.path().join("backing"), &work.path().join("disk")),
    };
    let disk = match mounted {
        Ok(disk) => disk,
        Err(why) => return skip("stuck::a_program_on_a_dead_disk_stops_nothing_but_itself", &why),
    };
    let engine = [work.path().join("disk/hang")];
    let options = ["--tree-grace", "200ms", "--on-exit", "hold"];
    let manager = Launch::new(work.path(), engine).options(options).never_ready().start();
    manager.api.until_state("starting");
    eventually("the disk hangs", || disk.is_frozen().then_some(()));
    assert_eq!(manager.api.get("/livez").status, 200);

    // It has not even executed. Whether KILL ends its wait depends on the kernel.
    let stop = json!({ "grace": "100ms" });
    let answer = manager.api.post("/es/stop?wait=60s", &stop);
    assert!(matches!(answer.status, 200 | 409), "{:#}", answer.body);
    let state = if answer.status == 200 { "stopped" } else { "stuck" };
    let status = manager.api.status();
    assert_eq!((&status["state"], &status["desired"]), (&json!(state), &json!("stopped")));
    assert_eq!(manager.api.get("/livez").status, 200);

    // The disk is gone, and the process with it. A start says what is wrong.
    drop(disk);
    manager.api.until_state("stopped");
    manager.assert_alone();
    // A child that is late on a busy machine has been started, and fails then.
    let answer = manager.api.post("/es/start?wait=60s", &json!({}));
    let code = answer.body["code"].as_str().unwrap_or_default();
    assert!(answer.status == 503 && ["spawn_failed", "start_failed"].contains(&code), "{answer:?}");
}
