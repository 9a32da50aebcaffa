//! `stayput warm`: a real engine uses the archive, ignores one that does not fit, and starts either way.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use super::step;
use crate::support::archive::{self, files, text};
use crate::support::engine::{Kind, Node};
use crate::support::manager::{AS_ENGINE, Manager};
use crate::support::wait::eventually;

/// What the JVM says of a class that it has from the archive, and not from that of the JDK.
const FROM_ARCHIVE: &str = "shared objects file (top)";
const WARNING: &str = "does not use the archive of classes";

#[test] // proves STOP-25, STOP-27
fn opensearch_uses_the_archive_or_ignores_it() {
    super::on(
        "real::engine::warm::opensearch_uses_the_archive_or_ignores_it",
        Kind::OpenSearch,
        |node| {
            let [path, options] = files(&node);
            let made = make(&node, &[]);
            let printed = text(&made);
            assert!(made.status.success(), "{printed}");
            assert!(printed.contains("The engine uses it"), "{printed}");
            assert!(printed.contains("the class path is lib/*"), "{printed}");
            let line = archive::option(&path);
            assert!(fs::read_to_string(&options).expect("options").ends_with(&line));
            assert!(!node.work().join("data/nodes").exists(), "its data was thrown away");

            step("the JVM says that its classes are from the archive");
            let log = classes(&node);
            let manager = node.launch().start();
            manager.api.until_ready();
            // Measured: 11,015 of 12,735.
            assert!(count(&log) > 5_000, "{} classes", count(&log));
            assert!(!manager.log().contains(WARNING));
            // A JVM that is busy may not let itself be read at once.
            let until_used = |used: bool| {
                eventually("the manager shows whether the archive is used", || {
                    let shown = manager.api.status()["archive"].clone();
                    (shown == json!({ "path": path, "used": used })).then_some(())
                });
            };
            until_used(true);
            manager.api.stop();

            step("with one for another class path it starts, too, and the manager says so");
            let classes = "org.opensearch.tools.launchers.TempDirectory";
            let jar = jar(&node, "opensearch-launchers");
            fs::remove_file(&path).expect("an archive");
            java(&node, &["-cp", &jar, &dump(&path), classes]);
            fs::remove_file(&log).expect("a log");
            manager.api.start(&json!({}));
            assert_eq!(count(&log), 0);
            until_warned(&manager, 1);
            until_used(false);
            manager.api.stop();

            step("and without its file");
            fs::remove_file(&path).expect("an archive");
            manager.api.start(&json!({}));
            until_warned(&manager, 2);
            until_used(false);
            manager.api.stop();

            step("an init container makes it anew, once");
            fs::remove_file(&options).expect("an option file");
            let made = make(&node, &["--best-effort", "5m"]);
            assert!(made.status.success(), "{}", text(&made));
            fs::remove_file(&log).expect("a log");
            manager.api.start(&json!({}));
            assert!(count(&log) > 5_000, "{} classes", count(&log));
            assert_eq!(manager.log().matches(WARNING).count(), 2);
            until_used(true);
            let again = text(&make(&node, &["--best-effort", "5m"]));
            assert!(again.contains("is not tried again"), "{again}");
        },
    );
}

#[test] // proves STOP-25
fn elasticsearch_8_is_refused_with_the_reason() {
    super::on(
        "real::engine::warm::elasticsearch_8_is_refused_with_the_reason",
        Kind::Elasticsearch,
        |node| {
            let made = make(&node, &[]);
            let printed = text(&made);
            assert_eq!(made.status.code(), Some(1), "{printed}");
            assert!(printed.contains("Elasticsearch 8 and later"), "{printed}");
            for file in files(&node) {
                assert!(!file.exists(), "{file:?}");
            }
        },
    );
}

/// Waits until the manager has warned so often in all: it answers before its log is written.
#[track_caller]
fn until_warned(manager: &Manager, times: usize) {
    eventually("the manager warns", || {
        (manager.log().matches(WARNING).count() == times).then_some(())
    });
}

/// Runs `stayput warm` with these options.
fn make(node: &Node, more: &[&str]) -> Output {
    let [archive, options] = files(node);
    archive::make(node, &archive, &options, more)
}

/// Makes the server JVM write the origin of each class; returns the file.
fn classes(node: &Node) -> PathBuf {
    let log = node.work().join("logs/classes.log");
    let option = format!("-Xlog:class+load=info:file={}\n", log.display());
    fs::write(node.work().join("config/jvm.options.d/classes.options"), option).expect("a file");
    log
}

fn count(log: &Path) -> usize {
    fs::read_to_string(log).expect("a log").matches(FROM_ARCHIVE).count()
}

fn dump(archive: &Path) -> String {
    format!("-XX:ArchiveClassesAtExit={}", archive.display())
}

/// Runs another program in the engine's JVM.
fn java(node: &Node, arguments: &[&str]) {
    let java =
        PathBuf::from(std::env::var_os("JAVA_HOME").expect("the node has it")).join("bin/java");
    let ran = Command::new(AS_ENGINE[0])
        .args(&AS_ENGINE[1..])
        .arg(java)
        .args(arguments)
        .env("OPENSEARCH_TMPDIR", node.work().join("tmp"))
        .current_dir(node.work())
        .output();
    let ran = ran.expect("it can be executed");
    assert!(ran.status.success(), "{}", text(&ran));
}

/// A file of the engine's `lib` whose name begins like this.
fn jar(node: &Node, name: &str) -> String {
    let executable = PathBuf::from(node.executable());
    let lib = executable.ancestors().nth(2).expect("a home").join("lib");
    let jars = fs::read_dir(lib).expect("a lib").flatten().map(|entry| entry.path());
    let mut found = jars
        .filter(|jar| jar.file_name().is_some_and(|own| own.to_string_lossy().starts_with(name)));
    found.next().expect("a jar").to_str().expect("UTF-8").to_owned()
}
