//! A temporary directory with the files that a pod would mount.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use stayput_standin::harness::ports::free_loopback_port;
use tempfile::TempDir;

/// The directory, removed when this is dropped.
pub(crate) struct PodFiles {
    directory: TempDir,
    /// A port for the engine, free a moment ago.
    pub(crate) engine_port: u16,
}

impl PodFiles {
    /// Makes the directories and finds a port.
    pub(crate) fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("stayput-demo-").tempdir()?;
        for name in ["state", "mount", "config", "data"] {
            fs::create_dir(directory.path().join(name))?;
        }
        let engine_port = free_loopback_port();
        Ok(Self { directory, engine_port })
    }

    /// The whole directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The manager's journal, last good config and socket.
    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// The manager's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.state().join("stayput.sock")
    }

    /// The volume that the kubelet would update.
    pub(crate) fn mount(&self) -> PathBuf {
        self.path().join("mount")
    }

    /// The config directory that the engine reads, filled by the manager.
    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("config")
    }

    /// A new file for the output of manager and engine.
    pub(crate) fn create_log(&self) -> io::Result<File> {
        File::create(self.log())
    }

    /// The last line printed by manager or engine that contains `part`.
    pub(crate) fn logged(&self, part: &str) -> Option<String> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        log.lines().rev().find(|line| line.contains(part)).map(str::to_owned)
    }

    /// The last lines printed by manager and engine, for a demo that failed.
    pub(crate) fn end_of_log(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }

    /// `elasticsearch.yml` for the stand-in engine, with `settings` added.
    pub(crate) fn engine_settings(&self, settings: &str) -> String {
        let (port, data) = (self.engine_port, self.path().join("data"));
        // The delay replaces the seconds in which a JVM starts.
        format!(
            "cluster.name: demo\nnode.name: demo-0\nhttp.port: {port}\npath.data: {}\n\
             standin.start_delay_ms: 400\nstandin.keystore: true\n{settings}\n",
            data.display()
        )
    }

    fn log(&self) -> PathBuf {
        self.path().join("log")
    }
}
