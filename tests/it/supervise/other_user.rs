//! A manager that runs as root beside an engine of another user, in a state directory that is open to
//! all, as the kubelet makes an `emptyDir`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use nix::unistd::{Gid, Uid, geteuid, pause, setgid, setgroups, setuid};

use super::pod::Pod;
use super::processes::eventually;
use crate::support::isolated::{INSIDE, harness_name, is_inside, test_name};
use crate::support::skip;

const OTHER: u32 = 65534;
/// So many that deleting them takes a while.
const ENTRIES: usize = 20_000;
/// What an engine may write to.
const THEIRS: &str = "theirs";

#[test] // proves ACCESS-2
fn root_deletes_nothing_that_another_users_engine_names() {
    let name = test_name!(root_deletes_nothing_that_another_users_engine_names);
    if is_inside(name) {
        return attack();
    }
    if !geteuid().is_root() {
        return skip(name, "needs root beside an engine of another user");
    }
    let pod = Pod::new();
    pod.gate.set(false);
    for (directory, mode) in [(THEIRS, 0o777), ("victim", 0o700)] {
        fs::create_dir(pod.path(directory)).expect("a directory");
        set_mode(&pod.path(directory), mode);
    }
    set_mode(&pod.path("state"), 0o777);
    set_mode(pod.directory(), 0o755);
    for file in ["file1", "file2", "sub/file3"] {
        fs::create_dir_all(pod.path("victim/sub")).expect("a directory");
        pod.write(&format!("victim/{file}"), "precious");
    }
    pod.write("config/elasticsearch.yml", "a: 1\n");
    let (config, staged) = (pod.path("config"), pod.path("staged"));
    let stage = format!("{}={}", config.display(), staged.display());
    let options = [
        "--keep-last-good",
        "--pin-config",
        "--config",
        config.to_str().expect("a path"),
        "--stage",
        &stage,
    ];
    let inside = format!("{INSIDE}={}", harness_name(name));
    let own = std::env::current_exe().expect("a test");
    let own = own.to_str().expect("a path");
    let engine = ["env", &inside, own, "--exact", harness_name(name), "--nocapture"];
    let manager = pod.start(&options, &engine);
    for run in ["first", "second"] {
        let pinned = pod.path("state/configs/pinned");
        eventually("the config is kept", || pinned.is_symlink().then_some(()));
        fs::write(pod.path(&format!("{THEIRS}/{run}-may-begin")), "").expect("a file");
        let done = format!("{THEIRS}/{run}");
        eventually("the engine's turn", || pod.path(&done).exists().then_some(()));
        if run == "first" {
            assert_eq!(manager.post("/es/stop?wait=30s", "{}").code, 200);
            assert_eq!(manager.post("/es/start", "{}").code, 202);
        }
    }
    // The config is kept once more, and what is no part of it is deleted.
    pod.gate.set(true);
    manager.until("the last good config", |status| status["config"]["last_good"].is_string());
    for file in ["file1", "file2", "sub/file3"] {
        assert_eq!(pod.read(&format!("victim/{file}")), "precious", "{file}: {}", manager.log());
    }
    assert!(pod.read("theirs/first").contains("Permission denied"), "{}", pod.read("theirs/first"));
    let state = fs::metadata(pod.path("state")).expect("a directory");
    assert_eq!((state.mode() & 0o7777, state.uid()), (0o755, 0));
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
}

/// The engine: it takes another uid, as an entrypoint does, and tries to have root delete the victim.
fn attack() {
    setgroups(&[]).expect("root");
    setgid(Gid::from_raw(OTHER)).expect("root");
    setuid(Uid::from_raw(OTHER)).expect("root");
    let run = if Path::new("theirs/first").exists() { "second" } else { "first" };
    eventually("the test", || Path::new(&format!("theirs/{run}-may-begin")).exists().then_some(()));
    let outcome = if run == "first" { take_the_place_of_configs() } else { set_the_trap() };
    let outcome = outcome.map_or_else(|error| error.to_string(), |()| "done".to_owned());
    fs::write(format!("theirs/{run}.new"), outcome).expect("a file");
    fs::rename(format!("theirs/{run}.new"), format!("theirs/{run}")).expect("a file");
    if run == "second" && Path::new("state/A").exists() {
        spring_the_trap();
    }
    loop {
        pause();
    }
}

fn take_the_place_of_configs() -> io::Result<()> {
    fs::rename("state/configs", "state/before")?;
    fs::create_dir("state/configs")
}

fn set_the_trap() -> io::Result<()> {
    for name in ["file1", "file2", "sub"] {
        fs::write(format!("state/configs/{name}"), "")?;
    }
    for entry in 0..ENTRIES {
        fs::write(format!("state/configs/j{entry}"), "")?;
    }
    fs::rename("state/configs", "state/A")?;
    symlink("A", "state/configs")?;
    symlink("../victim", "state/n")
}

/// As soon as root deletes what is in our directory, a link to the victim takes its place.
fn spring_the_trap() {
    let mut entries = (0..ENTRIES).cycle();
    while entries.next().is_some_and(|entry| Path::new(&format!("state/A/j{entry}")).exists()) {}
    fs::rename("state/n", "state/configs").expect("our directory");
}
