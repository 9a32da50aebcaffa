//! A process of the engine that KILL cannot end: it waits in the kernel (D) for a disk that does
//! not answer.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::engine::work_directory;
use crate::support::manager::{Launch, cannot_isolate};
use crate::support::mounts::FrozenDisk;
use crate::support::skip::skip;
use crate::support::wait::eventually;

#[test]
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
    let manager = Launch::new(work.path(), engine).options(["--tree-grace", "200ms"]).start();
    manager.api.until_state("starting");
    eventually("the disk hangs", || disk.is_frozen().then_some(()));
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
#[test]
fn a_program_on_a_dead_disk_stops_nothing_but_itself() {
    let work = work_directory(&["backing", "disk"]);
    let program = work.path().join("backing/hang");
    fs::write(&program, "#!/bin/sh\nexec sleep infinity\n").expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
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
    let manager = Launch::new(work.path(), engine).options(options).start();
    manager.api.until_state("starting");
    assert!(disk.is_frozen());
    assert_eq!(manager.api.get("/livez").status, 200);

    // It has not even executed, and waits in the kernel: KILL does not end it.
    let stop = json!({ "grace": "100ms" });
    manager.api.post("/es/stop?wait=60s", &stop).expect_problem(409, "stuck");
    let status = manager.api.status();
    assert_eq!((&status["state"], &status["desired"]), (&json!("stuck"), &json!("stopped")));
    assert_eq!(manager.others().len(), 1, "{:#?}", manager.others());
    assert_eq!(manager.others()[0].state, 'D');
    manager.api.post("/es/start", &json!({})).expect_problem(409, "stuck");
    assert_eq!(manager.api.get("/livez").status, 200);

    // The disk is gone: so is the process, and the next start says what is wrong.
    drop(disk);
    manager.api.until_state("stopped");
    manager.assert_alone();
    manager.api.post("/es/start", &json!({})).expect_problem(503, "spawn_failed");
}

/// Maps a page of its own arguments from the disk. Then who reads its arguments waits for the disk,
/// while it sleeps as any other process does.
const HIDES_ARGUMENTS: &str = r#"
import ctypes, os, time
fields = open("/proc/self/stat").read().rsplit(") ", 1)[1].split()
page = (int(fields[45]) + 4095) & ~4095
file = os.open("disk/hang", os.O_RDONLY)
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
assert mmap(page, 4096, 1, 0x12, file, 0) == page
os.close(os.open("mapped", os.O_CREAT))
time.sleep(1e6)
"#;

#[test]
fn arguments_that_cannot_be_read_delay_no_stop() {
    let work = work_directory(&["backing", "disk"]);
    fs::write(work.path().join("backing/hang"), "x").expect("a file");
    let mounted = match cannot_isolate() {
        Some(why) => Err(why),
        None => FrozenDisk::mount(&work.path().join("backing"), &work.path().join("disk")),
    };
    let disk = match mounted {
        Ok(disk) => disk,
        Err(why) => return skip("stuck::arguments_that_cannot_be_read_delay_no_stop", &why),
    };
    let long = "x".repeat(16 * 1024);
    let engine = ["python3", "-c", HIDES_ARGUMENTS, &long];
    let running = Launch::new(work.path(), engine).options(["--on-exit", "hold"]).start();
    // The disk is freed before the manager is waited for, also when this fails.
    let (manager, disk) = (&running, disk);
    let mapped = work.path().join("mapped");
    eventually("its arguments are on the disk", || mapped.exists().then_some(()));
    assert_eq!(manager.api.stop()["last_exit"]["reason"], "stopped");
    assert!(disk.is_frozen(), "nothing has read the arguments");
    assert_eq!(manager.api.get("/livez").status, 200);
    manager.assert_alone();
}
