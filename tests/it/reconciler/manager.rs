//! A manager and its engine, as they run in a pod.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::objects::{KEY, NAMESPACE};
use crate::support::kubelet::{AtomicWriter, payload};
use crate::support::pki::Pki;
use crate::support::program::stayput;
use crate::support::programs::{children, program, send};

/// The volumes of one pod, and the manager in it; killed, with all its descendants, when dropped.
pub(super) struct Manager {
    directory: TempDir,
    config: AtomicWriter,
    child: Option<Child>,
    pub(super) address: String,
    name: String,
    uid: String,
    /// Its certificate and key, and more options.
    started_with: ([PathBuf; 2], Vec<String>),
}

impl Manager {
    /// Volumes with this config; nothing runs yet.
    pub(super) fn new(name: &str, uid: &str, address: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        for part in ["state", "config", "data", "staged"] {
            fs::create_dir(directory.path().join(part)).expect("a directory");
        }
        fs::write(directory.path().join("key"), KEY).expect("a file");
        let config = AtomicWriter::new(&directory.path().join("config"));
        let (name, uid, address) = (name.to_owned(), uid.to_owned(), address.to_owned());
        let started_with = Default::default();
        Self { directory, config, child: None, address, name, uid, started_with }
    }

    /// Uid of its pod.
    pub(super) fn uid(&self) -> String {
        self.uid.clone()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Updates the volume, as the kubelet does for a changed Secret.
    pub(super) fn mount(&mut self, settings: &str) {
        self.config.write(&payload([("elasticsearch.yml", settings)]));
    }

    /// Updates the file with variables of the engine, as the kubelet does for a changed annotation.
    pub(super) fn show(&self, environment: &str) {
        let file = self.path("environment");
        if fs::read_to_string(&file).unwrap_or_default() != environment {
            let next = self.path("environment.next");
            fs::write(&next, environment).expect("a file");
            fs::rename(next, file).expect("a file");
        }
    }

    /// Starts it.
    pub(super) fn start(&mut self, pki: &Pki, options: &[String]) {
        self.started_with = ([pki.file("cert"), pki.file("key")], options.to_vec());
        self.spawn();
    }

    /// Ends it, if it has not ended, and starts it again: a new container of its pod.
    pub(super) fn renew(&mut self) {
        if !self.has_ended() {
            self.signal(Signal::SIGTERM);
        }
        if let Some(mut child) = self.child.take() {
            child.wait().expect("it ends");
        }
        self.spawn();
    }

    /// Ends it, and starts one in another pod, on the volume with the data.
    pub(super) fn move_to(&mut self, uid: &str) {
        self.crash();
        uid.clone_into(&mut self.uid);
        for part in ["state", "staged"] {
            fs::remove_dir_all(self.path(part)).expect("it is there");
            fs::create_dir(self.path(part)).expect("a directory");
        }
        self.spawn();
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().expect("it was started");
        child.try_wait().expect("it is a child of ours").is_some()
    }

    fn spawn(&mut self) {
        let ([certificate, key], options) = &self.started_with;
        let mut command = stayput(["run", "--log-format", "text", "--on-exit", "restart"]);
        command
            .arg("--listen")
            .arg(format!("{}:9199", self.address))
            .arg("--tls-cert")
            .arg(certificate)
            .arg("--tls-key")
            .arg(key)
            .arg("--jwt-key")
            .arg(self.path("key"))
            .arg("--config")
            .arg(self.path("config"))
            .arg("--state-dir")
            .arg(self.path("state"))
            .arg("--ready")
            .arg(format!("http://{}:9200/", self.address))
            .arg("--keep-last-good")
            .arg("--environment")
            .arg(self.path("environment"))
            .arg("--stage")
            .arg(format!("{}={}", path(&self.path("config")), path(&self.path("staged"))))
            .args(options)
            .arg("--")
            .arg(program("standin-engine"))
            .arg("--config")
            .arg(self.path("staged"))
            .env("STAYPUT_POD_NAMESPACE", NAMESPACE)
            .env("STAYPUT_POD_NAME", &self.name)
            .env("STAYPUT_POD_UID", &self.uid);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("log"));
        let log = log.expect("a log file");
        command.stdout(Stdio::from(log.try_clone().expect("a descriptor"))).stderr(log);
        self.child = Some(command.spawn().expect("stayput can be executed"));
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Pid of the engine's leader.
    pub(super) fn engine(&self) -> Option<u32> {
        children(self.pid()).first().copied()
    }

    pub(super) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Kills it, like a crash.
    pub(super) fn crash(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let below = children(child.id());
        // If the child was waited for already, the standard library sends no signal.
        let _ = child.kill();
        let _ = child.wait();
        below.into_iter().for_each(|pid| send(pid, Signal::SIGKILL));
    }

    /// How many stops it has accepted until now.
    pub(super) fn stops(&self) -> usize {
        let log = self.log();
        let is_stop = |line: &&str| line.contains("accepted by=") && line.contains("request=stop ");
        log.lines().filter(is_stop).count()
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.crash();
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}
