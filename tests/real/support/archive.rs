//! Archives of class data, as `stayput warm` makes them.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::engine::{Kind, Node, home};
use super::manager::AS_ENGINE;
use super::programs::stayput;

/// An archive for the OpenSearch that is installed: a node starts with about a third less processor time, which is
/// most of what a test with many restarts needs. It is made once and stays beside the engine. A JVM that it does
/// not fit ignores it.
pub(crate) fn of_opensearch() -> Result<&'static Path, String> {
    static ARCHIVE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = ARCHIVE.get_or_init(|| {
        let home = home(Kind::OpenSearch).ok_or("opensearch is not installed")?;
        let path = home.with_added_extension("jsa");
        if !path.exists() {
            let node = Node::new(Kind::OpenSearch)?;
            let [archive, options] = files(&node);
            let output = make(&node, &archive, &options, &[]);
            assert!(output.status.success(), "{}", text(&output));
            let beside = path.with_added_extension(std::process::id().to_string());
            fs::copy(archive, &beside).and_then(|_| fs::rename(beside, &path)).expect("a copy");
        }
        Ok(path)
    });
    made.as_deref().map_err(Clone::clone)
}

/// The line of `jvm.options` with which a server JVM starts on the archive.
pub(crate) fn option(archive: &Path) -> String {
    format!("13-:-XX:SharedArchiveFile={}\n", archive.display())
}

/// Paths of the archive and of the option file of a node.
pub(crate) fn files(node: &Node) -> [PathBuf; 2] {
    ["warm.jsa", "config/jvm.options.d/warm.options"].map(|name| node.work().join(name))
}

/// Runs `stayput warm` as an image build does: with the config in its place.
pub(crate) fn make(node: &Node, archive: &Path, options: &Path, more: &[&str]) -> Output {
    for entry in fs::read_dir(node.work().join("mount")).expect("a config").flatten() {
        if entry.path().is_file() {
            let copy = node.work().join("config").join(entry.file_name());
            fs::copy(entry.path(), &copy).expect("a copy");
            chown(&copy, Some(1000), Some(1000)).expect("root may");
        }
    }
    Command::new(AS_ENGINE[0])
        .args(&AS_ENGINE[1..])
        .arg(stayput())
        .args(["warm", "--archive"])
        .arg(archive)
        .arg("--options")
        .arg(options)
        .args(more)
        .arg("--")
        .arg(node.executable())
        .envs(node.variables())
        .env("TMPDIR", node.work().join("tmp"))
        .current_dir(node.work())
        .output()
        .expect("it can be executed")
}

/// What was printed.
pub(crate) fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}")
}
