//! `watch`, `restart --watch` and `--wait`: a line for each change, and an exit code at the end.

use serde_json::{Value, json};
use stayput_restart::{Request, annotation};

use super::fixture::{Fixture, idle, under_way};
use super::running::Running;
use crate::support::lease::lead;
use stayput_standin::apiserver::{Fault, How};

fn over(id: &str, outcome: &str) -> Value {
    let mut status = idle();
    status["history"][0]["id"] = id.into();
    status["history"][0]["outcome"] = outcome.into();
    status["history"][0]["reason"] = if outcome == "done" { "" } else { "cancelled" }.into();
    status["handled"] = json!([id]);
    status
}

#[tokio::test]
async fn a_restart_is_followed_from_the_request_to_its_end() {
    let fixture = Fixture::with(idle()).await;
    let mut watch = Running::start(&fixture, "restart --watch");
    watch.until("of logs requested").await;
    let id = Request::parse(&fixture.annotation(annotation::REQUEST).await.unwrap()).unwrap().id;
    watch.until("is requested").await;
    let mut status = under_way(&id, "rolling");
    for member in status["restart"]["members"].as_array_mut().unwrap() {
        let pod = fixture.pods().get(member["pod"].as_str().unwrap()).await.unwrap();
        member["podUid"] = pod.metadata.uid.into();
        member["step"] = "restarting".into();
    }
    fixture.status(status).await;
    watch.until("rolling restart ").await;
    let blocked = watch.until("blocked by health").await;
    assert!(blocked.ends_with("blocked by health: the cluster is red: a primary of index a"));
    fixture.annotate_pod("logs-2", json!({annotation::PHASE: "stop"})).await;
    assert!(watch.until("logs-2").await.ends_with("logs-2  stop"));
    let last = json!({
        "id": id, "outcome": "done", "started": "2026-11-21T03:08:00.000Z", "seconds": 7,
    });
    let last = last.to_string();
    fixture
        .annotate_pod("logs-2", json!({annotation::PHASE: null, annotation::LAST_RESTART: last}))
        .await;
    assert!(watch.until("logs-2").await.ends_with("logs-2  done after 7s"));
    fixture.status(over(&id, "done")).await;
    watch.until(" done: 3 nodes in 1m 40s").await;
    assert_eq!(watch.code().await, Some(0));
}

#[tokio::test]
async fn a_watch_of_nothing_ends_in_time_and_says_so() {
    let fixture = Fixture::with(idle()).await;
    for id in ["", "--id nobody"] {
        // On a slow machine the first look takes longer.
        for limit in ["100ms", "1s", "20s"] {
            let ended = fixture.run(&format!("watch logs {id} --timeout {limit}")).await;
            assert_eq!(ended.code, 124, "{}", ended.stderr);
            if ended.stdout.contains("waiting for") {
                let expected = format!("nobody has requested this restart within {limit}");
                assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
                break;
            }
            assert_ne!(limit, "20s", "it never looked");
        }
    }
}

#[tokio::test]
async fn a_restart_that_does_not_end_as_done_is_1() {
    for (line, outcome) in [("watch", "aborted"), ("watch --id b", "rolledBack")] {
        let fixture = Fixture::with(under_way("b", "rolling")).await;
        let mut watch = Running::start(&fixture, line);
        watch.until("rolling restart b of 3 nodes").await;
        fixture.status(over("b", outcome)).await;
        watch.until(outcome).await;
        assert_eq!(watch.code().await, Some(1), "{line}");
    }
}

#[tokio::test] // proves UPDATE-46
async fn what_is_over_ends_at_once_and_what_is_not_is_124() {
    let fixture = Fixture::with(idle()).await;
    let printed = fixture.succeeds("watch --id a").await;
    assert!(printed.ends_with("restart a done: 3 nodes in 1m 40s\n"), "{printed}");
    assert_eq!(printed.lines().count(), 1);
    // A restart that was requested before can be waited for as well.
    let printed = fixture.succeeds("restart --id a --wait").await;
    assert!(printed.ends_with("restart a done: 3 nodes in 1m 40s\n"), "{printed}");

    let fixture = Fixture::with(under_way("b", "rolling")).await;
    let error = fixture.fails("watch --timeout 300ms", 124).await;
    assert!(error.contains("not over after 300ms"), "{error}");
    // The time is that of all that is asked.
    fixture.server.inject(Fault::new(How::Hang).resource("searchclusters").times(u32::MAX));
    let error = fixture.fails("watch --timeout 300ms", 124).await;
    assert!(error.contains("not over after 300ms"), "{error}");
}

#[tokio::test]
async fn who_does_not_wait_gives_no_time_for_it() {
    let fixture = Fixture::with(idle()).await;
    for line in ["restart --timeout 1h", "restart --dry-run --timeout 1h", "restart --wait --watch"]
    {
        let error = fixture.fails(line, 64).await;
        assert!(error.contains("--wait"), "{line}: {error}");
    }
    assert_eq!(fixture.annotation(annotation::REQUEST).await, None);
    fixture.fails("restart --wait --timeout 300ms", 124).await;
}

#[tokio::test] // proves UPDATE-43
async fn who_waits_is_told_why_nothing_happens() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    lead(fixture.client.clone(), "2026-11-21T03:00:00.000000Z").await;
    // Also who wants to see only the end.
    for line in ["watch", "restart --id b --wait"] {
        let mut watch = Running::start(&fixture, line);
        let told = watch.until("the leader one has not renewed its Lease").await;
        assert!(told.contains("reconciler: "), "{told}");
    }
    let mut watch = Running::start(&fixture, "watch -o json");
    watch.until("has not renewed").await;

    let fixture = Fixture::with(under_way("b", "rolling")).await;
    fixture.server.inject(Fault::new(How::LoseRequest).verb("watch").times(u32::MAX));
    let mut watch = Running::start(&fixture, "watch");
    let told = watch.until("cannot reach the apiserver to watch").await;
    assert!(told.ends_with("; trying again"), "{told}");
    fixture.server.clear_faults();
    fixture.status(under_way("b", "coordinated")).await;
    watch.until("the apiserver answers again").await;
    fixture.status(over("b", "done")).await;
    watch.until(" done: 3 nodes").await;
    assert_eq!(watch.code().await, Some(0));
}

#[tokio::test]
async fn lines_for_programs_are_json_and_the_last_tells_the_end() {
    let fixture = Fixture::with(idle()).await;
    let printed = fixture.succeeds("restart --id a --watch --output json").await;
    let lines: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["result"], "alreadyRequested");
    assert_eq!(lines[1]["ended"]["outcome"], "done");
    assert_eq!(lines.len(), 2);
}

#[tokio::test]
async fn a_deleted_search_cluster_is_no_reason_to_wait() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    let mut watch = Running::start(&fixture, "watch");
    watch.until("rolling restart b").await;
    fixture.clusters().delete("logs", &Default::default()).await.unwrap();
    assert_eq!(watch.code().await, Some(1));
}
