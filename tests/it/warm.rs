//! `stayput warm --best-effort`, as an init container runs it: whatever comes, the pod is to start.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::program::{Ended, finish, stayput};
use crate::support::wait::eventually;

/// Runs it with a shell script in the place of the engine.
fn warm(directory: &Path, more: &[&str], engine: &str) -> Ended {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (archive, options) = (path("warm.jsa"), path("warm.options"));
    let own = ["warm", "--java-home", "/nonexistent", "--archive", &archive, "--options", &options];
    finish(&mut stayput([&own[..], more, &["--", "/bin/sh", "-c", engine]].concat()))
}

fn files(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test] // proves STOP-27
fn an_engine_that_does_not_start_is_no_failure_of_an_init_container() {
    let directory = tempfile::tempdir().unwrap();
    let failed = warm(directory.path(), &[], "exit 3");
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""));
    let tried = warm(directory.path(), &["--best-effort", "5m"], "exit 3");
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    assert!(
        tried.stdout.starts_with("no archive, so the engine starts without: "),
        "{}",
        tried.stdout
    );
    assert!(tried.stdout.contains("ended with code 3"), "{}", tried.stdout);
    assert_eq!(files(&directory), ["warm.jsa.tried"]);
}

#[test] // proves STOP-27
fn an_engine_that_takes_too_long_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let tried = warm(directory.path(), &["--best-effort", "1ms"], "exec sleep 1000");
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    assert!(tried.stdout.contains("did not accept connections"), "{}", tried.stdout);
    assert_eq!(files(&directory), ["warm.jsa.tried"]);
}

/// Without handlers PID 1 does not end by TERM, and any other process leaves the engine behind.
#[test] // proves STOP-27
fn term_ends_it_at_once_and_nothing_of_the_engine_is_left() {
    for more in [&[][..], &["--best-effort", "5m"]] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let engine =
            format!("trap '' TERM; echo $$ >{}; while :; do sleep 1000; done", path("pid"));
        let (archive, options) = (path("warm.jsa"), path("warm.options"));
        let own =
            ["warm", "--java-home", "/nonexistent", "--archive", &archive, "--options", &options];
        let mut warming =
            stayput([&own[..], more, &["--", "/bin/sh", "-c", &engine]].concat()).spawn().unwrap();
        let pid = eventually("the engine runs", || {
            fs::read_to_string(path("pid")).ok().filter(|pid| pid.ends_with('\n'))
        });
        let began = Instant::now();
        let own = Pid::from_raw(warming.id().cast_signed());
        nix::sys::signal::kill(own, Signal::SIGTERM).unwrap();
        assert_eq!(warming.wait().unwrap().code(), Some(143));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "the engine lives on");
        fs::remove_file(path("pid")).unwrap();
        let left: Vec<&str> = if more.is_empty() { vec![] } else { vec!["warm.jsa.tried"] };
        assert_eq!(files(&directory), left);
    }
}

#[test] // proves STOP-27
fn it_is_tried_once_for_each_volume() {
    let directory = tempfile::tempdir().unwrap();
    let engine = format!("echo run >>{}/runs; exit 3", directory.path().display());
    let tries = [(); 2].map(|()| warm(directory.path(), &["--best-effort", "5m"], &engine));
    assert_eq!([tries[0].code, tries[1].code], [0, 0]);
    assert!(tries[1].stdout.contains("is not tried again"), "{}", tries[1].stdout);
    assert_eq!(fs::read_to_string(directory.path().join("runs")).unwrap(), "run\n");
}

/// The volume outlives the containers of its pod: after a restart of the machine they may have another image.
#[test] // proves STOP-27
fn another_jvm_in_the_same_volume_is_another_attempt() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("config/jvm.options.d");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir(home.path().join("lib")).unwrap();
    let jar = home.path().join("lib/engine.jar");
    fs::write(&jar, "of one version").unwrap();
    let engine = format!("echo run >>{}/runs; exit 3", home.path().display());
    let runs = || fs::read_to_string(home.path().join("runs")).unwrap();
    let attempt = || warm(&directory, &["--best-effort", "5m"], &engine);
    attempt();
    // What does not fit is not left beside an attempt that fails.
    let of_another = ["warm.jsa", "warm.options"].map(|name| directory.join(name));
    of_another.iter().for_each(|path| fs::write(path, "old").unwrap());
    assert!(attempt().stdout.contains("is not tried again"));
    assert_eq!(
        (runs().as_str(), of_another.each_ref().map(|path| path.exists())),
        ("run\n", [true; 2])
    );
    fs::write(&jar, "of another version").unwrap();
    let tried = attempt();
    assert!(tried.stdout.contains("ended with code 3"), "{}", tried.stdout);
    assert_eq!((runs().as_str(), of_another.map(|path| path.exists())), ("run\nrun\n", [false; 2]));
    assert!(attempt().stdout.contains("is not tried again"));
}

#[test] // proves STOP-27
fn a_volume_that_cannot_be_written_is_no_failure_either() {
    let tried = warm(Path::new("/nonexistent"), &["--best-effort", "5m"], "exit 3");
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    assert!(tried.stdout.contains("/nonexistent/warm.jsa.tried"), "{}", tried.stdout);
}
