mod clock;

use super::*;
use crate::credentials::CredentialsError;
use crate::pods::Reading;
use stayput_api::Problem;
use stayput_http::manager_client::{Address, Refused};
use stayput_kube_access::cluster::SearchCluster;

fn refused(code: Code) -> ClientError {
    let problem = Box::new(Problem::new(code, "no"));
    ClientError::Refused(Refused { problem, body: hyper::body::Bytes::new(), date: None })
}

fn status() -> Status {
    let status = serde_json::json!({
        "manager": {
            "version": "0.1.0", "boot_id": "b", "pid": 1, "since": "2026-11-21T09:00:00Z",
            "durable": true, "pod": { "namespace": "n", "name": "a", "uid": "u" },
            "log_lines_lost": 0, "errors": [],
        },
        "cursor": "b/1", "desired": "stopped", "state": "stopped", "ready": null,
        "since": "2026-11-21T09:00:00Z", "sequence": 1, "run": null, "starts": 1,
        "last_exit": null, "last_request": null, "config": null, "reason": null,
    });
    serde_json::from_value(status).unwrap()
}

#[test] // proves RESTART-33
fn who_had_no_turn_is_caught_up_with_in_the_next_look() {
    let pod = serde_json::json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1" },
    });
    let pod = serde_json::from_value(pod).unwrap();
    let pods = [Arc::new(PodFacts::of(&pod, &Reading::default()).unwrap())];
    let cluster = serde_json::json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": { "name": "logs" },
        "spec": {
            "pods": { "selector": { "matchLabels": { "app": "logs" } } },
            "engine": { "scheme": "http" },
            "manager": { "caSecret": "ca", "auth": { "jwtKeySecret": "key" } },
        },
    });
    let cluster: SearchCluster = serde_json::from_value(cluster).unwrap();
    let (checked, sources) = (cluster.check().unwrap(), SourceReader::default());
    let mut managers = Managers::default();
    let remember = |managers: &mut Managers, error| {
        let (facts, asked_at) = (Arc::clone(&pods[0]), Instant::now());
        let answer = Answer { facts, client: None, asked_at, result: Err(error) };
        managers.remember(vec![answer], &sources, &checked, &pods);
        managers.has_unasked()
    };
    assert!(remember(&mut managers, NoAnswer::NotAsked));
    let no_token = || NoAnswer::Credentials(Arc::new(CredentialsError::NoServiceAccount));
    assert!(!remember(&mut managers, no_token()));
    assert!(managers.client("u").is_none());

    // Without credentials nothing is asked; what is in the ledger can still be sent.
    let client = ManagerClient::new(Address::Socket("manager".into())).unwrap();
    managers.told_for_test("u", client, status());
    assert!(!remember(&mut managers, no_token()));
    assert!(managers.of("u").is_err() && managers.client("u").is_some());
    assert!(remember(&mut managers, NoAnswer::NotAsked));
    assert!(managers.client("u").is_some());
}

#[test]
fn only_what_speaks_of_credentials_casts_doubt_on_them() {
    let doubt_by = |error: fn(String) -> ClientError| doubt(&error(String::new()), "u");
    assert!(doubt_by(ClientError::NotReachable).is_none());
    assert!(doubt_by(ClientError::Unanswered).is_none());
    assert!(matches!(doubt_by(ClientError::Untrusted), Some(Doubt::Trust)));
    for code in [Code::Unauthenticated, Code::Forbidden] {
        let doubt = doubt(&refused(code), "u");
        assert!(matches!(doubt, Some(Doubt::Token(uid)) if uid == "u"));
    }
    assert!(doubt(&refused(Code::WrongPod), "u").is_none());
}
