//! The static binary as PID 1 of a real PID namespace, and on a root with no other file.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::api::Api;
use crate::support::engine::work_directory;
use crate::support::manager::Launch;
use crate::support::namespace::cannot_isolate;
use crate::support::programs::children;
use crate::support::skip;
use crate::support::wait::eventually;

/// The static binary; without it the test is skipped with the reason.
fn static_binary(name: &str) -> Option<String> {
    let found = match (std::env::var("STAYPUT_STATIC_BIN"), cannot_isolate()) {
        (Ok(path), None) => Ok(path),
        (_, Some(why)) => Err(why),
        (Err(_), None) => Err("no STAYPUT_STATIC_BIN: ./test --all builds it".to_owned()),
    };
    found.map_err(|why| skip(&format!("namespace::{name}"), &why)).ok()
}

/// Only an init: no API, no state.
fn bare(binary: &str, work: &Path, script: &str) -> Launch {
    let launch = Launch::new(work, ["sh", "-c", script]);
    Launch { program: binary.into(), options: vec![], ..launch }
}

#[test] // proves HOST-2
fn exit_codes_are_the_engines() {
    let Some(binary) = static_binary("exit_codes_are_the_engines") else { return };
    let work = work_directory(&[]);
    let cases = [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -KILL $$", 137)];
    for (script, code) in cases {
        assert_eq!(bare(&binary, work.path(), script).spawn().wait(), code, "{script}");
    }
    for (command, code) in [("/no/such/command", 127), ("/etc/passwd", 126)] {
        let launch = Launch { command: vec![command.into()], ..bare(&binary, work.path(), "") };
        assert_eq!(launch.spawn().wait(), code, "{command}");
    }
}

#[test] // proves STOP-27
fn term_ends_warm_as_pid_1() {
    let Some(binary) = static_binary("term_ends_warm_as_pid_1") else { return };
    let work = work_directory(&[]);
    let at = |name: &str| work.path().join(name).to_str().expect("UTF-8").to_owned();
    let (archive, options) = (at("warm.jsa"), at("warm.options"));
    let options = ["--java-home", "/nonexistent", "--archive", &archive, "--options", &options]
        .map(str::to_owned)
        .into();
    let engine = "trap '' TERM; : > up; while :; do sleep 1000; done";
    let launch = bare(&binary, work.path(), engine);
    let mut warming = Launch { subcommand: "warm", options, ..launch }.spawn();
    eventually("the engine runs", || work.path().join("up").exists().then_some(()));
    let began = Instant::now();
    warming.signal(Signal::SIGTERM);
    assert_eq!(warming.wait(), 143);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test] // proves HOST-2
fn orphans_are_reaped() {
    let Some(binary) = static_binary("orphans_are_reaped") else { return };
    let work = work_directory(&[]);
    // Each inner shell ends at once and leaves a child, which only PID 1 can reap.
    let script = "i=0; while [ $i -lt 300 ]; do sh -c 'true & true &'; i=$((i+1)); done; \
                  : > done; exec sleep infinity";
    let manager = bare(&binary, work.path(), script).spawn();
    eventually("all orphans were made", || work.path().join("done").exists().then_some(()));
    eventually("no zombie and no orphan is left", || {
        let others = manager.others();
        (others.len() == 1 && others[0].command.contains("sleep")).then_some(())
    });
}

#[test]
fn term_from_outside_is_passed_on_and_a_second_one_shortens() {
    let name = "term_from_outside_is_passed_on_and_a_second_one_shortens";
    let Some(binary) = static_binary(name) else { return };
    let work = work_directory(&[]);
    let up = || {
        eventually("the engine has set its trap", || {
            let up = work.path().join("up");
            up.exists().then(|| fs::remove_file(&up).expect("a file"))
        });
    };

    let polite = "trap 'exit 5' TERM; : > up; while :; do sleep 1000 & wait; done";
    let mut manager = bare(&binary, work.path(), polite).spawn();
    up();
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 5);

    let deaf = "trap ': > heard' TERM; : > up; while :; do sleep 1000 & wait; done";
    let deaf = bare(&binary, work.path(), deaf).options(["--tree-grace", "100ms"]);
    let mut manager = deaf.spawn();
    up();
    manager.signal(Signal::SIGTERM);
    eventually("the engine heard it", || work.path().join("heard").exists().then_some(()));
    // Well above the tree grace.
    thread::sleep(Duration::from_secs(1));
    assert!(manager.init().is_some(), "only the kubelet ends the first wait");
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 137);
}

#[test]
fn stopped_and_started_many_times() {
    let Some(binary) = static_binary("stopped_and_started_many_times") else { return };
    let work = work_directory(&[]);
    let launch = Launch::new(work.path(), ["sh", "-c", "sleep 1001 & exec sleep 1000"]);
    let manager = Launch { program: binary.into(), ..launch }.never_ready().start();
    manager.api.until_state("starting");
    for cycle in 1..=20 {
        let status = manager.api.stop();
        assert_eq!(status["last_exit"]["reason"], "stopped", "cycle {cycle}: {status:#}");
        manager.assert_alone();
        let status = manager.api.post("/es/start", &json!({})).expect(202);
        assert_eq!(status["starts"], cycle + 1);
    }
}

#[test] // proves STOP-5
fn a_helper_without_environment_is_the_engines_and_a_visitors_daemon_is_not() {
    let name = "a_helper_without_environment_is_the_engines_and_a_visitors_daemon_is_not";
    let Some(binary) = static_binary(name) else { return };
    let work = work_directory(&[]);
    // Its parent ends at once, so that no scan ever sees it below the engine.
    let script = "(setsid env -i sleep 1002 &); : > made; exec sleep 1000";
    let launch = Launch::new(work.path(), ["sh", "-c", script]);
    let manager = Launch { program: binary.into(), ..launch }.start();
    let init = manager.init().and_then(|init| u32::try_from(init).ok()).expect("the manager runs");
    let children = |count| {
        let children = || (children(init).len() == count).then_some(());
        eventually("the manager has adopted them", children);
    };
    children(2);
    let daemon = manager.visitors_daemon();
    children(3);

    let status = manager.api.stop();
    let left: Vec<i32> = manager.others().iter().map(|one| one.pid).collect();
    assert_eq!(left, [daemon.pid], "{status:#}");
    let exit = &status["last_exit"];
    assert_eq!(exit["strangers"].as_array().map(Vec::len), Some(1), "{exit:#}");
}

/// As a kubelet from 1.28 on does when memory runs out (`memory.oom.group`).
#[test] // proves JOURNAL-6
fn killed_as_a_whole_again_and_again() {
    if let Some(why) = cannot_isolate() {
        return skip("namespace::killed_as_a_whole_again_and_again", &why);
    }
    let work = work_directory(&[]);
    let launch = Launch::new(work.path(), ["sh", "-c", "sleep 1001 & exec sleep 1000"]);
    let launch = launch.never_ready();
    let mut manager = launch.start();
    manager.api.until_state("starting");
    assert_eq!(manager.api.stop()["last_exit"]["reason"], "stopped");
    let status = manager.api.post("/es/start", &json!({})).expect(202);
    let mut run = status["run"]["id"].clone();
    for kills in 1..=3 {
        let journal = work.path().join("state/journal.json");
        eventually("the run is in the journal", || {
            let journal: serde_json::Value =
                serde_json::from_slice(&fs::read(&journal).ok()?).ok()?;
            (journal["run"]["id"] == run).then_some(())
        });
        manager.kill();
        manager = launch.start();
        let state = if kills < 3 { "starting" } else { "failed" };
        let status = manager.api.until_state(state);
        let exit = &status["last_exit"];
        assert_eq!((&exit["run"], &exit["reason"]), (&run, &json!("ended_with_manager")));
        assert_eq!((&exit["code"], &exit["signal"]), (&json!(null), &json!(null)), "{exit}");
        run = status["run"]["id"].clone();
    }
    let status = manager.api.until_state("failed");
    assert_eq!(status["reason"]["code"], "ended_with_manager", "{status:#}");
    manager.assert_alone();
}

/// A root with one file in it, read-only; a small disk for the state. As uid 1000, without a way to
/// get more privileges.
const EMPTY_ROOT: &str = r#"
set -e
root=$1 binary=$2
mkdir -p "$root/proc" "$root/state"
install -m 755 "$binary" "$root/stayput"
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o size=1m,uid=1000,gid=1000,mode=0700 state "$root/state"
mount -o remount,ro,bind "$root"
cd "$root"
shift 3
exec setpriv --no-new-privs chroot --userspec=1000:1000 --groups= "$root" \
    /stayput "$@"
"#;

#[test] // proves HOST-2
fn on_an_empty_read_only_root() {
    let Some(binary) = static_binary("on_an_empty_read_only_root") else { return };
    let work = work_directory(&["root"]);
    let root = work.path().join("root");
    let wrapper = ["sh", "-c", EMPTY_ROOT, "sh"];
    let mut wrapper: Vec<String> = wrapper.map(str::to_owned).into();
    wrapper.extend([root.to_str().expect("UTF-8").to_owned(), binary.clone()]);
    // There is no other program to execute, so the engine is a client of its own manager.
    let engine = ["/stayput", "status", "--watch", "--socket", "/state/s.sock"];
    let options = ["--state-dir", "/state", "--socket", "/state/s.sock", "--on-exit", "hold"];
    let launch = Launch {
        program: binary.into(),
        wrapper,
        options: options.map(str::to_owned).into(),
        ..Launch::new(work.path(), engine)
    };
    let manager = launch.never_ready().spawn();
    let inside = eventually("the manager answers", || {
        let inside = format!("/proc/{}/root", manager.init()?);
        Api { socket: format!("{inside}/state/s.sock").into() }.is_up().then_some(inside)
    });
    let api = Api { socket: format!("{inside}/state/s.sock").into() };
    let refused = fs::write(format!("{inside}/new"), "").expect_err("the root is read-only");
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
    let status = fs::read_to_string(format!("{inside}/proc/1/status")).expect("/proc in there");
    for line in ["Uid:\t1000\t1000", "NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
        assert!(status.contains(line), "{status}");
    }

    for _ in 0..3 {
        api.until_state("starting");
        let status = api.stop();
        assert_eq!(status["last_exit"]["reason"], "stopped");
        assert_eq!(status["manager"]["durable"], true);
        manager.assert_alone();
        api.post("/es/start", &json!({})).expect(202);
    }
}
