//! `--output json` of every command is what `proto/kubectl-stayput.schema.json` says.

use serde_json::{Value, json};

use super::fixture::{Fixture, idle, is_as_published, under_way};
use super::running::Running;

/// Nobody listens there.
const NOBODY: &str = "--reconciler http://127.0.0.1:1";

impl Fixture {
    /// What the command prints for programs, whatever its exit code.
    async fn printed(&self, line: &str) -> Value {
        let ended = self.run(&format!("{line} -o json")).await;
        let printed = serde_json::from_str(&ended.stdout);
        let printed = printed.unwrap_or_else(|error| panic!("{line}: {error}: {}", ended.stderr));
        is_as_published(line, &printed);
        printed
    }
}

#[tokio::test] // proves DOCTOR-3
async fn what_is_shown_is_as_published() {
    for status in [idle(), under_way("b", "coordinated")] {
        let fixture = Fixture::with(status).await;
        // Then no port is forwarded to it.
        fixture.delete_lease().await;
        for line in [
            "status logs",
            "status -A",
            "history",
            "history -A",
            "why logs-0",
            "plan",
            "plan --snapshot proto/samples/snapshot.json",
            "diff",
            &format!("doctor {NOBODY}"),
            "restart --dry-run",
            "inject --check src/inject/tests/manifests/hand-written.yaml",
        ] {
            fixture.printed(line).await;
        }
        let mut ui = Running::start(&fixture, "ui logs -o json");
        // Its only field.
        let address = ui.until("http://").await;
        is_as_published("ui", &serde_json::from_str(&format!("{{{address}}}")).unwrap());
    }
}

#[tokio::test] // proves DOCTOR-3
async fn what_is_done_is_as_published() {
    let fixture = Fixture::with(idle()).await;
    for line in [
        "pause",
        "pause",
        "resume",
        "resume",
        "stop logs-1",
        "start logs-1",
        "start logs-1 --dry-run",
        "restart --id c",
        "restart --id c",
        "cancel",
        "init logs --dry-run",
        "init logs",
        "init logs",
    ] {
        fixture.printed(line).await;
    }
    let mut watch = Running::start(&fixture, "watch -o json");
    let line = watch.until("waiting for the next one").await;
    is_as_published("watch", &serde_json::from_str(&line).unwrap());
    fixture.status(under_way("b", "rolling")).await;
    let shown = fixture.printed("detach --cancel --dry-run").await;
    assert_eq!(shown["result"], "dryRun");
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps[0], "restart b is cancelled, and its end is waited for");
    assert!(steps[1].as_str().unwrap().starts_with("SearchCluster default/logs is deleted"));
    fixture.status(idle()).await;
    // As the reconciler does when nothing is owed.
    fixture.change(json!({"metadata": {"finalizers": null}})).await;
    let done = fixture.printed("detach --yes").await;
    assert_eq!(done["result"], json!("detached"));
}
