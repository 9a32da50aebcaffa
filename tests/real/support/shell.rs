//! Runs shell lines as a user would, in a directory with the files of the repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::programs::write_program;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A shell with kubectl and its plugin.
#[derive(Debug)]
pub(crate) struct Shell {
    directory: TempDir,
    kubectl: Kubectl,
}

impl Shell {
    /// With the rights of `kubectl`; `program` is the real one.
    pub(crate) fn new(kubectl: &Kubectl, program: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        for part in ["deploy", "examples"] {
            let from = format!("{ROOT}/{part}");
            let to = directory.path().join(part);
            let copied = Command::new("cp").args(["-r", &from]).arg(to).status();
            assert!(copied.expect("cp can be executed").success(), "{part}");
        }
        let bin = directory.path().join("bin");
        fs::create_dir(&bin).expect("a directory");
        let file = bin.join("kubectl");
        let line = format!("#!/bin/sh\nexec '{}' kubectl \"$@\"\n", program.display());
        write_program(&file, line.as_bytes());
        let plugin = env!("CARGO_BIN_EXE_kubectl-stayput");
        std::os::unix::fs::symlink(plugin, bin.join("kubectl-stayput")).expect("a link");
        Self { directory, kubectl: kubectl.clone() }
    }

    /// With this program, too.
    pub(crate) fn with(self, name: &str, program: &Path) -> Self {
        let link = self.directory.path().join("bin").join(name);
        std::os::unix::fs::symlink(program, link).expect("a link");
        self
    }

    /// Writes a file of the directory.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Runs a script that must not fail; its output.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> String {
        let bin = self.directory.path().join("bin");
        let path = std::env::var("PATH").expect("a PATH");
        // A script may wait for something that never happens, and ends with the test.
        let output = Command::new("setpriv")
            .args(["--pdeathsig=TERM", "--", "timeout", "1800", "sh", "-eu", "-c", script])
            .current_dir(self.directory.path())
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("HOME", self.directory.path())
            .env("KUBECONFIG", self.kubectl.kubeconfig())
            .output()
            .expect("a shell");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{printed}\n{errors}");
        printed
    }
}
