//! A state directory that cannot be written: stops are refused, because they could not be kept;
//! everything else continues.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::engine::work_directory;
use crate::support::manager::{Launch, Manager};
use crate::support::mounts::{FrozenDisk, SmallDisk};
use crate::support::namespace::cannot_isolate;
use crate::support::skip;
use crate::support::wait::eventually;

const ENGINE: [&str; 2] = ["sleep", "infinity"];

fn launch(work: &Path) -> Launch {
    Launch::new(work, ENGINE).options(["--on-exit", "hold"]).never_ready()
}

/// What must be true however the disk fails; `fail` makes it fail and `mend` repairs it. Its files are in `content`.
fn serves_without_a_journal(
    manager: &Manager,
    content: &Path,
    fail: impl FnOnce(),
    mend: impl FnOnce(),
) {
    let api = &manager.api;
    let status = api.status_when("started and written down", |status| {
        status["state"] == "starting" && status["manager"]["durable"] == true
    });
    let cursor = status["cursor"].as_str().expect("a cursor");
    eventually("nothing is left to write", || {
        let journal = fs::read_to_string(content.join("journal.json"));
        journal.is_ok_and(|journal| journal.contains("\"run\":{")).then_some(())
    });
    fail();

    // A stop is refused, and until then all other requests are answered.
    let stopping = {
        let api = api.clone();
        thread::spawn(move || api.post("/es/stop?wait=30s", &json!({})))
    };
    loop {
        assert_eq!(api.get("/livez").status, 200);
        assert_eq!(api.status()["run"]["id"], status["run"]["id"]);
        if stopping.is_finished() {
            break;
        }
        api.get(&format!("/es/status?after={cursor}&timeout=20ms"));
    }
    let problem = stopping.join().expect("an answer").expect_problem(503, "journal_unavailable");
    assert!(problem["detail"].as_str().is_some_and(|text| text.len() > 20), "{problem:#}");
    assert_eq!(api.status()["desired"], "running");

    // A start is carried out, with the warning that it may be forgotten.
    manager.find(ENGINE[0]).signal(Signal::SIGKILL);
    api.until_state("failed");
    let answer = api.post("/es/start", &json!({}));
    assert!(matches!(answer.status, 200 | 202), "{}: {:#}", answer.status, answer.body);
    let started = api.status_when("another run", |now| {
        !matches!(&now["run"]["id"], Value::Null) && now["run"]["id"] != status["run"]["id"]
    });
    assert_eq!(started["manager"]["durable"], false, "{started:#}");
    assert_eq!(api.get("/livez").status, 200);

    mend();
    let status = api.stop();
    assert_eq!(status["manager"]["durable"], true);
    manager.assert_alone();
}

#[test] // proves JOURNAL-16
fn full() {
    let name = "state_dir::full";
    let work = work_directory(&[]);
    match prepare(&work.path().join("state")) {
        Err(why) => skip(name, &why),
        Ok(disk) => {
            let manager = launch(work.path()).start();
            let filler = std::cell::OnceCell::new();
            serves_without_a_journal(
                &manager,
                &work.path().join("state"),
                || filler.set(disk.fill()).expect("once"),
                || fs::remove_file(filler.get().expect("it was filled")).expect("a file"),
            );
        }
    }
}

#[test] // proves JOURNAL-16
fn read_only() {
    let name = "state_dir::read_only";
    let work = work_directory(&[]);
    match prepare(&work.path().join("state")) {
        Err(why) => skip(name, &why),
        Ok(disk) => {
            let manager = launch(work.path()).start();
            let (fail, mend) = (|| disk.set_writable(false), || disk.set_writable(true));
            serves_without_a_journal(&manager, &work.path().join("state"), fail, mend);
        }
    }
}

#[test] // proves JOURNAL-16
fn hung() {
    let work = work_directory(&["backing"]);
    match freezable(&work) {
        Err(why) => skip("state_dir::hung", &why),
        Ok(disk) => {
            let manager = launch(work.path()).start();
            // Freed before the manager is waited for, also when this fails.
            let disk = disk;
            let fail = || disk.signal(Signal::SIGSTOP);
            let mend = || {
                disk.signal(Signal::SIGCONT);
                manager
                    .api
                    .status_when("all written down", |now| now["manager"]["durable"] == true);
            };
            serves_without_a_journal(&manager, &work.path().join("backing"), fail, mend);
        }
    }
}

/// The engine comes back on the mounted config, although that cannot be kept beside the journal.
#[test] // proves JOURNAL-16
fn hung_where_the_config_is_pinned() {
    let work = work_directory(&["backing", "config", "staged"]);
    match freezable(&work) {
        Err(why) => skip("state_dir::hung_where_the_config_is_pinned", &why),
        Ok(disk) => {
            let path = |name: &str| work.path().join(name).display().to_string();
            fs::write(path("config/x.yml"), "a: 1\n").expect("a file");
            let stage = format!("{}={}", path("config"), path("staged"));
            let options = ["--config", &path("config"), "--stage", &stage];
            let kept = ["--keep-last-good", "--pin-config", "--ready", "http://127.0.0.1:1/"];
            let launch = Launch::new(work.path(), ENGINE).options(options).options(kept);
            let manager = launch.on_exit("restart").start();
            // Freed before the manager is waited for, also when this fails.
            let disk = disk;
            let mut status = manager.api.status_when("started and written down", |status| {
                status["state"] == "starting" && status["manager"]["durable"] == true
            });
            disk.signal(Signal::SIGSTOP);
            // The first one is to be pinned when it has started, which hangs.
            for _ in 0..2 {
                let before = status["run"]["id"].clone();
                manager.find(ENGINE[0]).signal(Signal::SIGKILL);
                status = manager.api.status_when("another run", |now| {
                    now["state"] == "starting" && now["run"]["id"] != before
                });
                assert!(status["run"]["checksum"].is_string(), "{status:#}");
            }
            disk.signal(Signal::SIGCONT);
            manager.api.status_when("all written down", |now| now["manager"]["durable"] == true);
            manager.api.stop();
            manager.assert_alone();
        }
    }
}

/// After the start of a node all of its disks are slow.
#[test] // proves JOURNAL-15
fn hung_at_the_start() {
    let work = work_directory(&["backing"]);
    match freezable(&work) {
        Err(why) => skip("state_dir::hung_at_the_start", &why),
        Ok(disk) => {
            let manager = launch(work.path()).start();
            let started = manager.api.post("/es/start", &json!({ "sequence": 41 }));
            assert!(matches!(started.status, 200 | 202), "{}", started.body);
            manager.api.status_when("written down", |now| now["manager"]["durable"] == true);
            manager.kill();

            disk.signal(Signal::SIGSTOP);
            let manager = launch(work.path()).start();
            // Freed before the manager is waited for, also when this fails.
            let disk = disk;
            let status = manager.api.until_state("failed");
            assert_eq!(status["reason"]["code"], "journal_unreadable", "{status:#}");
            for path in ["/es/start", "/es/stop"] {
                let answer = manager.api.post(path, &json!({ "sequence": 3 }));
                answer.expect_problem(503, "journal_unavailable");
            }
            disk.signal(Signal::SIGCONT);
            let status = manager.api.until_state("starting");
            assert_eq!(status["sequence"], 41, "{status:#}");
            let late = manager.api.post("/es/stop", &json!({ "sequence": 40 }));
            late.expect_problem(409, "stale_sequence");
            manager.api.stop();
            manager.assert_alone();
        }
    }
}

/// The pod is deleted while its container is made: the manager still looks at the paths of its settings.
#[test] // proves STOP-34
fn hung_before_there_is_an_engine() {
    let work = work_directory(&["backing", "backing/tmp"]);
    match freezable(&work) {
        Err(why) => skip("state_dir::hung_before_there_is_an_engine", &why),
        Ok(disk) => {
            let temp_dir = work.path().join("state/tmp").display().to_string();
            let launch = launch(work.path()).options(["--tmp-dir", &temp_dir]);
            disk.signal(Signal::SIGSTOP);
            let mut manager = launch.spawn();
            // Freed before the manager is waited for, also when this fails.
            let disk = disk;
            eventually("it looks", || manager.has_thread("paths").then_some(()));
            manager.signal(Signal::SIGTERM);
            disk.signal(Signal::SIGCONT);
            assert!(matches!(manager.wait(), 0 | 143), "{}", manager.log());
        }
    }
}

/// As disks usually fail: while something is written, with a file open. Neither the engine's start
/// nor anything else may have to wait for that file.
#[test]
fn hung_in_the_middle_of_a_write() {
    let work = work_directory(&["backing"]);
    match freezable(&work) {
        Err(why) => skip("state_dir::hung_in_the_middle_of_a_write", &why),
        Ok(disk) => {
            let freeze = work.path().join("backing.freeze");
            let running = launch(work.path()).start();
            // The disk is freed before the manager is waited for, also when this fails.
            let (manager, disk) = (&running, disk);
            let fail = || fs::write(&freeze, "").expect("a file");
            let mend = || {
                assert!(disk.is_frozen());
                fs::remove_file(&freeze).expect("a file");
                disk.signal(Signal::SIGCONT);
                manager
                    .api
                    .status_when("all written down", |now| now["manager"]["durable"] == true);
            };
            serves_without_a_journal(manager, &work.path().join("backing"), fail, mend);
        }
    }
}

/// A manager whose disk hangs still ends at SIGTERM, and in time. The disk hangs at the access of
/// another process: it has taken nothing of the manager. What it has taken and not answered,
/// neither KILL nor the end of the container can end, whoever wrote it.
#[test] // proves JOURNAL-8, JOURNAL-16
fn hung_at_the_end() {
    let work = work_directory(&["backing"]);
    fs::write(work.path().join("backing/hang"), "x").expect("a file");
    match freezable(&work) {
        Err(why) => skip("state_dir::hung_at_the_end", &why),
        Ok(disk) => {
            // On the same disk, as in the images.
            let socket = work.path().join("state/s.sock");
            let mut manager = launch(work.path()).socket(&socket).start();
            manager.api.status_when("all written down", |now| {
                now["state"] == "starting" && now["manager"]["durable"] == true
            });
            // Freed before the manager is waited for, also when this fails.
            let disk = disk;
            let mut visitor = disk.hang_at(Path::new("hang"));
            let began = Instant::now();
            manager.signal(Signal::SIGTERM);
            assert_eq!(manager.wait(), 143);
            // The journal is waited for six seconds, and the socket not at all; the disk would hang for ever.
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
            drop(disk);
            visitor.wait().expect("the visitor is ours");
        }
    }
}

fn prepare(state: &Path) -> Result<SmallDisk, String> {
    cannot_isolate().map_or(Ok(()), Err)?;
    SmallDisk::mount(state)
}

fn freezable(work: &tempfile::TempDir) -> Result<FrozenDisk, String> {
    cannot_isolate().map_or(Ok(()), Err)?;
    FrozenDisk::mount(&work.path().join("backing"), &work.path().join("state"))
}
