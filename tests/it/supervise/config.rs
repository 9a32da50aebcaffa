//! The engine's config: seen, verified, staged, kept, rolled back.

use std::fs;

use serde_json::{Value, json};
use stayput_api::checksum::Checksum;

use super::manager::Manager;
use super::pod::Pod;
use super::processes::eventually;
use crate::support::kubelet::{AtomicWriter, payload};

const FILE: &str = "elasticsearch.yml";

/// A pod with a mounted config.
fn mounted(content: &str) -> (Pod, AtomicWriter) {
    let pod = Pod::new();
    let mut volume = AtomicWriter::new(&pod.path("config"));
    volume.write(&payload([(FILE, content), ("roles.yml", "live 1")]));
    (pod, volume)
}

fn swap(volume: &mut AtomicWriter, content: &str) {
    volume.write(&payload([(FILE, content), ("roles.yml", "live 1")]));
}

/// A manager that watches the config.
fn watching(pod: &Pod, options: &[&str]) -> Manager {
    let config = pod.path("config").display().to_string();
    let options = [&["--config", &config, "--live", "roles.yml"], options].concat();
    pod.start(&options, &["sleep", "600"])
}

/// The same with staging to `staged`.
fn staging(pod: &Pod) -> Manager {
    staging_with(pod, &[])
}

fn staging_with(pod: &Pod, options: &[&str]) -> Manager {
    let stage = format!("{}={}", pod.path("config").display(), pod.path("staged").display());
    watching(pod, &[&["--stage", &stage, "--keep-last-good"], options].concat())
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

#[test] // proves UPDATE-61
fn a_swap_is_seen_shown_as_drift_and_started_with() {
    let (pod, mut volume) = mounted("a: 1\n");
    let manager = watching(&pod, &[]);
    let first = manager.until_state("running");
    let a = text(&first["config"]["checksum"]);
    assert_eq!(
        (text(&first["run"]["checksum"]), &first["config"]["drift"]),
        (a.clone(), &false.into())
    );
    let files = first["config"]["files"].as_array().unwrap();
    let live: Vec<bool> = files.iter().map(|file| file["live"].as_bool().unwrap()).collect();
    assert_eq!(live, [false, true], "{files:?}");
    assert_eq!(first["config"]["run_files"], Value::Null, "they are the mounted ones");

    swap(&mut volume, "a: 2\n");
    let drifted = manager.until("drift", |status| status["config"]["drift"] == true);
    assert_eq!(drifted["config"]["run_files"], json!([files[0]]), "what it was started on");
    assert_ne!(drifted["config"]["files"][0], files[0]);
    let b = text(&drifted["config"]["checksum"]);
    assert_ne!(a, b);
    assert_eq!(text(&drifted["run"]["checksum"]), a);

    let wrong = manager.post("/es/start", &format!(r#"{{"checksum":"{b}"}}"#));
    assert_eq!((wrong.code, wrong.problem()), (409, "wrong_config"), "it runs with another config");
    let right = manager.post("/es/start", &format!(r#"{{"checksum":"{a}"}}"#));
    assert_eq!(right.code, 200, "it runs with this config: {right:?}");

    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    let refused = manager.post("/es/start", &format!(r#"{{"checksum":"{a}"}}"#));
    assert_eq!((refused.code, refused.problem()), (412, "checksum_mismatch"));
    for part in [&a, &b, FILE] {
        assert!(refused.detail().contains(part), "{part}: {}", refused.detail());
    }
    assert_eq!(refused.body["current"]["state"], "stopped", "nothing was started");
    let started = manager.post("/es/start?wait=20s", &format!(r#"{{"checksum":"{b}"}}"#));
    assert_eq!((started.code, &started.body["config"]["drift"]), (200, &false.into()));
    assert_eq!(text(&started.body["run"]["checksum"]), b);
}

#[test]
fn a_live_file_is_no_drift() {
    let (pod, mut volume) = mounted("a: 1\n");
    let manager = watching(&pod, &[]);
    let first = manager.until_state("running");
    volume.write(&payload([(FILE, "a: 1\n"), ("roles.yml", "live 2")]));
    let changed = manager.until("the live file's new content", |status| {
        status["config"]["files"] != first["config"]["files"]
    });
    assert_eq!(changed["config"]["checksum"], first["config"]["checksum"]);
    assert_eq!(changed["config"]["drift"], false);
}

#[test] // proves CONFIG-8
fn a_swap_while_the_engine_reads_it_is_not_certain_without_staging() {
    let (pod, mut volume) = mounted("a: 1\n");
    pod.gate.set(false);
    let manager = watching(&pod, &[]);
    manager.until_state("starting");
    swap(&mut volume, "a: 2\n");
    manager.until("uncertain", |status| status["run"]["config_uncertain"] == true);
    pod.gate.set(true);
    let status = manager.until_state("running");
    assert_eq!(
        (&status["run"]["checksum"], &status["config"]["drift"]),
        (&None::<u8>.into(), &None::<u8>.into())
    );
    let b = text(&status["config"]["checksum"]);
    let refused = manager.post("/es/start", &format!(r#"{{"checksum":"{b}"}}"#));
    assert_eq!((refused.code, refused.problem()), (409, "wrong_config"), "{refused:?}");
}

#[test]
fn a_live_file_may_change_while_the_engine_reads_the_others() {
    let (pod, mut volume) = mounted("a: 1\n");
    fs::create_dir(pod.path("users")).unwrap();
    let mut users = AtomicWriter::new(&pod.path("users"));
    users.write(&payload([("users", "one")]));
    fs::create_dir(pod.path("plain")).unwrap();
    for (file, content) in [("plain/log4j2.properties", "x"), ("plain/role_mapping.yml", "one")] {
        pod.write(file, content);
    }
    let directory = |name: &str| format!("{name}={}", pod.path(name).display());
    let (config, live, plain) = (directory("config"), directory("users"), directory("plain"));
    let options = ["--config", &config, "--config", &live, "--config", &plain];
    let globs = ["--live", "users/*", "--live", "plain/role_mapping.yml"];
    pod.gate.set(false);
    let manager = pod.start(&[&options[..], &globs].concat(), &["sleep", "600"]);
    let first = manager.until_state("starting");
    users.write(&payload([("users", "two")]));
    pod.write("plain/role_mapping.yml", "two");
    let digest = |status: &serde_json::Value, path: &str| {
        let files = status["config"]["files"].as_array().unwrap();
        let file = files.iter().find(|file| file["path"] == path);
        text(&file.unwrap_or_else(|| panic!("no {path} in {files:?}"))["sha256"])
    };
    manager.until("both changes", |status| {
        let changed = |path| digest(status, path) != digest(&first, path);
        changed("users/users") && changed("plain/role_mapping.yml")
    });
    pod.gate.set(true);
    let status = manager.until_state("running");
    let run = &status["run"];
    assert_eq!(
        (&run["checksum"], &status["config"]["drift"]),
        (&first["run"]["checksum"], &false.into())
    );
    assert_ne!(run["config_uncertain"], true);

    // Changed and changed back: what the engine read in between is not known.
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    pod.gate.set(false);
    assert_eq!(manager.post("/es/start", "{}").code, 202);
    manager.until_state("starting");
    swap(&mut volume, "a: 2\n");
    swap(&mut volume, "a: 1\n");
    manager.until("uncertain", |status| status["run"]["config_uncertain"] == true);
}

#[test] // proves UPDATE-16
fn a_second_directory_is_watched_like_the_first_staged_or_not() {
    for is_staged in [false, true] {
        let (pod, _volume) = mounted("a: 1\n");
        for directory in ["certs", "staged-certs"] {
            fs::create_dir_all(pod.path(directory)).unwrap();
        }
        let mut certs = AtomicWriter::new(&pod.path("certs"));
        certs.write(&payload([("ca.crt", "one")]));
        let path = |name: &str| pod.path(name).display().to_string();
        let main = format!("main={}", path("config"));
        let second = format!("certs={}", path("certs"));
        let stage = format!("{}={}", path("config"), path("staged"));
        let stage_second = format!("{}={}", path("certs"), path("staged-certs"));
        let mut options = vec!["--config", &main, "--config", &second, "--stage", &stage];
        if is_staged {
            options.extend(["--stage", &stage_second]);
        }
        // As the reconciler names the files of what is mounted there.
        let of = |ca: &str| {
            let files = [("main/elasticsearch.yml", "a: 1\n"), ("main/roles.yml", "live 1")];
            Checksum::of_contents(files.into_iter().chain([("certs/ca.crt", ca)])).to_string()
        };
        let manager = pod.start(&options, &["sleep", "600"]);
        assert_eq!(text(&manager.until_state("running")["run"]["checksum"]), of("one"));

        certs.write(&payload([("ca.crt", "two")]));
        let drifted = manager.until("drift", |status| status["config"]["drift"] == true);
        assert_eq!(text(&drifted["config"]["checksum"]), of("two"));
        assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
        let wanted = format!(r#"{{"checksum":"{}"}}"#, of("two"));
        let started = manager.post("/es/start?wait=20s", &wanted);
        assert_eq!(started.code, 200, "staged {is_staged}: {started:?}");
        assert_eq!(text(&started.body["run"]["checksum"]), of("two"));
        if is_staged {
            assert_eq!(pod.read("staged-certs/ca.crt"), "two");
        }
    }
}

#[test]
fn staged_it_reads_one_generation_whatever_is_mounted_meanwhile() {
    let (pod, mut volume) = mounted("a: 1\n");
    pod.gate.set(false);
    let manager = staging(&pod);
    let first = manager.until_state("starting");
    let a = text(&first["run"]["checksum"]);
    pod.write("staged/elasticsearch.keystore", "made by the engine");
    swap(&mut volume, "a: 2\n");
    pod.gate.set(true);
    let status = manager.until("ready with drift", |status| {
        status["state"] == "running" && status["config"]["drift"] == true
    });
    assert_eq!(text(&status["run"]["checksum"]), a);
    assert_eq!(pod.read("staged/elasticsearch.yml"), "a: 1\n");
    assert_eq!(pod.read("staged/roles.yml"), "live 1");

    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    assert_eq!(pod.read("staged/elasticsearch.yml"), "a: 2\n");
    assert_eq!(pod.read("staged/elasticsearch.keystore"), "made by the engine");
}

#[test]
fn the_last_good_config_starts_and_is_what_the_next_container_starts_with() {
    let (pod, mut volume) = mounted("good: 1\n");
    let manager = staging(&pod);
    let status = manager.until("kept", |status| status["config"]["last_good"].is_string());
    let good = text(&status["run"]["checksum"]);
    assert_eq!(text(&status["config"]["last_good"]), good);

    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    swap(&mut volume, "bad: 1\n");
    pod.gate.set(false);
    assert_eq!(manager.post("/es/start", "{}").code, 202);
    crate::support::programs::send(manager.engine(), nix::sys::signal::Signal::SIGSEGV);
    let held = manager.until_state("failed");
    assert_eq!(
        (&held["reason"]["code"], &held["last_exit"]["signal"]),
        (&"start_failed".into(), &11.into())
    );

    pod.gate.set(true);
    let back = manager.post("/es/start?wait=20s", r#"{"config":"last_good"}"#);
    assert_eq!(back.code, 200, "{back:?}");
    assert_eq!(
        (text(&back.body["run"]["checksum"]), &back.body["run"]["config"]),
        (good.clone(), &"last_good".into())
    );
    assert_eq!(back.body["config"]["drift"], true, "what is mounted is another one");
    assert_eq!(pod.read("staged/elasticsearch.yml"), "good: 1\n");

    manager.crash();
    fs::remove_file(pod.path("staged/elasticsearch.yml")).unwrap();
    let manager = staging(&pod);
    let next = manager.until_state("running");
    assert_eq!(
        (text(&next["run"]["checksum"]), &next["run"]["config"]),
        (good, &"last_good".into())
    );
    assert_eq!(pod.read("staged/elasticsearch.yml"), "good: 1\n");
}

#[test] // proves CONFIG-10
fn a_config_whose_engine_ends_soon_after_it_was_ready_does_not_replace_the_last_good_one() {
    let (pod, mut volume) = mounted("good: 1\n");
    let manager = staging_with(&pod, &["--on-exit", "hold"]);
    let status = manager.until("kept", |status| status["config"]["last_good"].is_string());
    let good = text(&status["config"]["last_good"]);

    swap(&mut volume, "fragile: 1\n");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    let status = manager.until("ready", |status| status["ready"] == true);
    assert_ne!(text(&status["run"]["checksum"]), good);
    // It was ready, and its config is kept beside the last good one, but not yet instead of it.
    eventually("a candidate", || pod.path("state/configs/candidate").exists().then_some(()));
    crate::support::programs::send(manager.engine(), nix::sys::signal::Signal::SIGSEGV);
    let status = manager.until_state("failed");
    assert_eq!(text(&status["config"]["last_good"]), good);
    let back = manager.post("/es/start?wait=20s", r#"{"config":"last_good"}"#);
    assert_eq!((back.code, text(&back.body["run"]["checksum"])), (200, good), "{back:?}");
    assert_eq!(pod.read("staged/elasticsearch.yml"), "good: 1\n");
}

#[test] // proves CONFIG-10
fn a_config_whose_engine_was_up_for_a_minute_replaces_the_last_good_one() {
    let (pod, mut volume) = mounted("good: 1\n");
    let manager = staging(&pod);
    manager.until("kept", |status| status["config"]["last_good"].is_string());
    swap(&mut volume, "better: 1\n");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    let started = manager.post("/es/start?wait=20s", "{}");
    let better = text(&started.body["run"]["checksum"]);
    assert_ne!(text(&started.body["config"]["last_good"]), better);
    let kept = |status: &serde_json::Value| status["config"]["last_good"] == better.as_str();
    for _ in 0..5 {
        // The deadline of one wait is shorter than this minute.
        let cursor = text(&manager.status()["cursor"]);
        manager.get(&format!("/es/status?after={cursor}&timeout=20s"));
        if kept(&manager.status()) {
            break;
        }
    }
    let status = manager.until("proved", kept);
    let run = started.body["run"]["id"].clone();
    assert_eq!(status["run"]["id"], run);
}

/// Told to run `a`, and then `b` is mounted.
fn told_a_then_b_is_mounted(options: &[&str]) -> (Pod, Manager, String) {
    let (pod, mut volume) = mounted("a: 1\n");
    let manager = staging_with(&pod, options);
    let first = manager.until_state("running");
    swap(&mut volume, "b: 1\n");
    manager.until("drift", |status| status["config"]["drift"] == true);
    let a = text(&first["run"]["checksum"]);
    (pod, manager, a)
}

/// What the engine runs on when it is up again, and whether that is what is mounted.
fn back(manager: &Manager, before: &serde_json::Value) -> (String, serde_json::Value) {
    let status = manager.until("another run", |status| {
        status["state"] == "running" && status["run"]["id"] != before["run"]["id"]
    });
    assert_eq!(status["config"]["errors"], serde_json::json!([]), "{status:#}");
    (text(&status["run"]["checksum"]), status["config"]["drift"].clone())
}

#[test] // proves CONFIG-11, UPDATE-61
fn pinned_an_engine_that_crashes_comes_back_on_what_it_was_told_to_run() {
    let options = ["--on-exit", "restart", "--pin-config"];
    let (pod, manager, a) = told_a_then_b_is_mounted(&options);
    let before = manager.status();
    crate::support::programs::send(manager.engine(), nix::sys::signal::Signal::SIGSEGV);
    assert_eq!(back(&manager, &before), (a.clone(), true.into()));
    assert_eq!(pod.read("staged/elasticsearch.yml"), "a: 1\n");

    // So it does in the next container, whose staging directory is new.
    eventually("kept", || pod.path("state/configs/pinned").exists().then_some(()));
    manager.crash();
    fs::remove_file(pod.path("staged/elasticsearch.yml")).unwrap();
    let manager = staging_with(&pod, &options);
    assert_eq!(back(&manager, &before), (a.clone(), true.into()));
    assert_eq!(pod.read("staged/elasticsearch.yml"), "a: 1\n");
    let status = manager.status();
    assert_eq!(status["run"]["config"], "mounted", "so it was when it was told");
    let run_files = &status["config"]["run_files"];
    assert!(run_files.is_array());
    assert_eq!(*run_files, before["config"]["run_files"], "listed from what is kept");

    // A request means what is mounted now, and that is pinned from then on.
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    let started = manager.post("/es/start?wait=20s", "{}");
    let b = text(&started.body["config"]["checksum"]);
    assert_eq!((started.code, text(&started.body["run"]["checksum"])), (200, b.clone()));
    crate::support::programs::send(manager.engine(), nix::sys::signal::Signal::SIGSEGV);
    assert_eq!(back(&manager, &started.body), (b, false.into()));
}

#[test]
fn not_pinned_an_engine_that_crashes_comes_back_on_what_is_mounted() {
    let (pod, manager, a) = told_a_then_b_is_mounted(&["--on-exit", "restart"]);
    let before = manager.status();
    crate::support::programs::send(manager.engine(), nix::sys::signal::Signal::SIGSEGV);
    let (checksum, drift) = back(&manager, &before);
    assert_ne!(checksum, a);
    assert_eq!(drift, false);
    assert_eq!(pod.read("staged/elasticsearch.yml"), "b: 1\n");
}

#[test]
fn nothing_is_kept_before_the_first_ready() {
    let (pod, _volume) = mounted("a: 1\n");
    pod.gate.set(false);
    let manager = staging(&pod);
    manager.until_state("starting");
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    let refused = manager.post("/es/start", r#"{"config":"last_good"}"#);
    assert_eq!(refused.problem(), "no_last_good", "{refused:?}");
}

#[test] // proves CONFIG-5
fn a_config_directory_that_is_missing_is_said_and_the_manager_answers() {
    let pod = Pod::new();
    fs::remove_dir(pod.path("config")).unwrap();
    let manager = watching(&pod, &[]);
    let status = manager.until_state("running");
    assert_eq!(status["config"]["checksum"], serde_json::Value::Null);
    let error = text(&status["config"]["errors"][0]);
    assert!(error.contains("config"), "{error}");
    let said = format!("{} does not exist: mount the config there", pod.path("config").display());
    manager.until_logged_times(&said, 1);
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    let sha = format!("sha256:{}", "0".repeat(64));
    let refused = manager.post("/es/start", &format!(r#"{{"checksum":"{sha}"}}"#));
    assert_eq!((refused.code, refused.problem()), (412, "config_unknown"), "{refused:?}");
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
}

#[test]
fn a_target_that_cannot_be_written_says_what_and_starts_nothing() {
    let (pod, _volume) = mounted("a: 1\n");
    fs::remove_dir(pod.path("staged")).unwrap();
    pod.write("staged", "a file in the way");
    let stage = format!("{}={}", pod.path("config").display(), pod.path("staged").display());
    let manager = watching(&pod, &["--stage", &stage, "--on-exit", "hold"]);
    // Nobody asked for this start, and what is in the way may go: it is tried again.
    let status = manager.until_state("backoff");
    assert!(text(&status["reason"]["message"]).contains("staged"), "{status:#}");
    let refused = manager.post("/es/start", "{}");
    assert_eq!(refused.problem(), "stage_failed", "{refused:?}");
    assert_eq!(manager.status()["starts"], 0);
    fs::remove_file(pod.path("staged")).unwrap();
    fs::create_dir(pod.path("staged")).unwrap();
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
}
