//! `kubectl stayput <TAB>`, as kubectl asks it of a plugin.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::kubernetes::apiserver::{ApiServer, part};

/// In a namespace with the SearchCluster `logs`.
pub(super) fn completed(server: &ApiServer) {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["kubectl-stayput", "kubectl_complete-stayput"] {
        let link = directory.path().join(name);
        symlink(env!("CARGO_BIN_EXE_kubectl-stayput"), link).expect("a link");
    }
    let kubectl = part("STAYPUT_KUBE").expect("the apiserver was started with it");
    let complete = |words: &[&str]| {
        let output = Command::new(&kubectl)
            .args(["kubectl", "__complete", "stayput"])
            .args(words)
            .env_clear()
            .env("PATH", directory.path())
            .env("HOME", directory.path())
            .env("KUBECONFIG", server.admin().kubeconfig())
            .output()
            .expect("kubectl can be executed");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["hist"]), ["history\tShow the restarts that have ended", ":4"]);
    assert_eq!(complete(&["runbook", "quo"]), ["quorum", ":4"]);
    assert_eq!(complete(&["-n", "search", "status", "lo"]), ["logs", ":4"]);
    assert_eq!(complete(&["-n", "default", "status", "lo"]), [":4"]);
}
