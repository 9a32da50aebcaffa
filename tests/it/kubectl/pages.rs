//! `status`, `why`, `plan`, `history`, and the errors if there is nothing to show.

use serde_json::json;

use super::fixture::{Fixture, idle, under_way};
use crate::support::lease::lead;
use crate::support::ports::closed_port;
use crate::support::program::{finish, kubectl_stayput};
use stayput_standin::apiserver::{Fault, How};

#[test]
fn usage_errors_are_64_and_help_is_none() {
    let nowhere = std::path::Path::new("/nonexistent/kubeconfig");
    for line in [
        "",
        "frobnicate",
        "why",
        "stop",
        "status -o yaml",
        "restart --deadline soon",
        "restart --dry-run --watch",
        "restart --not-before tomorrow",
        "uninject -o json",
        "runbook quorum -o json",
        "completion bash -o json",
        "status",
    ] {
        let ended = finish(&mut kubectl_stayput(nowhere, line.split_whitespace()));
        assert_eq!((ended.code, ended.stdout.as_str()), (64, ""), "{line}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty(), "{line}");
        if line == "status" {
            assert!(
                ended.stderr.contains("there is no kubeconfig (/nonexistent/kubeconfig)"),
                "{}",
                ended.stderr
            );
        }
    }
    for line in ["--help", "restart --help", "help watch", "--version"] {
        let ended = finish(&mut kubectl_stayput(nowhere, line.split_whitespace()));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}");
        assert!(!ended.stdout.is_empty(), "{line}");
    }
}

#[tokio::test]
async fn what_is_missing_is_named_with_its_remedy() {
    let fixture = Fixture::bare().await;
    let error = fixture.fails("status", 1).await;
    assert!(
        error.contains("has no resource SearchCluster") && error.contains("kubectl apply -k"),
        "{error}"
    );

    let fixture = Fixture::empty().await;
    let error = fixture.fails("status", 1).await;
    assert!(error.contains("namespace default has no SearchCluster: declare one"), "{error}");
    fixture.declare("logs").await;
    let error = fixture.fails("status --namespace other", 1).await;
    assert!(error.contains("namespace other has no SearchCluster"), "{error}");
    assert!(error.contains("there are default/logs"), "{error}");
    let error = fixture.fails("status traces", 1).await;
    assert!(error.contains("no SearchCluster traces; there are: logs"), "{error}");
    assert!(
        fixture
            .succeeds("status")
            .await
            .contains("stayput-reconciler has not processed this SearchCluster yet")
    );
    fixture.declare("metrics").await;
    let error = fixture.fails("status", 1).await;
    assert!(error.contains("has 2 SearchClusters, choose one: logs, metrics"), "{error}");
    assert!(fixture.succeeds("status metrics").await.starts_with("cluster     default/metrics\n"));
    let error = fixture.fails("status --context elsewhere", 64).await;
    assert!(error.contains("--context"), "{error}");
}

#[tokio::test]
async fn who_may_not_is_told_what_to_ask_for_and_who_cannot_is_2() {
    let fixture = Fixture::empty().await;
    fixture.server.inject(Fault::new(How::Refuse(403)).verb("list").resource("searchclusters"));
    let error = fixture.fails("status", 1).await;
    assert!(
        error.contains("you may not list searchclusters.stayput.dev in namespace default"),
        "{error}"
    );
    assert!(
        error.contains("a Role there with the verb list on searchclusters.stayput.dev;"),
        "{error}"
    );
    let mut command = fixture.command("status");
    let nowhere = format!("http://127.0.0.1:{}", closed_port());
    let kubeconfig = fixture.server.kubeconfig().replace(fixture.server.url(), &nowhere);
    std::fs::write(fixture.kubeconfig(), kubeconfig).unwrap();
    let ended = tokio::task::spawn_blocking(move || finish(&mut command)).await.unwrap();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot reach the apiserver"), "{}", ended.stderr);
}

#[tokio::test]
async fn what_blocks_is_in_status_plan_and_why() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    let blocked = "blocked by  health: the cluster is red: a primary of index a\n";
    for line in ["status", "status logs", "plan"] {
        let page = fixture.succeeds(line).await;
        assert!(page.contains(blocked), "{line}: {page}");
    }
    let why = fixture.succeeds("why logs-0").await;
    assert!(
        why.contains("why         health: the cluster is red: a primary of index a\n"),
        "{why}"
    );
    let error = fixture.fails("why logs-7", 1).await;
    assert!(error.contains("no SearchCluster has a node logs-7"), "{error}");
    assert!(error.contains("there are: logs-0, logs-1, logs-2"), "{error}");

    let status = fixture.json("status").await;
    assert_eq!(status["hasStatus"], true);
    assert_eq!(status["blocked"], "health");
    assert_eq!(status["restart"]["request"]["id"], "b");
    assert_eq!(
        (&status["restart"]["nodes"], &status["restart"]["finished"]),
        (&json!(3), &json!(0))
    );
    let why = fixture.json("why logs-0").await;
    assert_eq!((&why["name"], &why["blockedBy"]), (&json!("logs-0"), &json!("health")));
    let plan = fixture.json("plan").await;
    assert_eq!((&plan["blocked"], &plan["restarting"]), (&json!("health"), &json!([])));
}

#[tokio::test] // proves UPDATE-43
async fn where_no_reconciler_works_that_is_said_and_who_may_not_know_is_told_nothing() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    let warning = "the leader one has not renewed its Lease for";
    let read = "until one works, nothing is done and the status is stale: \
                `kubectl stayput runbook reconciler_absent`\n";
    let said = async |line: &str| {
        let page = fixture.succeeds(line).await;
        let output = fixture.json(line).await;
        let one = if line.ends_with("-A") { &output["clusters"][0] } else { &output };
        let output = &one["reconciler"];
        assert_eq!(page.contains("reconciler"), output.is_string(), "{line}: {page}");
        (page, output.as_str().unwrap_or_default().to_owned())
    };
    let reads = ["status", "status -A", "history", "history -A", "why logs-0"];
    let lines = reads.into_iter().chain(["pause", "resume", "stop logs-1", "start logs-1"]);
    let lines: Vec<&str> = lines.collect();
    for line in &lines {
        assert_eq!(said(line).await.1, "", "{line}: one works");
    }
    lead(fixture.client.clone(), "2026-11-21T03:00:00.000000Z").await;
    for line in &lines {
        let (page, output) = said(line).await;
        assert!(output.starts_with(warning), "{line}: {output}");
        assert!(page.contains(read), "{line}: {page}");
    }
    fixture.delete_lease().await;
    let (_, output) = said("status").await;
    assert!(output.starts_with("there is no Lease stayput-reconciler"), "{output}");
    let refuse = Fault::new(How::Refuse(403)).resource("leases").times(u32::MAX);
    fixture.server.inject(refuse);
    for line in &lines {
        assert_eq!(said(line).await.1, "", "{line}: it cannot be read");
    }
}

#[tokio::test] // proves UPDATE-48
async fn commands_find_the_same_apiserver() {
    let fixture = Fixture::with(idle()).await;
    let page = fixture.succeeds("stop logs-1 --dry-run --context stand-in").await;
    let start = "`kubectl stayput --context stand-in -n default start logs-1 --cluster logs`";
    assert!(page.contains(start), "{page}");
    let end = "\ncommands    that the reconciler has written also need --context stand-in\n";
    for line in ["status", "why logs-1"] {
        assert!(!fixture.succeeds(line).await.contains("\ncommands"), "{line}");
        let page = fixture.succeeds(&format!("{line} --context stand-in")).await;
        assert!(page.ends_with(end), "{line}: {page}");
    }
    let context = " --context stand-in";
    let page = fixture.succeeds(&format!("plan{context}")).await;
    assert!(page.ends_with(end), "{page}");
    fixture.delete_lease().await;
    let page = fixture.succeeds(&format!("plan{context}")).await;
    assert!(page.contains("; see `kubectl --context stand-in -n stayput get pods`"), "{page}");

    let unprocessed = Fixture::empty().await;
    unprocessed.declare("logs").await;
    let command = "`kubectl --context stand-in get pods -A -l app.kubernetes.io/name=stayput-recon";
    for line in ["status", "plan", "status -A", "history"] {
        let page = unprocessed.succeeds(&format!("{line}{context}")).await;
        assert!(page.contains(command), "{line}: {page}");
    }
    let error = unprocessed.fails(&format!("restart{context}"), 1).await;
    assert!(error.contains(command), "{error}");
    let bare = Fixture::bare().await;
    let error = bare.fails(&format!("status{context}"), 1).await;
    assert!(error.contains("`kubectl --context stand-in apply -k deploy/`"), "{error}");
}

#[tokio::test]
async fn a_node_is_found_in_whichever_cluster_it_is() {
    let fixture = Fixture::with(idle()).await;
    fixture.declare("traces").await;
    fixture.pod("traces", 0).await;
    assert!(
        fixture
            .succeeds("why traces-0")
            .await
            .starts_with("node        traces-0 of default/traces\n")
    );
    let error = fixture.fails("why traces-0 --cluster logs", 1).await;
    assert!(error.contains("there are: logs-0"), "{error}");
}

#[tokio::test]
async fn history_is_a_table() {
    let fixture = Fixture::with(idle()).await;
    let table = fixture.succeeds("history").await;
    assert!(table.starts_with("STARTED  "), "{table}");
    assert!(
        table.contains("\n2026-11-21T03:08:00Z   1m 40s   rolling    3       done      a\n"),
        "{table}"
    );
    assert_eq!(fixture.json("history").await["history"][0]["outcome"], "done");
}
