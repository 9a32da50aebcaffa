//! An apiserver that accepts connections and never answers.

mod availability;

use std::cell::Cell;
use std::io;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use stayput_kube_access::cluster::{SearchCluster, crd};
use stayput_standin::apiserver::{ApiServer, Fault, How};
use stayput_standin::harness::paused_clock;
use tokio::time::timeout;

use crate::args::Cli;
use crate::progress::Line;
use crate::session::Session;
use crate::watch::{WatchError, watch};

/// What is said of the apiserver.
async fn trouble(fault: Fault) -> String {
    paused_clock::in_steps();
    let server = ApiServer::start().await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
    definitions.create(&PostParams::default(), &crd()).await.unwrap();
    server.inject(fault.times(u32::MAX));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    std::fs::write(&file, server.kubeconfig()).unwrap();
    let file = file.to_str().unwrap();
    let cli = Cli::try_parse_from(["kubectl-stayput", "--kubeconfig", file, "watch"]).unwrap();
    let session = Session::new(&cli.common).await.unwrap();
    let cluster: SearchCluster = serde_json::from_value(json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "default"},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}}, "engine": {"scheme": "http"},
            "manager": {"caSecret": "ca", "auth": {"serviceAccountToken": {}}},
        },
    }))
    .unwrap();
    let mut told = String::new();
    let print = |line: &Line| {
        told.clone_from(&line.message);
        if told.ends_with("; trying again") { Err(io::Error::other("enough")) } else { Ok(()) }
    };
    let is_requested = Cell::new(false);
    let watching = Box::pin(watch(&session.client, &cluster, None, &is_requested, print));
    let ended = timeout(Duration::from_secs(600), watching).await.expect("it is said");
    assert!(matches!(ended, Err(WatchError::Output(_))), "{ended:?}");
    told
}

#[tokio::test(start_paused = true)] // proves UPDATE-43
async fn an_apiserver_that_hangs_is_said_before_anything_was_shown() {
    let told = trouble(Fault::new(How::Hang)).await;
    assert!(told.contains("did not answer within 30 s: get leases"), "{told}");
}

#[tokio::test(start_paused = true)] // proves UPDATE-43
async fn a_list_that_hangs_has_an_end() {
    let told = trouble(Fault::new(How::Hang).verb("list").resource("pods")).await;
    assert!(told.contains("cannot reach the apiserver to watch pods"), "{told}");
}
