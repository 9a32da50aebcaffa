//! A volume of the config, or of its staged copy, that does not answer any more: no start is
//! possible, which is said at once and with the path; everything else continues.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::api::Api;
use crate::support::engine::work_directory;
use crate::support::manager::Launch;
use crate::support::mounts::FrozenDisk;
use crate::support::namespace::cannot_isolate;
use crate::support::skip;

/// A work directory in which `hangs` is a file system that can be frozen.
fn prepare(hangs: &str) -> Result<(TempDir, FrozenDisk), String> {
    cannot_isolate().map_or(Ok(()), Err)?;
    let work = work_directory(&["config", "staged", "tmp", "backing"]);
    let config = if hangs == "config" { "backing" } else { "config" };
    fs::write(work.path().join(config).join("x.yml"), "a: 1\n").expect("a file");
    let disk = FrozenDisk::mount(&work.path().join("backing"), &work.path().join(hangs))?;
    Ok((work, disk))
}

fn path(work: &Path, name: &str) -> String {
    work.join(name).to_str().expect("UTF-8").to_owned()
}

fn launch(work: &Path, options: &[&str]) -> Launch {
    Launch::new(work, ["sleep", "infinity"])
        .options(["--on-exit", "hold", "--config", &path(work, "config")])
        .options(options.iter().copied())
}

/// A start is refused with the path that hangs.
#[track_caller]
fn refused(api: &Api, body: &Value, code: (u16, &str), hanging: &str) {
    let problem = api.post("/es/start", body).expect_problem(code.0, code.1);
    let detail = problem["detail"].as_str().expect("a sentence");
    assert!(detail.contains(hanging) && detail.contains("has not answered for"), "{detail}");
}

fn shown(status: &Value, hanging: &str) -> bool {
    let errors = status["config"]["errors"].as_array().expect("a list");
    let said = |error: &&str| error.contains(hanging) && error.contains("has not answered since");
    errors.iter().filter_map(Value::as_str).any(|error| said(&error))
}

#[test] // proves CONFIG-12
fn a_staging_target_that_hangs_costs_no_more_than_the_starts() {
    let name = "hung_config::a_staging_target_that_hangs_costs_no_more_than_the_starts";
    let (work, disk) = match prepare("staged") {
        Err(why) => return skip(name, &why),
        Ok(prepared) => prepared,
    };
    let stage = format!("{}={}", path(work.path(), "config"), path(work.path(), "staged"));
    let mut running = launch(work.path(), &["--stage", &stage]).never_ready().start();
    // The disk is freed before the manager is waited for, also when this fails.
    let (manager, disk) = (&mut running, disk);
    let api = &manager.api;
    api.until_state("starting");
    api.stop();

    disk.signal(Signal::SIGSTOP);
    let staged = path(work.path(), "staged");
    for _ in 0..6 {
        refused(api, &json!({}), (503, "stage_failed"), &staged);
        assert_eq!(api.get("/livez").status, 200);
    }
    api.status_when("the hanging path is shown", |status| shown(status, &staged));

    // The journal is on another disk, which is healthy.
    let status = api.stop();
    assert_eq!((&status["desired"], &status["state"]), (&json!("stopped"), &json!("stopped")));
    assert_eq!(status["manager"]["durable"], true);

    disk.signal(Signal::SIGCONT);
    let status = api.status_when("it answers", |status| !shown(status, &staged));
    assert!(status["config"]["checksum"].is_string(), "{status:#}");
    api.post("/es/start", &json!({})).expect(202);
    api.until_state("starting");

    disk.signal(Signal::SIGSTOP);
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 143);
}

/// A start that wants what is kept waits for two volumes, and names the one that hangs.
#[test] // proves CONFIG-12
fn a_staging_target_that_hangs_is_named_where_a_config_is_kept() {
    let name = "hung_config::a_staging_target_that_hangs_is_named_where_a_config_is_kept";
    let (work, disk) = match prepare("staged") {
        Err(why) => return skip(name, &why),
        Ok(prepared) => prepared,
    };
    let stage = format!("{}={}", path(work.path(), "config"), path(work.path(), "staged"));
    let kept = ["--keep-last-good", "--pin-config", "--ready", "http://127.0.0.1:1/"];
    let launch = launch(work.path(), &["--stage", &stage]).options(kept).on_exit("restart");
    let running = launch.start();
    // The disk is freed before the manager is waited for, also when this fails.
    let (manager, disk) = (&running, disk);
    manager.api.until_state("starting");

    disk.signal(Signal::SIGSTOP);
    // The engine's own start wants the pinned config, and its work hangs.
    manager.find("sleep").signal(Signal::SIGKILL);
    let failed = manager.api.status_when("its start fails", |status| {
        status["reason"]["message"].as_str().is_some_and(|text| text.contains("has not answered"))
    });
    let staged = path(work.path(), "staged");
    assert!(failed["reason"]["message"].as_str().is_some_and(|text| text.contains(&staged)));
    for _ in 0..2 {
        refused(&manager.api, &json!({ "config": "last_good" }), (503, "stage_failed"), &staged);
    }
    manager.api.stop();
    disk.signal(Signal::SIGCONT);
}

#[test] // proves CONFIG-12
fn a_temporary_directory_that_hangs_costs_no_more_than_the_starts() {
    let name = "hung_config::a_temporary_directory_that_hangs_costs_no_more_than_the_starts";
    let (work, disk) = match prepare("tmp") {
        Err(why) => return skip(name, &why),
        Ok(prepared) => prepared,
    };
    let tmp = path(work.path(), "tmp");
    let mut running = launch(work.path(), &["--tmp-dir", &tmp]).never_ready().start();
    let (manager, disk) = (&mut running, disk);
    let api = &manager.api;
    let checksum = api.until_state("starting")["config"]["checksum"].clone();
    api.stop();

    disk.signal(Signal::SIGSTOP);
    for _ in 0..2 {
        let problem = api.post("/es/start", &json!({})).expect_problem(503, "temp_dir_failed");
        let detail = problem["detail"].as_str().expect("a sentence");
        assert!(detail.contains(&tmp), "{detail}");
        assert_eq!(api.get("/livez").status, 200);
    }
    // The config is read all the same.
    fs::write(work.path().join("config/x.yml"), "a: 2\n").expect("a file");
    api.status_when("the new config is seen", |status| {
        status["config"]["checksum"].is_string() && status["config"]["checksum"] != checksum
    });

    disk.signal(Signal::SIGCONT);
    api.post("/es/start", &json!({})).expect(202);
    api.until_state("starting");
    disk.signal(Signal::SIGSTOP);
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 143);
}

#[test] // proves CONFIG-12
fn a_mounted_config_that_hangs_costs_no_more_than_the_starts() {
    let name = "hung_config::a_mounted_config_that_hangs_costs_no_more_than_the_starts";
    let (work, disk) = match prepare("config") {
        Err(why) => return skip(name, &why),
        Ok(prepared) => prepared,
    };
    let mut running = launch(work.path(), &[]).never_ready().start();
    let (manager, disk) = (&mut running, disk);
    let api = &manager.api;
    let checksum = api.until_state("starting")["config"]["checksum"].clone();
    assert!(checksum.is_string());

    // The manager hears of a new file, and its volume stops to answer while that is read.
    let config = path(work.path(), "config");
    fs::write(Path::new(&config).join("hang"), "x").expect("a file");
    let status = api.status_when("the hanging path is shown", |status| shown(status, &config));
    assert!(disk.is_frozen());
    assert_eq!(status["config"]["checksum"], Value::Null, "what is mounted is not known");
    assert_eq!(status["config"]["drift"], Value::Null);
    assert_eq!(api.get("/livez").status, 200);
    let status = api.stop();
    assert_eq!(status["manager"]["durable"], true);
    for _ in 0..5 {
        refused(api, &json!({ "checksum": checksum }), (412, "config_unknown"), &config);
        refused(api, &json!({}), (503, "stage_failed"), &config);
    }
    assert_eq!(api.status()["state"], "stopped");

    fs::remove_file(work.path().join("backing/hang")).expect("a file");
    disk.signal(Signal::SIGCONT);
    api.status_when("it answers", |status| !shown(status, &config));
    api.post("/es/start", &json!({ "checksum": checksum })).expect(202);
    api.until_state("starting");

    disk.signal(Signal::SIGSTOP);
    manager.signal(Signal::SIGTERM);
    assert_eq!(manager.wait(), 143);
}
