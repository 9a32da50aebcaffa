//! `restart`, `cancel`, `stop` and `start`: what is written, and what is refused.

use serde_json::{Value, json};
use stayput_restart::{Request, Strategy, annotation};

use super::stage::{Stage, idle, under_way};

async fn request(stage: &Stage) -> Option<Request> {
    let text = stage.annotation(annotation::REQUEST).await?;
    Some(Request::parse(&text).unwrap())
}

#[tokio::test]
async fn a_restart_is_one_annotation_with_an_id_of_its_own() {
    let stage = Stage::with(idle()).await;
    let said = stage.good("restart").await;
    let written = request(&stage).await.unwrap();
    assert_eq!(said, format!("rolling restart {} of logs asked for\n", written.id));
    assert_eq!(written.id.len(), 12);
    let expected =
        Request { by: Some("anybody".into()), id: written.id.clone(), ..Request::default() };
    assert_eq!(written, expected);
    // Nobody has taken it up: another one would be lost, or this one.
    let error = stage.bad("restart", 1).await;
    assert!(error.contains("is not taken up yet") && error.contains("stayput cancel"), "{error}");
    let again = stage.good(&format!("restart --id {}", written.id)).await;
    assert!(again.contains("was asked for before"), "{again}");
    assert!(stage.good("status").await.contains(": not taken up yet\n"));
    assert!(stage.good("cancel").await.contains("withdrawn before it was taken up"));
    assert_eq!(request(&stage).await, None);
    // One of the history is asked for no second time.
    assert_eq!(stage.json("restart --id a").await["done"], "alreadyRequested");
    assert_eq!(request(&stage).await, None);
}

#[tokio::test]
async fn every_option_is_in_the_request() {
    let stage = Stage::with(idle()).await;
    let line = "restart logs --coordinated --yes --node logs-1 --node logs-0 --node logs-1 --role \
                data --zone z1 --not-before 2026-11-21T03:00:00Z --deadline 1h --id c";
    let told = stage.json(line).await;
    assert_eq!(
        told,
        json!({
            "cluster": "logs", "namespace": "default", "done": "requested", "id": "c",
            "strategy": "coordinated", "nodes": ["logs-1", "logs-0"],
        })
    );
    let text = stage.annotation(annotation::REQUEST).await.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({
            "id": "c", "strategy": "coordinated", "by": "anybody", "deadline": "1h",
            "notBefore": "2026-11-21T03:00:00.000Z",
            "target": {"nodes": ["logs-0", "logs-1"], "role": "data", "zone": "z1"},
        })
    );
}

#[tokio::test]
async fn what_the_reconciler_would_refuse_or_overlook_is_refused_here() {
    let stage = Stage::with(idle()).await;
    for (line, code, part) in [
        ("restart --coordinated", 64, "is an outage: 3 nodes of logs"),
        ("restart --id a/b", 64, "is not a valid restart id"),
        ("restart --node logs-7", 1, "logs has no node logs-7; there are: logs-0, logs-1, logs-2"),
    ] {
        let error = stage.bad(line, code).await;
        assert!(error.contains(part), "{line}: {error}");
    }
    stage.annotate_pod("logs-2", json!({"stayput.dev/stopped": "true"})).await;
    let error = stage.bad("restart --node logs-2", 1).await;
    assert!(error.contains("logs-2 is kept stopped"), "{error}");
    assert_eq!(request(&stage).await, None);

    let unseen = Stage::empty().await;
    unseen.declare("logs").await;
    let error = unseen.bad("restart", 1).await;
    assert!(error.contains("stayput-reconciler has not looked at it yet"), "{error}");
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_tells_the_order() {
    let stage = Stage::with(idle()).await;
    let page = stage.good("restart --dry-run --id d").await;
    assert!(page.contains("order       logs-2, logs-1, logs-0\n"), "{page}");
    assert!(page.contains("Nothing was asked"), "{page}");
    let told = stage.json("restart --coordinated --dry-run --node logs-1").await;
    assert_eq!((&told["done"], &told["nodes"]), (&json!("nothing"), &json!(["logs-1"])));
    assert_eq!(request(&stage).await, None);
}

#[tokio::test]
async fn a_request_while_one_is_under_way_says_what_becomes_of_it() {
    let mut status = under_way("b", "rolling");
    status["queued"] = json!({"id": "q", "strategy": "rolling", "target": {}});
    let stage = Stage::with(status).await;
    stage.change(json!({"spec": {"paused": true}})).await;
    let said = stage.good("restart --id n").await;
    assert_eq!(
        said,
        "rolling restart n of logs asked for\nit begins when restart b is over\nrestart q, which \
         waited for that, is given up for it\nno node is stopped while spec.paused is true\n"
    );
    assert_eq!(request(&stage).await.map(|request| request.strategy), Some(Strategy::Rolling));
}

#[tokio::test]
async fn a_coordinated_request_says_whose_place_it_takes() {
    let mut status = under_way("b", "coordinated");
    status["blocked"] = json!("stranded");
    let stage = Stage::with(status).await;
    let said = stage.good("restart --coordinated --yes --id n").await;
    assert_eq!(
        said,
        "coordinated restart n of logs asked for\nit takes the place of restart b, which can go \
         neither on nor back, if it means all of its nodes\n"
    );
}

#[tokio::test]
async fn cancel_names_the_restart_under_way() {
    let stage = Stage::with(under_way("b", "rolling")).await;
    assert!(stage.good("cancel").await.contains("no further node is stopped"));
    assert_eq!(stage.annotation(annotation::CANCEL).await.as_deref(), Some("b"));
    let error = stage.bad("cancel --id x", 1).await;
    assert!(error.contains("knows no restart x"), "{error}");

    let mut frozen = under_way("b", "coordinated");
    frozen["restart"]["frozen"] = "2026-11-21T03:09:00Z".into();
    stage.status(frozen).await;
    let error = stage.bad("cancel", 1).await;
    assert!(error.contains("cannot be cancelled any more"), "{error}");
    stage.status(idle()).await;
    let error = stage.bad("cancel", 1).await;
    assert!(error.contains("no restart under way"), "{error}");
    let error = stage.bad("cancel --id a", 1).await;
    assert!(error.contains("restart a is over: done"), "{error}");
}

#[tokio::test]
async fn stop_and_start_mark_the_pods_and_tell_the_cost() {
    let stage = Stage::with(idle()).await;
    let key = annotation::STOPPED;
    let page = stage.good("stop logs-1 logs-2 --dry-run").await;
    assert!(page.contains("1 of 3 nodes of logs serve"), "{page}");
    assert_eq!(stage.pod_annotation("logs-1", key).await, None);
    stage.good("stop logs-1 logs-2").await;
    for pod in ["logs-1", "logs-2"] {
        assert_eq!(stage.pod_annotation(pod, key).await.as_deref(), Some("true"));
    }
    let all = stage.good("stop logs-0 logs-2 --dry-run").await;
    assert!(all.contains("NO node is left: this is an outage"), "{all}");
    assert!(stage.good("status").await.contains("logs-1   (kept stopped)"));
    assert_eq!(stage.json("start logs-1").await["done"], "started");
    assert_eq!(stage.pod_annotation("logs-1", key).await, None);
    stage.change(json!({"spec": {"stopped": ["logs-2"]}})).await;
    let error = stage.bad("start logs-2", 1).await;
    assert!(error.contains("spec.stopped of SearchCluster logs names logs-2"), "{error}");
    assert_eq!(stage.pod_annotation("logs-2", key).await.as_deref(), Some("true"));
}
