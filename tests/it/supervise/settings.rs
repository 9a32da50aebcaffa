//! Settings that cannot work are refused at once, with the problem and the remedy.

use std::fs;
use std::net::TcpListener;

use super::pod::Pod;
use super::processes::eventually;
use crate::support::program::{Ended, finish, stayput};

fn fails(args: &[&str]) -> Ended {
    finish(&mut stayput([&["run"], args].concat()))
}

#[test]
fn all_bad_settings_are_told_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let mut command = stayput(["run", "--grace", "soon", "--stop-signal=KILL", "--socket"]);
    command.arg(&socket).args(["--on-exit", "maybe", "--listen", "nowhere", "--tls-cert", ""]);
    let ended = finish(command.env("STAYPUT_DRAIN", "often").args(["--", "true"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (64, ""));
    for word in [
        "--grace",
        "--stop-signal",
        "--on-exit",
        "--listen",
        "--tls-cert",
        "STAYPUT_DRAIN",
        "--state-dir",
    ] {
        assert!(ended.stderr.contains(word), "{word} is missing in:\n{}", ended.stderr);
    }
    assert!(!socket.exists(), "nothing is bound if a setting is wrong");
}

#[test] // proves ACCESS-22
fn relative_paths_work_and_are_those_of_the_working_directory() {
    let pod = Pod::new();
    pod.write("config/a.yml", "a: 1");
    let mut command = stayput(["run", "--socket", "stayput.sock", "--state-dir", "./state"]);
    command.args(["--config", "config", "--stage", "config/=staged", "--tmp-dir", "tmp"]);
    command.args(["--", "sleep", "1000"]).current_dir(pod.directory());
    let manager = pod.spawn(&mut command);
    let status = manager.until("the engine runs", |status| !status["run"].is_null());
    assert!(status["run"]["checksum"].is_string(), "{status}");
    assert_eq!(pod.read("staged/a.yml"), "a: 1");
    eventually("a journal", || pod.journal().exists().then_some(()));
    let stopped = manager.post("/es/stop?wait=20", r#"{"grace": 10}"#);
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()));
}

#[test]
fn without_a_command_it_is_a_usage_error() {
    let ended = fails(&[]);
    assert_eq!(ended.code, 64);
    assert!(ended.stderr.contains("--"), "{}", ended.stderr);
}

#[test]
fn what_is_taken_or_missing_ends_it_before_the_engine_is_started() {
    let pod = Pod::new();
    let engine = ["--", "touch", "started"];
    // Of a pod that has not run before.
    fs::create_dir(pod.path("own-state")).unwrap();
    let state = pod.path("own-state").display().to_string();
    let run = |options: &[&str]| {
        let mut command = stayput(["run", "--state-dir", &state]);
        finish(command.args(options).args(engine).current_dir(pod.directory()))
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let file = pod.path("a-file").display().to_string();
    pod.write("a-file", "");
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let socket = pod.socket().display().to_string();
    let no_directory = pod.path("none/s").display().to_string();
    for (options, words) in [
        (&["--insecure-no-auth", "--listen", &address][..], &[&*address, "--listen"][..]),
        (&["--socket", &file], &[&*file, "not a socket"]),
        (&["--socket", &socket], &[&*socket, "in use"]),
        (&["--socket", &no_directory], &[&*no_directory, "does not exist"]),
    ] {
        let ended = run(options);
        assert_eq!(ended.code, 69, "{options:?}: {}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{word} is missing in: {}", ended.stderr);
        }
        let listed: Vec<&str> =
            ended.stderr.lines().filter(|line| line.starts_with("stayput: ")).collect();
        assert_eq!(listed.len(), 1, "{}", ended.stderr);
        assert!(!pod.path("started").exists());
    }
    assert_eq!(manager.status()["state"], "running", "the other manager is untouched");
}

#[test]
fn a_certificate_that_does_not_match_its_key_is_refused() {
    let pod = Pod::new();
    let made = |name: &str| {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        pod.write(&format!("{name}.crt"), &certified.cert.pem());
        pod.write(&format!("{name}.key"), &certified.signing_key.serialize_pem());
    };
    made("one");
    made("other");
    pod.write("jwt", &"k".repeat(64));
    let path = |name: &str| pod.path(name).display().to_string();
    let ended = fails(&[
        "--state-dir",
        &path("state"),
        "--listen",
        "127.0.0.1:0",
        "--jwt-key",
        &path("jwt"),
        "--jwt-audience",
        "a",
        "--tls-cert",
        &path("one.crt"),
        "--tls-key",
        &path("other.key"),
        "--",
        "touch",
        &path("started"),
    ]);
    assert_eq!(ended.code, 69, "{}", ended.stderr);
    assert!(ended.stderr.contains("other.key"), "{}", ended.stderr);
    assert!(!fs::exists(pod.path("started")).unwrap());
}
