//! `restart`, `cancel`, `pause`, `stop` and `start`: what they write, and what they refuse.

use std::time::Duration;

use serde_json::{Value, json};
use stayput_restart::{Request, Strategy, annotation};
use stayput_standin::apiserver::{Asked, Fault, How};

use super::fixture::{Fixture, idle, under_way};
use crate::support::lease::{lead, lead_throughout};

async fn request(fixture: &Fixture) -> Option<Request> {
    let text = fixture.annotation(annotation::REQUEST).await?;
    Some(Request::parse(&text).unwrap())
}

#[tokio::test]
async fn a_restart_is_one_annotation_with_an_id_of_its_own() {
    let fixture = Fixture::with(idle()).await;
    let page = fixture.succeeds("restart").await;
    let written = request(&fixture).await.unwrap();
    assert_eq!(page, format!("rolling restart {} of logs requested\n", written.id));
    assert_eq!(written.id.len(), 12);
    let expected =
        Request { by: Some("anybody".into()), id: written.id.clone(), ..Request::default() };
    assert_eq!(written, expected);
    // The reconciler has not accepted it yet: another request would overwrite it.
    let error = fixture.fails("restart", 1).await;
    let cancel =
        format!("withdraw it with `kubectl stayput -n default cancel logs --id {}`", written.id);
    assert!(error.contains("is not accepted yet") && error.contains(&cancel), "{error}");
    let again = fixture.succeeds(&format!("restart --id {}", written.id)).await;
    assert!(again.contains("was requested before"), "{again}");
    assert!(fixture.succeeds("status").await.contains(": not accepted yet\n"));
    assert!(fixture.succeeds("cancel").await.contains("withdrawn before it was accepted"));
    assert_eq!(request(&fixture).await, None);
    // A restart in the history is not requested a second time.
    assert_eq!(fixture.json("restart --id a").await["result"], "alreadyRequested");
    assert_eq!(request(&fixture).await, None);
}

#[tokio::test] // proves RESTART-140
async fn a_request_has_our_finalizer_with_it_only_where_a_reconciler_works() {
    let fixture = Fixture::with(idle()).await;
    let finalizers = async || fixture.clusters().get("logs").await.unwrap().metadata.finalizers;
    let request = async || {
        fixture.succeeds("restart").await;
        let finalizers = finalizers().await;
        fixture.succeeds("cancel").await;
        finalizers
    };
    fixture.delete_lease().await;
    assert_eq!(request().await, None, "there is no Lease");
    lead(fixture.client.clone(), "2026-11-21T03:00:00.000000Z").await;
    assert_eq!(request().await, None, "nobody has renewed it for long");
    fixture.change(json!({"metadata": {"finalizers": ["example.org/other"]}})).await;
    lead_throughout(fixture.client.clone()).await;
    let both = ["example.org/other".to_owned(), annotation::FINALIZER.to_owned()];
    assert_eq!(request().await.unwrap(), both);
    assert_eq!(request().await.unwrap(), both, "it is there once");
    fixture.change(json!({"metadata": {"finalizers": null}})).await;
    let patches = |asked: &Asked| asked.verb == "patch" && asked.resource == "searchclusters";
    let before = fixture.server.counts();
    fixture.succeeds("restart").await;
    assert_eq!(fixture.server.counts().since(&before).matching(patches), 1);
    assert_eq!(finalizers().await.unwrap(), [annotation::FINALIZER]);
}

#[tokio::test]
async fn every_option_is_in_the_request() {
    let fixture = Fixture::with(idle()).await;
    let line = "restart logs --coordinated --yes --node logs-1 --node logs-0 --node logs-1 --role \
                data --zone z1 --not-before 2026-11-21T03:00:00Z --deadline 1h --id c --skip-rule \
                one_master_at_a_time --allow-unreplicated scratch-* --allow-outage --outside-windows";
    let output = fixture.json(line).await;
    assert_eq!(
        output,
        json!({
            "cluster": "logs", "namespace": "default", "result": "requested", "id": "c",
            "strategy": "coordinated", "nodes": ["logs-1", "logs-0"],
        })
    );
    let text = fixture.annotation(annotation::REQUEST).await.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({
            "id": "c", "strategy": "coordinated", "by": "anybody", "deadline": "1h",
            "notBefore": "2026-11-21T03:00:00.000Z",
            "target": {"nodes": ["logs-0", "logs-1"], "role": "data", "zone": "z1"},
            "skipRules": ["one_master_at_a_time"], "allowUnreplicated": ["scratch-*"],
            "allowOutage": true, "outsideWindows": true,
        })
    );
}

#[tokio::test] // proves UPDATE-37
async fn a_rule_that_protects_data_is_not_skipped_and_an_unknown_one_is_told_with_the_list() {
    let fixture = Fixture::with(idle()).await;
    let error = fixture.fails("restart --skip-rule quorum", 64).await;
    assert!(
        error.contains("cannot be skipped: only allowOutage (in one request, --allow-outage;"),
        "{error}"
    );
    let error = fixture.fails("restart --skip-rule unreplicated_index", 64).await;
    assert!(error.contains("--allow-unreplicated"), "{error}");
    let error = fixture.fails("restart --skip-rule one_master", 64).await;
    assert!(error.contains("the names are data_tier_with_higher_priority"), "{error}");
    assert_eq!(request(&fixture).await, None);
}

#[tokio::test] // proves UPDATE-39
async fn an_outage_is_confirmed_shown_and_told_how_to_end() {
    let fixture = Fixture::with(idle()).await;
    let error = fixture.fails("restart --allow-outage --node logs-1", 64).await;
    assert!(error.contains("This restart of 1 node of logs may be an outage"), "{error}");
    assert_eq!(request(&fixture).await, None);
    let dry = fixture.succeeds("restart --allow-outage --dry-run --id d").await;
    assert!(dry.contains("rolling d, allowing an outage"), "{dry}");
    fixture.succeeds("restart --allow-outage --yes --id o").await;
    assert!(request(&fixture).await.unwrap().allow_outage);

    let mut status = under_way("o", "rolling");
    status["restart"]["request"]["allowOutage"] = true.into();
    fixture.status(status).await;
    let line = "outage      allowed by restart o: its nodes are stopped even if no master";
    for command in ["status", "why logs-1"] {
        let page = fixture.succeeds(command).await;
        assert!(page.contains(line) && page.contains("stayput -n default cancel logs"), "{page}");
    }
    let mut status = idle();
    status["history"][0]["allowedOutage"] = true.into();
    fixture.status(status).await;
    let history = fixture.succeeds("history").await;
    assert!(history.contains("an outage was allowed"), "{history}");
    assert!(!fixture.succeeds("status").await.contains("outage      allowed"));
}

#[tokio::test]
async fn what_the_reconciler_would_refuse_or_overlook_is_refused_here() {
    let fixture = Fixture::with(idle()).await;
    for (line, code, part) in [
        ("restart --coordinated", 64, "is an outage: 3 nodes of logs"),
        ("restart --allow-outage", 64, "This restart of 3 nodes of logs may be an outage"),
        ("restart --id a/b", 64, "is not a valid restart id"),
        ("restart --node logs-7", 1, "logs has no node logs-7; there are: logs-0, logs-1, logs-2"),
    ] {
        let error = fixture.fails(line, code).await;
        assert!(error.contains(part), "{line}: {error}");
    }
    fixture.annotate_pod("logs-2", json!({"stayput.dev/stopped": "true"})).await;
    let error = fixture.fails("restart --node logs-2", 1).await;
    assert!(error.contains("logs-2 is kept stopped"), "{error}");
    assert!(error.contains("`kubectl stayput -n default start logs-2 --cluster logs`"), "{error}");
    assert_eq!(request(&fixture).await, None);

    let unprocessed = Fixture::empty().await;
    unprocessed.declare("logs").await;
    let error = unprocessed.fails("restart", 1).await;
    assert!(
        error.contains("stayput-reconciler has not processed this SearchCluster yet"),
        "{error}"
    );
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_tells_the_order() {
    let fixture = Fixture::with(idle()).await;
    let page = fixture.succeeds("restart --dry-run --id d").await;
    assert!(page.contains("order       logs-2, logs-1, logs-0\n"), "{page}");
    assert!(page.contains("nothing was requested"), "{page}");
    let output = fixture.json("restart --coordinated --dry-run --node logs-1").await;
    assert_eq!((&output["result"], &output["nodes"]), (&json!("dryRun"), &json!(["logs-1"])));
    assert_eq!(request(&fixture).await, None);
}

#[tokio::test]
async fn a_request_while_one_is_under_way_says_what_becomes_of_it() {
    let mut status = under_way("b", "rolling");
    status["queued"] = json!({"id": "q", "strategy": "rolling", "target": {}});
    let fixture = Fixture::with(status).await;
    fixture.change(json!({"spec": {"paused": true}})).await;
    let page = fixture.succeeds("restart --id n").await;
    assert_eq!(
        page,
        "rolling restart n of logs requested\nit begins when restart b has ended\nit replaces \
         restart q, which was queued and will not run\nno node is stopped while spec.paused is true\n"
    );
    assert_eq!(request(&fixture).await.map(|request| request.strategy), Some(Strategy::Rolling));
}

#[tokio::test]
async fn a_coordinated_request_says_whose_place_it_takes() {
    let mut status = under_way("b", "coordinated");
    status["blocked"] = json!("stranded");
    let fixture = Fixture::with(status).await;
    let page = fixture.succeeds("restart --coordinated --yes --id n").await;
    assert_eq!(
        page,
        "coordinated restart n of logs requested\nit takes the place of restart b, which can \
         neither continue nor roll back, if it includes all nodes of that restart\n"
    );
}

#[tokio::test]
async fn cancel_names_the_restart_under_way() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    assert!(fixture.succeeds("cancel").await.contains("no further node is stopped"));
    assert_eq!(fixture.annotation(annotation::CANCEL).await.as_deref(), Some("b"));
    let error = fixture.fails("cancel --id x", 1).await;
    assert!(error.contains("logs has no restart x"), "{error}");

    let mut frozen = under_way("b", "coordinated");
    frozen["restart"]["frozen"] = "2026-11-21T03:09:00Z".into();
    fixture.status(frozen).await;
    let error = fixture.fails("cancel", 1).await;
    assert!(error.contains("cannot be cancelled any more"), "{error}");
    fixture.status(idle()).await;
    let error = fixture.fails("cancel", 1).await;
    assert!(error.contains("no restart under way"), "{error}");
    let error = fixture.fails("cancel --id a", 1).await;
    assert!(error.contains("restart a has ended: done"), "{error}");
}

#[tokio::test]
async fn a_request_that_is_in_the_way_is_withdrawn_and_not_the_restart_under_way() {
    let fixture = Fixture::with(under_way("a", "rolling")).await;
    fixture.succeeds("restart --id b").await;
    let error = fixture.fails("restart --id c", 1).await;
    let (_, told) = error.split_once("`kubectl stayput -n default ").unwrap();
    let (line, _) = told.split_once('`').unwrap();
    assert_eq!(line, "cancel logs --id b");
    assert!(fixture.succeeds(line).await.contains("request b withdrawn before it was accepted"));
    assert_eq!(request(&fixture).await, None);
    assert_eq!(fixture.annotation(annotation::CANCEL).await, None);
}

/// `b` is under way, and `q` begins when it has ended.
fn with_queued() -> Value {
    let mut status = under_way("b", "rolling");
    status["queued"] = json!({"id": "q", "strategy": "rolling", "target": {}});
    status["handled"] = json!(["b", "q"]);
    status
}

#[tokio::test]
async fn cancel_names_the_restart_that_begins_then() {
    let fixture = Fixture::with(with_queued()).await;
    let next = |id: &str| {
        let cancel = format!("kubectl stayput -n default cancel logs --id {id}");
        format!("restart {id} begins then; to cancel it: `{cancel}`\n")
    };
    let page = fixture.succeeds("cancel").await;
    assert!(page.contains("cancellation of restart b requested"), "{page}");
    assert!(page.ends_with(&next("q")), "{page}");
    // What is requested takes the place of what is queued.
    fixture.succeeds("restart --id r").await;
    let page = fixture.succeeds("cancel").await;
    assert!(page.ends_with(&next("r")), "{page}");
    let mut status = with_queued();
    status["restart"]["ending"] = json!({"outcome": "aborted", "reason": "cancelled"});
    fixture.status(status).await;
    let error = fixture.fails("cancel", 1).await;
    let why = format!("already stops no further node; it will end as aborted; {}", next("r"));
    assert!(error.ends_with(&why), "{error}");
    let page = fixture.succeeds("cancel --id q").await;
    assert_eq!(page, "cancellation of restart q requested: it will not begin\n");
}

#[tokio::test]
async fn a_cancellation_that_is_not_accepted_yet_is_not_overwritten() {
    let fixture = Fixture::with(with_queued()).await;
    let cancelled = async || fixture.annotation(annotation::CANCEL).await;
    fixture.succeeds("cancel --id b").await;
    for (line, first) in [("cancel --id q", "b"), ("cancel --id b", "q")] {
        let error = fixture.fails(line, 1).await;
        let why = format!("cancellation of restart {first} is not accepted yet: wait");
        assert!(error.contains(&why), "{line}: {error}");
        assert_eq!(cancelled().await.as_deref(), Some(first));
        fixture.change(json!({"metadata": {"annotations": {annotation::CANCEL: "q"}}})).await;
    }
    // The same twice is the same once.
    fixture.succeeds("cancel --id q").await;
    // The reconciler has accepted it: what is left of the annotation is not needed.
    let mut status = with_queued();
    status["restart"]["ending"] = json!({"outcome": "aborted", "reason": "cancelled"});
    fixture.status(status).await;
    fixture.change(json!({"metadata": {"annotations": {annotation::CANCEL: "b"}}})).await;
    fixture.succeeds("cancel --id q").await;
    assert_eq!(cancelled().await.as_deref(), Some("q"));
}

#[tokio::test] // proves UPDATE-49
async fn stop_and_start_mark_the_pods_and_tell_the_cost() {
    let fixture = Fixture::with(idle()).await;
    let key = annotation::STOPPED;
    let page = fixture.succeeds("stop logs-1 logs-2 --dry-run").await;
    assert!(page.contains("1 of 3 nodes of logs serve"), "{page}");
    assert_eq!(fixture.pod_annotation("logs-1", key).await, None);
    fixture.succeeds("stop logs-1 logs-2").await;
    for pod in ["logs-1", "logs-2"] {
        assert_eq!(fixture.pod_annotation(pod, key).await.as_deref(), Some("true"));
    }
    let all = fixture.succeeds("stop logs-0 logs-2 --dry-run").await;
    assert!(all.contains("NO node is left: this is an outage"), "{all}");
    let error = fixture.fails("stop logs-0 logs-2", 64).await;
    let question = "This is an outage: no node of logs is left. To confirm, add --yes";
    assert!(error.contains(question), "{error}");
    assert_eq!(fixture.pod_annotation("logs-0", key).await, None);
    fixture.succeeds("stop logs-0 --yes").await;
    assert_eq!(fixture.pod_annotation("logs-0", key).await.as_deref(), Some("true"));
    fixture.succeeds("start logs-0").await;
    assert!(fixture.succeeds("status").await.contains("logs-1   (kept stopped)"));
    assert_eq!(fixture.json("start logs-1").await["result"], "startRequested");
    assert_eq!(fixture.pod_annotation("logs-1", key).await, None);
    fixture.change(json!({"spec": {"stopped": ["logs-2"]}})).await;
    let error = fixture.fails("start logs-2", 1).await;
    assert!(error.contains("spec.stopped of SearchCluster logs names logs-2"), "{error}");
    assert!(error.contains("`kubectl -n default edit searchcluster logs`"), "{error}");
    assert_eq!(fixture.pod_annotation("logs-2", key).await.as_deref(), Some("true"));
}

#[tokio::test] // proves UPDATE-49
async fn what_is_asked_for_when_a_later_node_fails_is_told_with_the_way_back() {
    let fixture = Fixture::with(idle()).await;
    let refuse_the_second_patch = || {
        for how in [How::Delay(Duration::ZERO), How::Refuse(403)] {
            fixture.server.inject(Fault::new(how).verb("patch").resource("pods"));
        }
    };
    // logs-0 is so already: it is not changed, and stays.
    for (before, line, back) in [
        (&["stop logs-1 logs-2"][..], "start logs-0 logs-1 logs-2", "stop"),
        (&["start logs-2", "stop logs-0"], "stop logs-0 logs-1 logs-2 --yes", "start"),
    ] {
        for line in before {
            fixture.succeeds(line).await;
        }
        refuse_the_second_patch();
        let error = fixture.fails(line, 1).await;
        for part in [
            "logs-1 is already asked for; logs-2: you may not patch pods logs-2 in namespace default",
            &format!(
                "; to take that back: `kubectl stayput -n default {back} logs-1 --cluster logs`"
            ),
        ] {
            assert!(error.contains(part), "{line}: {error}");
        }
    }
    // Nothing was changed before logs-2.
    fixture.server.inject(Fault::new(How::Refuse(403)).verb("patch").resource("pods"));
    let error = fixture.fails("stop logs-0 logs-2 --yes", 1).await;
    assert!(!error.contains("already asked for"), "{error}");
}

#[tokio::test] // proves UPDATE-49
async fn what_the_apiserver_does_not_accept_is_not_called_a_change_of_others() {
    let fixture = Fixture::with(idle()).await;
    let fault = Fault::new(How::Refuse(422)).verb("patch").times(u32::MAX);
    fixture.server.inject(fault);
    for line in ["restart", "pause", "stop logs-1"] {
        let error = fixture.fails(line, 1).await;
        assert!(error.contains("the apiserver refused to patch"), "{line}: {error}");
        assert!(!error.contains("changed by others"), "{line}: {error}");
    }
}

#[tokio::test] // proves UPDATE-36
async fn pause_and_resume_say_what_that_means_for_the_restart_under_way() {
    let fixture = Fixture::with(under_way("b", "rolling")).await;
    let paused = fixture.succeeds("pause").await;
    assert!(paused.contains("logs is paused: no further node is stopped"), "{paused}");
    assert!(paused.contains("stays and goes on after that"), "{paused}");
    assert!(fixture.succeeds("status").await.contains("spec.paused is true"));
    let again = fixture.json("pause logs").await;
    assert_eq!(again["result"], "unchanged");
    let resumed = fixture.succeeds("resume").await;
    assert!(resumed.starts_with("logs is paused no longer: restart "), "{resumed}");
    assert!(!fixture.succeeds("status").await.contains("spec.paused is true"));
    let again = fixture.succeeds("resume logs").await;
    assert_eq!(again, "logs is not paused; nothing was changed\n");
}
