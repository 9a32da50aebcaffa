//! SearchClusters whose pod answers as badly as it can, beside one that is restarted.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Outcome;

use super::fixture::Fixture;
use super::objects::{KEY, eventually, pod, pod_status, search_cluster, secret};
use super::program::Program;
use crate::support::fake_manager::{FakeManager, Reply, Script};

/// Much more than the reconciler needs for a hundred nodes, and much less than its container has.
const MOST_KIB: u64 = 256 << 10;

/// JSON that takes a hundred times its size if it is read into a tree.
fn dense(bytes: usize) -> String {
    let entry = r#"{"":0},"#;
    format!("[{}0]", entry.repeat(bytes / entry.len()))
}

fn json(code: u16, body: String) -> Reply {
    Reply { code, content_type: "application/json", body, sequence: None }
}

/// An error of sixteen mebibytes.
fn refuses(_: &str) -> Reply {
    json(500, dense(16 << 20))
}

/// An engine, and then as many nodes and blocks as fit.
fn tells_much(path: &str) -> Reply {
    let body = match path {
        "/_nodes/_local/http" => json!({
            "cluster_name": "logs", "nodes": {"n": {"name": "n", "version": "2.19.3"}},
        })
        .to_string(),
        "/" => json!({"cluster_uuid": "u", "version": {"distribution": "opensearch"}}).to_string(),
        _ => {
            let node = |at: u32| {
                format!(
                    r#""{at}":{{"name":"","ephemeral_id":"","transport_address":"","version":"1.1.1","roles":[""],"jvm":{{"start_time_in_millis":0}},"attributes":{{"":""}}}}"#
                )
            };
            let nodes: Vec<String> = (0..100_000).map(node).collect();
            format!(
                r#"{{"cluster_uuid":"u","version":1,"master_node":"n","nodes":{{{}}},"blocks":{}}}"#,
                nodes.join(","),
                dense(1 << 20)
            )
        }
    };
    json(200, body)
}

/// A manager's answers: a status with errors without number.
fn tells_errors(_: &str) -> Reply {
    let errors = r#"{"code":"","message":"","since":""},"#.repeat(100_000);
    json(200, format!(r#"{{"manager":{{"errors":[{errors}{{}}]}}}}"#))
}

#[tokio::test] // proves RESTART-15
async fn a_pod_that_answers_as_badly_as_it_can_harms_no_other_cluster() {
    let fixture = Fixture::new("").await;
    let (_directory, kubeconfig) = fixture.kubeconfig();
    let reconciler = Program::start(&kubeconfig, "first");
    fixture.until_seen().await;
    let before = reconciler.peak_kib();

    let mut fakes = Vec::new();
    let answers: [fn(&str) -> Reply; 2] = [refuses, tells_much];
    for (name, engine) in ["refuses", "tells"].into_iter().zip(answers) {
        let mut hostile = pod(name);
        hostile["metadata"]["labels"]["app"] = name.into();
        fixture.create::<Pod>(hostile).await;
        let status = Patch::Merge(pod_status("127.0.0.1", true));
        let pods = fixture.api::<Pod>();
        pods.patch_status(name, &PatchParams::default(), &status).await.expect("it is taken");
        let (engine, engine_port) = FakeManager::on_port(None, Script::ByPath(engine));
        let tls = Some(fixture.pki.acceptor());
        let (manager, manager_port) = FakeManager::on_port(tls, Script::ByPath(tells_errors));
        let key = format!("{name}-key");
        fixture.create::<Secret>(secret(&key, Some(name), [("key", KEY)])).await;
        let mut cluster = search_cluster(false);
        let request = json!({"id": "h1", "strategy": "rolling"}).to_string();
        cluster["metadata"]["name"] = name.into();
        cluster["metadata"]["annotations"] = json!({"stayput.dev/restart-request": request});
        cluster["spec"]["pods"]["selector"]["matchLabels"]["app"] = name.into();
        cluster["spec"]["engine"]["port"] = engine_port.into();
        cluster["spec"]["manager"]["port"] = manager_port.into();
        cluster["spec"]["manager"]["auth"]["jwtKeySecret"] = key.into();
        fixture.create::<SearchCluster>(cluster).await;
        fakes.push((engine, manager));
    }
    let has_answered = async |fake: &FakeManager, times| {
        eventually("it is asked", async || (fake.seen().len() >= times).then_some(())).await;
    };
    for (engine, manager) in &fakes {
        has_answered(engine, 3).await;
        has_answered(manager, 1).await;
    }
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    for (engine, _) in &fakes {
        has_answered(engine, engine.seen().len() + 1).await;
    }
    let peak = reconciler.peak_kib();
    assert!(peak < before + MOST_KIB, "from {before} to {peak} KiB");
}
