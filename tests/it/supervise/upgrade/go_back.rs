//! What another version was executed for and cannot do: the version before goes on.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::super::pod::Pod;
use super::super::processes::{eventually, is_alive};
use super::{install_version, without_settings};

/// What a manager hands over, as it was written first.
const HANDED_OVER: &str = include_str!("../../../../src/manager/supervisor/hand_over/first.json");
/// Makes a child that is the engine, opens what is handed over, and executes the other version with
/// too few descriptors.
const EXECUTE: &str = "sleep 600 & echo $! >engine
    sed \"s/ENGINE/$!/\" state.json >handed.json
    exec 7<handed.json 8<stayput
    ulimit -Sn 10
    exec \"$@\"";

#[test] // proves HOST-7
fn what_stops_both_versions_does_not_end_the_manager() {
    let pod = Pod::new();
    install_version(&pod, "0.1.1");
    fs::rename(pod.path("stayput"), pod.path("stayput.other")).expect("renamed");
    install_version(&pod, "0.1.0");
    let mut state: Value = serde_json::from_str(HANDED_OVER).expect("JSON");
    (state["previous"], state["listener"]) = (json!(8), Value::Null);
    (state["program"], state["seen"]) =
        (json!(pod.path("stayput")), json!({"known": {}, "uids": []}));
    state["lifecycle"]["run"]["pid"] = json!("ENGINE");
    let state = state.to_string().replace("\"ENGINE\"", "ENGINE");
    // Only this version knows it.
    pod.write("state.json", &state.replacen('{', "{\"later\":1,", 1));
    fs::remove_dir(pod.path("state")).expect("removed");

    let plain = pod.command::<&str>(&[], &["sleep", "600"]);
    let mut command = Command::new("sh");
    command.args(["-c", EXECUTE, "sh"]).arg(pod.path("stayput.other")).args(plain.get_args());
    without_settings(&mut command);
    command.env("STAYPUT_HAND_OVER", "7").current_dir(pod.directory());
    let mut manager = pod.spawn(&mut command);
    eventually("the version before cannot start, either", || {
        manager.log().contains("cannot take over yet, the engine runs on").then_some(())
    });
    assert!(!manager.has_ended());
    let engine: u32 = pod.read("engine").trim().parse().expect("a pid");
    assert!(is_alive(engine));

    let pid = manager.pid().to_string();
    let mut raise = Command::new("prlimit");
    raise.args(["--pid", &pid, "--nofile=1024:"]);
    assert!(raise.status().expect("prlimit").success());
    let status = manager.until_state("running");
    let shown = &status["manager"];
    assert_eq!((&shown["version"], &shown["upgraded_from"]), (&json!("0.1.0"), &Value::Null));
    assert_eq!(manager.engine(), engine);
    let errors = shown["errors"].to_string();
    assert!(errors.contains("\"upgrade\"") && errors.contains("could not start"), "{errors}");
    assert_eq!(manager.post("/es/stop", "{}").problem(), "journal_unavailable");
    fs::create_dir(pod.path("state")).expect("a directory");
    assert_eq!(manager.post("/es/stop?wait=30s", "{}").body["state"], "stopped");
    assert!(!is_alive(engine));
    manager.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(manager.ended(), 0);
}
