//! `plan`, `why` and `snapshot`, with live data of the reconciler or with a saved snapshot.

use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::fixture::{Fixture, idle};
use crate::support::program::{finish, kubectl_stayput};

const SAMPLE: &str = "proto/samples/snapshot.json";
/// Stands in an answer for the time at which it is given.
pub(super) const NOW: &str = "$NOW";

fn sample() -> Value {
    serde_json::from_str(&std::fs::read_to_string(SAMPLE).unwrap()).unwrap()
}

/// Answers every request with this; returns its address.
pub(super) async fn reconciler(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            let asked = String::from_utf8_lossy(&head[..read]).into_owned();
            let known = asked.starts_with("GET /snapshots/default/logs ");
            let status = if known { status } else { "404 Not Found" };
            let now = format!("{:.3}", k8s_openapi::jiff::Timestamp::now());
            let body = body.replace(NOW, &now);
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

/// The sample, with the pod of the fixture.
pub(super) async fn seen(fixture: &Fixture) -> String {
    let mut saved = sample();
    saved["snapshot"]["cluster"]["name"] = "default/logs".into();
    let uid = fixture.pods().get("logs-0").await.unwrap().metadata.uid.unwrap();
    let text = saved.to_string();
    text.replace("logs-hot-0-uid1", &uid).replace("search/logs", "default/logs")
}

#[test]
fn what_was_saved_is_looked_at_without_an_apiserver() {
    let nowhere = Path::new("/nonexistent/kubeconfig");
    let good = |line: &str| {
        let ended = finish(&mut kubectl_stayput(nowhere, line.split_whitespace()));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}");
        ended.stdout
    };
    let plan = good(&format!("plan --snapshot {SAMPLE}"));
    assert!(plan.contains("\nstep 2      logs-hot-0 ("), "{plan}");
    assert!(plan.contains("\nnever       logs-hot-1: unreplicated_index: "), "{plan}");
    let zone = good(&format!("plan --snapshot {SAMPLE} --role data_warm"));
    assert!(zone.contains("\nstep 1      logs-warm-1 ("), "{zone}");
    let why = good(&format!("why logs-hot-1 --snapshot {SAMPLE}"));
    assert!(why.contains("\nnever       unreplicated_index: "), "{why}");
    let plan: Value =
        serde_json::from_str(&good(&format!("plan --snapshot {SAMPLE} -o json"))).unwrap();
    assert_eq!(plan["forecast"]["steps"][1]["nodes"][0]["name"], "logs-hot-0");
    let bad = |line: &str, code: i32| {
        let ended = finish(&mut kubectl_stayput(nowhere, line.split_whitespace()));
        assert_eq!(ended.code, code, "{line}: {}", ended.stderr);
        ended.stderr
    };
    let error = bad(&format!("plan --snapshot {SAMPLE} --node nope"), 1);
    assert!(error.contains("the reconciler would refuse this request: see above"), "{error}");
    let error = bad("plan --snapshot Cargo.toml", 64);
    assert!(error.contains("Cargo.toml: this is not a snapshot"), "{error}");
    let error = bad("why logs-0 --snapshot /nonexistent/file", 64);
    assert!(error.contains("/nonexistent/file: "), "{error}");
    let error = bad(&format!("why logs-9 --snapshot {SAMPLE}"), 1);
    assert!(error.contains("the snapshot has no node logs-9; it has: logs-hot-0"), "{error}");
}

#[tokio::test]
async fn the_reconciler_is_asked_and_what_it_sees_can_be_saved() {
    let fixture = Fixture::with(idle()).await;
    let url = reconciler("200 OK", seen(&fixture).await).await;
    let plan = fixture.succeeds(&format!("plan --reconciler {url}")).await;
    assert!(plan.contains("\nstep 2      logs-hot-0 ("), "{plan}");
    let plan = fixture.succeeds(&format!("plan --reconciler {url} --context stand-in")).await;
    let last = "\ncommands    that the reconciler has written also need --context stand-in\n";
    assert!(plan.ends_with(last), "{plan}");
    let plan = fixture.json(&format!("plan --reconciler {url} --coordinated")).await;
    assert_eq!(plan["forecast"]["blocker"]["code"], "another_in_progress");
    let dry = fixture.succeeds(&format!("restart --dry-run --reconciler {url}")).await;
    assert!(dry.contains("blocked by  another_in_progress: "), "{dry}");
    assert!(dry.ends_with("This is a dry run: nothing was requested.\n"), "{dry}");
    let refused = format!("restart --dry-run --role nosuch --reconciler {url}");
    let ended = fixture.run(&refused).await;
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("blocked by  invalid_input: "), "{}", ended.stdout);
    assert!(ended.stderr.contains("would refuse this request: see above"), "{}", ended.stderr);
    let ended = fixture.run(&format!("{refused} -o json")).await;
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &printed["result"]), (1, &json!("wouldBeRefused")));
    assert_eq!(printed["forecast"]["blocker"]["code"], "invalid_input");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snapshot.json");
    let line = format!("snapshot --reconciler {url} --file {}", file.display());
    let printed = fixture.succeeds(&line).await;
    assert!(printed.starts_with("saved "), "{printed}");
    let names =
        "it holds no value of a Secret, but names: of the Secrets and ConfigMaps of the config";
    assert!(printed.contains(names), "{printed}");
    let again = fixture.succeeds(&format!("plan --snapshot {}", file.display())).await;
    assert!(again.contains("\nstep 2      logs-hot-0 ("), "{again}");
    let error = fixture.fails(&format!("{line} -o json"), 64).await;
    assert!(error.contains("this command has no --output"), "{error}");
    let error = fixture.fails(&line, 1).await;
    assert!(error.contains("cannot write the snapshot"), "one that is there stays: {error}");
}

#[tokio::test]
async fn what_keeps_it_from_being_asked_is_told_with_its_remedy() {
    let fixture = Fixture::with(idle()).await;
    let error = fixture.fails("plan --reconciler http://127.0.0.1:1", 2).await;
    assert!(error.contains("without --reconciler its port is forwarded"), "{error}");
    let dry = fixture.succeeds("restart --dry-run --reconciler http://127.0.0.1:1").await;
    assert!(dry.contains("\norder       logs-2, logs-1, logs-0\n"), "{dry}");
    let why = "cannot reach the reconciler at http://127.0.0.1:1: ";
    assert!(dry.contains(&format!("\nno dry run  {why}")), "{dry}");
    let dry = fixture.json("restart --dry-run --reconciler http://127.0.0.1:1").await;
    assert!(dry["noForecast"].as_str().unwrap().starts_with(why), "{dry}");
    let error = fixture.fails("plan --reconciler nonsense:", 64).await;
    assert!(error.contains("is not an address of the reconciler"), "{error}");
    let url = reconciler("503 Service Unavailable", "its pods are not listed yet\n".into()).await;
    let error = fixture.fails(&format!("snapshot --reconciler {url}"), 1).await;
    assert!(error.contains("503 Service Unavailable: its pods are not listed yet"), "{error}");
    let url = reconciler("200 OK", json!({"format": 9, "stayput": "9.0"}).to_string()).await;
    let error = fixture.fails(&format!("plan --reconciler {url}"), 1).await;
    assert!(error.contains("has format 9"), "{error}");
    let url = reconciler("200 OK", sample().to_string()).await;
    let error = fixture.fails(&format!("plan --reconciler {url}"), 1).await;
    assert!(error.contains("it belongs to another Kubernetes"), "{error}");
}
