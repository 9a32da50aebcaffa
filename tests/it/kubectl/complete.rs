//! `kubectl stayput <TAB>`: the names of clusters and nodes are the apiserver's. `tests/real/kubernetes/init.rs`
//! asks with kubectl itself.

use std::process::{Command, Stdio};

use super::fixture::{Fixture, idle};
use crate::support::program::finish;

/// What kubectl is answered; the last of the words is being typed, and may be empty.
async fn asked(fixture: &Fixture, line: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("kubectl_complete-stayput");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-stayput"), &name).unwrap();
    let mut command = Command::new(name);
    command.args(line.split(' ')).stdin(Stdio::null());
    command.env("KUBECONFIG", fixture.kubeconfig());
    let ended = tokio::task::spawn_blocking(move || finish(&mut command)).await.unwrap();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}");
    let words = ended.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned());
    // Options are offered, too.
    words.filter(|word| !word.starts_with(['-', ':'])).collect()
}

/// The same, of a line with names. Somebody waits for them: without an answer in time there are none, and
/// then they are asked for again.
async fn names(fixture: &Fixture, line: &str) -> Vec<String> {
    for _ in 0..20 {
        let words = asked(fixture, line).await;
        if !words.is_empty() {
            return words;
        }
    }
    panic!("{line}: no names");
}

#[tokio::test] // proves OPERATE-15
async fn clusters_and_nodes_are_completed_from_the_apiserver() {
    let fixture = Fixture::with(idle()).await;
    fixture.declare("metrics").await;
    fixture.pod("metrics", 0).await;
    assert_eq!(names(&fixture, "status ").await, ["logs", "metrics"]);
    assert_eq!(names(&fixture, "status me").await, ["metrics"]);
    assert_eq!(names(&fixture, "why logs-").await, ["logs-0", "logs-1", "logs-2"]);
    assert_eq!(names(&fixture, "why --cluster metrics ").await, ["metrics-0"]);
    assert_eq!(names(&fixture, "restart metrics --node ").await, ["metrics-0"]);
    assert_eq!(asked(&fixture, "-n elsewhere status ").await, [""; 0]);
    assert_eq!(names(&fixture, "stop logs-0 metr").await, ["metrics-0"]);
}

/// Nobody waits for long, and no error disturbs the line.
#[tokio::test] // proves OPERATE-15
async fn without_an_answer_there_are_no_names() {
    let bare = Fixture::bare().await;
    assert_eq!(asked(&bare, "status ").await, [""; 0]);
    assert_eq!(asked(&bare, "--kubeconfig /nonexistent why ").await, [""; 0]);
}
