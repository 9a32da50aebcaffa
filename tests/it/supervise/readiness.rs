//! `ready`, `/readyz`, `/livez`; and the probe does not run without a request.

use std::path::Path;

use super::pod::Pod;
use super::processes::wake_ups;
use crate::support::ports::free_loopback_port;
use crate::support::program::{finish, stayput};
use crate::support::programs::program;
use crate::support::standin::StandIn;
use crate::support::yaml;

#[test]
fn at_rest_nobody_looks_and_nothing_wakes() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    assert_eq!(manager.get("/readyz").code, 200);
    // First, pending writes end. One that waits for the disk does not wake anybody either.
    manager.until("written", |status| status["manager"]["durable"] == true);
    super::processes::until_rest(manager.pid());
    super::processes::eventually("nothing happens for two seconds", || {
        let before = (pod.gate.calls(), wake_ups(manager.pid()));
        // A measurement, not a synchronization. On a busy machine something from before may come late.
        std::thread::sleep(std::time::Duration::from_secs(2));
        ((pod.gate.calls(), wake_ups(manager.pid())) == before).then_some(())
    });
}

#[test]
fn it_is_asked_when_somebody_wants_to_know_and_shared() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let before = pod.gate.calls();
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| assert_eq!(manager.get("/readyz").code, 200));
        }
    });
    // At most one a second; forty requests on a busy machine may take a few of them.
    assert!(pod.gate.calls() <= before + 10, "{} calls", pod.gate.calls() - before);
    pod.gate.set(false);
    super::processes::becomes(&503, || manager.get("/readyz").code);
    assert_eq!(manager.status()["ready"], false);
    assert_eq!(manager.get("/livez").code, 200);
    pod.gate.set(true);
    super::processes::becomes(&200, || manager.get("/readyz").code);
}

#[test] // proves STOP-35
fn why_it_is_not_ready_is_in_the_status_and_told_by_wait() {
    let pod = Pod::new();
    pod.gate.set(false);
    let manager = pod.start_sleeper();
    let reason = format!("the probe {} answered 503", pod.gate.url());
    let status = manager.until("the reason", |status| {
        // The journal of the start is written by then, which is a change as well.
        status["ready_error"] == reason.as_str() && status["manager"]["durable"] == true
    });
    assert_eq!((&status["state"], &status["ready"]), (&"starting".into(), &false.into()));
    // On a busy machine the probe's answer may be late once in a while, which is another reason.
    super::processes::eventually("the same reason again is no change", || {
        let (calls, cursor) = (pod.gate.calls(), manager.status()["cursor"].clone());
        super::processes::eventually("more calls", || (pod.gate.calls() > calls + 3).then_some(()));
        (manager.status()["cursor"] == cursor).then_some(())
    });
    super::processes::eventually("the answer to a start says why", || {
        let started = manager.post("/es/start?wait=10ms", "{}");
        assert_eq!(started.code, 202, "{started:?}");
        (started.body["ready_error"] == reason.as_str()).then_some(())
    });
    let wait = |goal: &str, length: &str| {
        let mut command = stayput(["wait", "--for", goal, "--timeout", length, "--socket"]);
        finish(command.arg(pod.socket()))
    };
    let expected = format!("timed out after 3s: the engine is starting, pid {}", manager.engine());
    super::processes::eventually("the command says why", || {
        let ended = wait("ready", "3s");
        assert_eq!(ended.code, 124);
        assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
        ended.stderr.contains(&format!("; not ready: {reason}")).then_some(())
    });
    pod.gate.set(true);
    let status = manager.until_state("running");
    assert_eq!((&status["ready"], &status["ready_error"]), (&true.into(), &().into()));
    // Later, it is asked when somebody wants to know.
    pod.gate.set(false);
    super::processes::becomes(&503, || manager.get("/readyz").code);
    super::processes::becomes(&reason.as_str().into(), || manager.status()["ready_error"].clone());
    let stopped = manager.post("/es/stop?wait=20", "{}");
    assert_eq!((stopped.code, &stopped.body["ready_error"]), (200, &().into()));
}

#[test]
fn ahead_of_a_stop_it_is_not_ready_until_the_engine_is_to_run_on() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let (engine, journal) = (manager.engine(), manager.status()["sequence"].clone());
    let answer = manager.post("/es/drain", r#"{"sequence":7}"#);
    assert_eq!((answer.code, &answer.body["ready"]), (200, &false.into()));
    assert_eq!(
        (&answer.body["state"], &answer.body["desired"]),
        (&"running".into(), &"running".into())
    );
    assert_eq!(answer.body["reason"]["code"], "draining");
    assert_eq!(manager.get("/readyz").code, 503);
    assert_eq!(manager.status()["sequence"], journal, "no sequence is used up");
    assert_eq!(manager.post("/es/start", r#"{"sequence":8}"#).code, 200);
    super::processes::becomes(&200, || manager.get("/readyz").code);
    assert_eq!(manager.engine(), engine);
    assert_eq!(manager.post("/es/drain", r#"{"sequence":7}"#).code, 409);
    assert_eq!(manager.get("/readyz").code, 200);
}

/// The kubelet runs it in the container, with the container's variables. It says what `/readyz` says: an election takes no
/// pod out of its Service.
#[test] // proves ACCESS-6, MANIFEST-11
fn the_readiness_probe_of_pods_of_the_opensearch_operator_follows_a_drain() {
    let injected = "src/inject/tests/manifests/opensearch-cluster-3.yaml.injected";
    let injected = Path::new(env!("CARGO_MANIFEST_DIR")).join(injected);
    let cluster = yaml::documents(&std::fs::read_to_string(injected).unwrap()).swap_remove(0);
    let probe = &cluster["spec"]["nodePools"][0]["probes"]["readiness"];
    let line: Vec<&str> =
        probe["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(line[0], "/stayput/stayput");
    let pod = Pod::new();
    let code = || {
        let mut command = stayput(line[1..].iter().copied());
        finish(command.env("STAYPUT_SOCKET", pod.socket())).code
    };
    let manager = pod.start_sleeper();
    manager.until_state("running");
    super::processes::becomes(&0, code);
    pod.gate.set(false);
    manager.until("the engine's probe fails", |status| status["ready"] == false);
    let probed = code();
    // Once it is 503 it stays so, also if this was held up for seconds.
    if manager.get("/readyz").code == 200 {
        assert_eq!(probed, 0);
    }
    super::processes::becomes(&503, || manager.get("/readyz").code);
    assert_ne!(code(), 0);
    pod.gate.set(true);
    super::processes::becomes(&0, code);
    assert_eq!(manager.post("/es/drain", r#"{"sequence":7}"#).code, 200);
    assert_ne!(code(), 0);
    assert_eq!(manager.post("/es/start", r#"{"sequence":8}"#).code, 200);
    super::processes::becomes(&0, code);
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    assert_ne!(code(), 0);
}

#[test]
fn without_a_probe_ready_is_null() {
    let pod = Pod::new();
    let mut command = stayput(["run", "--socket"]);
    command
        .arg(pod.socket())
        .arg("--state-dir")
        .arg(pod.path("state"))
        .args(["--", "sleep", "600"]);
    let manager = pod.spawn(&mut command);
    let status = manager.until_state("starting");
    assert_eq!(status["ready"], serde_json::Value::Null);
    let stopped = manager.post("/es/stop?wait=20s", "{}");
    assert_eq!((stopped.code, &stopped.body["ready"]), (200, &serde_json::Value::Null));
}

#[test]
fn the_stand_in_engine_is_ready_by_http_and_by_tcp() {
    for scheme in ["http", "tcp"] {
        let port = free_loopback_port();
        let standin = StandIn::new("");
        let text = std::fs::read_to_string(standin.config().join("elasticsearch.yml")).unwrap();
        let text = text.replace("http.port: 0", &format!("http.port: {port}"));
        std::fs::write(standin.config().join("elasticsearch.yml"), text).unwrap();
        let pod = Pod::new();
        let mut command = stayput(["run", "--socket"]);
        command.arg(pod.socket()).arg("--state-dir").arg(pod.path("state"));
        command.arg("--ready").arg(format!("{scheme}://127.0.0.1:{port}")).arg("--");
        command.arg(program("standin-engine")).arg("--config").arg(standin.config());
        let manager = pod.spawn(&mut command);
        assert_eq!(manager.until_state("running")["ready"], true);
        assert_eq!(manager.get("/readyz").code, 200);
        let stopped = manager.post("/es/stop?wait=20s", "{}");
        assert_eq!((stopped.code, &stopped.body["ready"]), (200, &false.into()));
        assert_eq!(stopped.body["last_exit"]["reason"], "stopped");
    }
}
