use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use stayput_standin::apiserver::{ApiServer, Asked, Fault, How};
use tokio::time::timeout;

use crate::apiserver::*;
use crate::metrics::Metrics;
use stayput_kube_access::read_limits::{READ_TIMEOUT, watch_config};

async fn server_with(fault: Fault) -> (ApiServer, Client) {
    let server = ApiServer::start().await.expect("a stand-in apiserver");
    server.inject(fault);
    let client = Client::try_from(bounded(server.config())).expect("a client");
    (server, client)
}

#[tokio::test(start_paused = true)] // proves RESTART-31
async fn a_list_or_a_watch_that_is_never_answered_is_told_and_tried_again() {
    for verb in ["list", "watch"] {
        let (server, client) = server_with(Fault::new(How::Hang).verb(verb)).await;
        let pods: Api<Pod> = Api::namespaced(client, "default");
        let mut events = pin!(watcher::watcher(pods, watch_config()).default_backoff());
        let failed = async { while let Some(Ok(_)) = events.next().await {} };
        timeout(2 * READ_TIMEOUT, failed).await.expect(verb);
        let asked = async {
            let is_watched = |asked: &Asked| asked.verb == "watch" && asked.code == 200;
            let is_again = || server.counts().matching(is_watched) > 0;
            while !is_again() {
                let _ = timeout(Duration::from_secs(1), events.next()).await;
            }
        };
        timeout(2 * READ_TIMEOUT, asked).await.expect("it is watched again");
    }
}

#[tokio::test] // proves RESTART-31
async fn an_overloaded_apiserver_is_asked_once_and_that_is_no_refusal() {
    for code in [429, 503, 504] {
        let (server, client) = server_with(Fault::new(How::Refuse(code)).times(2)).await;
        let api = Apiserver::new(client, Arc::new(Metrics::new()));
        let error = api.objects::<Pod>("default").get("logs-0").await.expect_err("a refusal");
        assert!(error.is_no_answer() && !server.is_faultless(), "{code} {error:?}");
    }
}
