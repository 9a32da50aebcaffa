//! On older kernels and under strict seccomp profiles nothing but what `docs/system-calls.md` says
//! is lost.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;

use super::pod::Pod;
use super::processes::{descendants, eventually, is_alive};
use crate::support::program::stayput;
use crate::support::programs::program;

/// What a case may lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Nothing,
    /// A hung disk of the journal can delay a start; one warning says so.
    OwnDescriptors,
    /// Links in a config directory that are not the kubelet's.
    Links,
}
use Lost::{Links, Nothing, OwnDescriptors};

/// A part of what is logged when threads cannot have open files of their own.
const WARNING: &str = "open in all threads";

#[test] // proves HOST-3
fn each_newer_call_can_be_absent_or_forbidden() {
    for call in [
        "close_range",
        "copy_file_range",
        "getrandom",
        "openat2",
        "pidfd_open",
        "pidfd_send_signal",
        "rseq",
        "statx",
        "unshare",
    ] {
        let lost = if call == "openat2" { Links } else { Nothing };
        for errno in ["ENOSYS", "EPERM"] {
            lives_a_whole_life(&format!("{call}={errno}"), lost);
        }
    }
    lives_a_whole_life("clone3=ENOSYS", Nothing);
}

#[test] // proves HOST-3
fn on_linux_4_18_under_the_default_profile_of_runtimes() {
    lives_a_whole_life("newer=ENOSYS,unshare=EPERM", OwnDescriptors);
}

#[test] // proves HOST-3
fn under_a_profile_that_forbids_what_it_does_not_know() {
    lives_a_whole_life("newer=EPERM,statx=EPERM,unshare=EPERM,clone3=ENOSYS", OwnDescriptors);
}

#[test] // proves HOST-3
fn the_warning_is_given_once() {
    let pod = Pod::new();
    let manager = pod.spawn(&mut under(
        "close_range=ENOSYS,unshare=EPERM",
        &pod.command::<&str>(&[], &["sleep", "600"]),
    ));
    manager.until_state("running");
    for _ in 0..3 {
        assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
        assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    }
    manager.until_logged_times(WARNING, 1);
}

#[test] // proves HOST-3
fn where_threads_cannot_be_made_it_says_why() {
    let pod = Pod::new();
    let mut manager =
        pod.spawn(&mut under("clone3=EPERM", &pod.command::<&str>(&[], &["sleep", "600"])));
    assert_eq!(manager.ended(), 69);
    manager.until_logged("the seccomp profile forbids clone3");
}

/// The same command where these calls are refused.
fn under(refused: &str, plain: &Command) -> Command {
    let mut command = Command::new(program("standin-kernel"));
    command.arg(refused).arg(plain.get_program()).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(directory) = plain.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

/// Boot, a config change, stop, start, TERM.
fn lives_a_whole_life(refused: &str, lost: Lost) {
    let pod = Pod::new();
    pod.write("config/elasticsearch.yml", "a: 1\n");
    if lost == Nothing {
        std::os::unix::fs::symlink("elasticsearch.yml", pod.path("config/link.yml")).unwrap();
    }
    let (config, staged) = (pod.path("config"), pod.path("staged"));
    let stage = format!("{}={}", config.display(), staged.display());
    let options = ["--config", config.to_str().unwrap(), "--stage", &stage, "--keep-last-good"];
    let options = [&options[..], &["--grace", "100ms", "--tree-grace", "100ms"]].concat();
    let script = "trap '' TERM; setsid sleep 600 & touch deaf; while :; do sleep 600; done";
    let plain = pod.command(&options, &["sh", "-c", script]);
    let mut manager = pod.spawn(&mut under(refused, &plain));

    let status = manager.until_state("running");
    eventually("an engine that ignores TERM", || pod.path("deaf").exists().then_some(()));
    assert_eq!(status["config"]["drift"], false, "{refused}: {status:#}");
    assert_eq!(status["config"]["errors"], serde_json::json!([]), "{refused}: {status:#}");
    pod.write("config/elasticsearch.yml", "a: 2\n");
    manager.until("drift", |status| status["config"]["drift"] == true);

    let engine = descendants(manager.pid());
    let stopped = manager.post("/es/stop?wait=20s", "{}");
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()), "{refused}");
    assert_eq!(stopped.body["manager"]["durable"], true, "{refused}");
    assert!(!engine.iter().any(|&pid| is_alive(pid)), "{refused}: some of it live on");
    let journal = fs::read_to_string(pod.journal()).unwrap();
    assert!(journal.contains(r#""desired":"stopped""#), "{refused}: {journal}");

    fs::remove_file(pod.path("deaf")).unwrap();
    let started = manager.post("/es/start?wait=20s", "{}");
    assert_eq!((started.code, &started.body["config"]["drift"]), (200, &false.into()), "{refused}");
    assert_eq!(pod.read("staged/elasticsearch.yml"), "a: 2\n", "{refused}");
    eventually("an engine that ignores TERM", || pod.path("deaf").exists().then_some(()));
    manager.signal(Signal::SIGTERM);
    manager.until_state("stopping");
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.ended(), 137, "{refused}");
    manager.until_logged_times(WARNING, usize::from(lost == OwnDescriptors));

    let installed = pod.path("tmp");
    let ended = under(refused, stayput(["install"]).arg(&installed)).output().unwrap();
    assert!(ended.status.success(), "{refused}: {ended:?}");
    let copy = fs::metadata(installed.join("stayput")).unwrap();
    assert_eq!(copy.len(), fs::metadata(plain.get_program()).unwrap().len(), "{refused}");
}
