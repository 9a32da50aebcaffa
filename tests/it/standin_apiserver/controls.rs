//! Controls that only the stand-in has: faults, delayed watches, and counts.

use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::plain;
use stayput_standin::apiserver::{ApiServer, Fault, How};

const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

async fn with_one() -> (ApiServer, Api<ConfigMap>, ConfigMap) {
    let server = ApiServer::start().await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(plain(&server));
    let object = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    (server, api, made)
}

async fn set(api: &Api<ConfigMap>, value: &str) -> kube::Result<ConfigMap> {
    let patch = json!({"data": {"k": value}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await
}

fn code(result: kube::Result<ConfigMap>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_fault_is_for_the_requests_it_names_and_so_many_of_them() {
    let (server, api, _) = with_one().await;
    server.inject(Fault::new(How::Refuse(429)).verb("patch").resource("configmaps").times(2));
    server.inject(Fault::new(How::Refuse(500)).resource("pods"));
    api.get("a").await.unwrap();
    assert_eq!(code(set(&api, "1").await), 429);
    assert_eq!(code(set(&api, "2").await), 429);
    set(&api, "3").await.unwrap();
    server.inject(Fault::new(How::Refuse(503)));
    server.clear_faults();
    assert_eq!(api.get("a").await.unwrap().data.unwrap_or_default()["k"], "3");
}

#[tokio::test]
async fn a_lost_answer_was_carried_out_and_a_lost_request_was_not() {
    let (server, api, _) = with_one().await;
    server.inject(Fault::new(How::LoseAnswer).verb("patch"));
    set(&api, "done").await.unwrap_err();
    assert_eq!(api.get("a").await.unwrap().data.unwrap_or_default()["k"], "done");
    server.inject(Fault::new(How::LoseRequest).verb("patch"));
    set(&api, "lost").await.unwrap_err();
    assert_eq!(api.get("a").await.unwrap().data.unwrap_or_default()["k"], "done");
    server.inject(Fault::new(How::Hang).verb("patch"));
    let met = async {
        server.until_faultless().await;
        // To see that nothing happens, the test must wait for a while.
        sleep(Duration::from_millis(50)).await;
    };
    tokio::select! {
        answered = set(&api, "late") => panic!("{answered:?}"),
        () = met => {}
    }
    assert_eq!(api.get("a").await.unwrap().data.unwrap_or_default()["k"], "done");
    server.inject(Fault::new(How::Delay(Duration::from_millis(50))).verb("patch"));
    let begun = std::time::Instant::now();
    set(&api, "slow").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_held_request_is_carried_out_when_it_is_released() {
    let (server, api, _) = with_one().await;
    server.inject(Fault::new(How::Hold).verb("patch"));
    let release = async {
        server.until_faultless().await;
        set(&api, "first").await.unwrap();
        server.release();
    };
    let (held, ()) = tokio::join!(set(&api, "held"), release);
    held.unwrap();
    assert_eq!(api.get("a").await.unwrap().data.unwrap_or_default()["k"], "held");
}

#[tokio::test]
async fn watches_are_held_cut_and_marked() {
    let (server, api, made) = with_one().await;
    let version = made.resource_version().unwrap();
    let mut events = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    server.hold_watches(true);
    let changed = set(&api, "1").await.unwrap();
    let held = timeout(Duration::from_millis(50), events.next()).await;
    assert!(held.is_err(), "{held:?}");
    server.hold_watches(false);
    let event = timeout(EVENT_TIMEOUT, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Modified(seen) if seen == changed));
    server.send_bookmarks();
    let event = timeout(EVENT_TIMEOUT, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Bookmark(mark)
        if mark.metadata.resource_version == server.version().to_string()));
    server.cut_watches();
    let end = timeout(EVENT_TIMEOUT, events.next()).await.unwrap();
    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
    let mut again = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    let event = timeout(EVENT_TIMEOUT, again.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Modified(_)), "nothing is lost: {event:?}");
}

#[tokio::test]
async fn requests_are_counted_by_verb_resource_and_answer() {
    let (server, api, made) = with_one().await;
    let before = server.counts();
    set(&api, "1").await.unwrap();
    api.replace("a", &PostParams::default(), &made).await.unwrap_err();
    api.get("a").await.unwrap();
    let counts = server.counts().since(&before);
    assert_eq!((counts.total(), counts.writes(), counts.conflicts()), (3, 2, 1));
    let patches = counts.matching(|asked| {
        (asked.verb.as_str(), asked.resource.as_str(), asked.code) == ("patch", "configmaps", 200)
    });
    assert_eq!(patches, 1);
    assert_eq!(counts.iter().count(), 3);
}

#[tokio::test]
async fn kube_tries_again_by_itself_unless_told_not_to() {
    let (server, _, _) = with_one().await;
    let before = server.counts();
    server.inject(Fault::new(How::Refuse(429)).verb("patch"));
    set(&Api::default_namespaced(server.client()), "1").await.unwrap();
    assert_eq!(server.counts().since(&before).writes(), 2);
}
