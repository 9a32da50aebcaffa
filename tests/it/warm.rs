//! `stayput warm --best-effort`, as an init container runs it: whatever comes, the pod is to start.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::program::{Ended, finish, stayput};

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

#[test]
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

#[test]
fn an_engine_that_takes_too_long_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let tried = warm(directory.path(), &["--best-effort", "1ms"], "exec sleep 1000");
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    assert!(tried.stdout.contains("did not accept connections"), "{}", tried.stdout);
    assert_eq!(files(&directory), ["warm.jsa.tried"]);
}

#[test]
fn it_is_tried_once_for_each_volume() {
    let directory = tempfile::tempdir().unwrap();
    let engine = format!("echo run >>{}/runs; exit 3", directory.path().display());
    let tries = [(); 2].map(|()| warm(directory.path(), &["--best-effort", "5m"], &engine));
    assert_eq!([tries[0].code, tries[1].code], [0, 0]);
    assert!(tries[1].stdout.contains("is not tried again"), "{}", tries[1].stdout);
    assert_eq!(fs::read_to_string(directory.path().join("runs")).unwrap(), "run\n");
}

#[test]
fn a_volume_that_cannot_be_written_is_no_failure_either() {
    let tried = warm(Path::new("/nonexistent"), &["--best-effort", "5m"], "exit 3");
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    assert!(tried.stdout.contains("/nonexistent/warm.jsa.tried"), "{}", tried.stdout);
}
