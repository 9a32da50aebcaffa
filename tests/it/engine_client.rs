//! The engine client with endpoints that are not reachable, silent, no engine, or without a
//! cluster.

mod connections;
mod outside;
mod privileges;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stayput_engine::{
    Access, Allocation, AllowPlain, Color, Credentials, Endpoint, EngineClient, EngineError, Flush,
    tls,
};
use stayput_http::https::{Identity, Pem};

use crate::support::fake_manager::{FakeManager, Reply, Script};
use crate::support::pki::Pki;
use crate::support::ports::closed_port;
use crate::support::stopped_clock::{advance_once, on_stopped_clock};

/// How long endpoints may take that should answer.
const ENGINE_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// Lets this time pass once the fake has got the request, which it does not answer.
fn wait_for_mute<T>(mute: &FakeManager, future: impl Future<Output = T>, time: Duration) -> T {
    let passes = advance_once(|| !mute.seen().is_empty(), time);
    on_stopped_clock(async { tokio::join!(future, passes).0 })
}

fn client(ports: &[u16], access: &Access, bound: Duration) -> EngineClient {
    let endpoints: Vec<Endpoint> = ports.iter().copied().map(endpoint).collect();
    EngineClient::new(&endpoints, access, bound).expect("a client")
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint { host: "127.0.0.1".into(), port }
}

fn health() -> Value {
    json!({
        "cluster_name": "logs", "status": "green", "timed_out": false,
        "number_of_nodes": 3, "number_of_data_nodes": 3, "initializing_shards": 0,
        "relocating_shards": 0, "unassigned_shards": 0, "delayed_unassigned_shards": 0,
        "number_of_pending_tasks": 0, "number_of_in_flight_fetch": 0,
    })
}

fn answering(code: u16, body: impl serde::Serialize) -> (FakeManager, u16) {
    FakeManager::on_port(None, Script::Always(Reply::json(code, body)))
}

#[test]
fn what_cannot_be_sent_goes_to_the_next_endpoint() {
    let (fake, port) = answering(200, health());
    let client =
        client(&[closed_port(), closed_port(), port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    assert_eq!(wait(client.health()).expect("health").color, Color::Green);
    let line = &fake.seen()[0].line;
    assert_eq!(
        line,
        "GET /_cluster/health?wait_for_events=languid&timeout=1s&master_timeout=22500ms"
    );
}

#[test]
fn another_node_is_waited_for_by_the_engine() {
    let (fake, port) = answering(200, health());
    let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    assert!(!wait(client.health_once_nodes(3)).expect("health").timed_out);
    assert_eq!(
        fake.seen()[0].line,
        "GET /_cluster/health?wait_for_nodes=ge(3)&timeout=1s&master_timeout=22500ms"
    );
}

#[test] // proves RESTART-87
fn green_is_waited_for_by_the_engine() {
    let mut yellow = health();
    (yellow["status"], yellow["timed_out"]) = (json!("yellow"), json!(true));
    // Older engines answer 408 when the time is over, newer ones 200.
    for code in [200, 408] {
        let (fake, port) = answering(code, &yellow);
        let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
        let health = wait(client.health_once_green()).expect("health");
        assert_eq!((health.color, health.timed_out), (Color::Yellow, true));
        assert_eq!(
            fake.seen()[0].line,
            "GET /_cluster/health?wait_for_status=green&wait_for_events=languid&timeout=1s\
             &master_timeout=22500ms"
        );
    }
}

#[test]
fn writes_go_on_as_well_as_long_as_nothing_was_sent() {
    let (fake, port) = answering(200, json!({ "acknowledged": true }));
    let client = client(&[closed_port(), port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    wait(client.tighten(&Allocation::default(), "primaries", "{}")).expect("set");
    let body: Value = serde_json::from_str(&fake.seen()[0].body).expect("JSON");
    let settings = json!({ "persistent": {
        "cluster.routing.allocation.enable": "primaries", "cluster.metadata.stayput": "{}",
    } });
    assert_eq!(body, settings);
}

/// A node that has joined just now would take long to confirm it.
#[test]
fn no_node_is_waited_for_as_allocation_is_restored() {
    let late = json!({ "acknowledged": false });
    let (fake, port) = answering(200, late);
    let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    wait(client.restore(&Allocation::default())).expect("restored");
    assert_eq!(
        fake.seen()[0].line,
        "PUT /_cluster/settings?flat_settings=true&master_timeout=22500ms&timeout=0s"
    );
}

#[test]
fn a_write_that_may_have_been_done_is_not_done_again() {
    let (mute, silent) = FakeManager::on_port(None, Script::Silence);
    let (fake, port) = answering(200, json!({ "acknowledged": true }));
    let client = client(&[silent, port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let unset = Allocation::default();
    match wait_for_mute(&mute, client.tighten(&unset, "primaries", "{}"), ENGINE_ANSWER_TIMEOUT) {
        Err(EngineError::Unanswered(why)) => {
            assert!(why.contains("PUT /_cluster/settings"), "{why}");
            assert!(why.contains(&format!("http://127.0.0.1:{silent}")), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((mute.seen().len(), fake.seen().len()), (1, 0));
}

#[test]
fn a_read_is_asked_of_the_next_when_one_is_mute_and_of_that_one_first_from_then_on() {
    let (mute, silent) = FakeManager::on_port(None, Script::Silence);
    let (fake, port) = answering(200, health());
    let client = client(&[silent, port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    wait_for_mute(&mute, client.health(), ENGINE_ANSWER_TIMEOUT).expect("health");
    wait(client.health()).expect("health");
    assert_eq!((mute.seen().len(), fake.seen().len()), (1, 2));
}

#[test]
fn a_node_outside_the_cluster_is_passed_over_and_quoted_if_all_are() {
    let outside = json!({ "error": { "type": "master_not_discovered_exception", "reason": null } });
    let (_lost, lost) = answering(503, &outside);
    let (_fake, port) = answering(200, health());
    let one = client(&[lost, port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    assert_eq!(wait(one.health()).expect("health").data_nodes, 3);
    let all = client(&[closed_port(), lost], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    match wait(all.health()) {
        Err(EngineError::Refused { status, reason, message }) => {
            assert_eq!((status, reason.as_str()), (503, "master_not_discovered_exception"));
            assert!(message.contains(&format!("127.0.0.1:{lost}")), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

/// One of those that have no master has waited for it already. One that is overloaded has not.
#[test] // proves RESTART-14
fn one_node_alone_is_given_the_time_to_find_a_master() {
    fn refused() -> Reply {
        Reply::json(503, json!({ "error": { "type": "master_not_discovered_exception" } }))
    }
    static HAS_PASSED: AtomicBool = AtomicBool::new(false);
    fn waits_in_vain(_: &str) -> Reply {
        while !HAS_PASSED.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        refused()
    }
    let master_timeout = |fake: &FakeManager| {
        let line = fake.seen()[0].line.clone();
        line.split_once("master_timeout=")
            .map(|(_, rest)| rest.split(' ').next().unwrap().to_owned())
    };
    // More than a quarter of the client's timeout.
    let long = Duration::from_secs(6);
    for (script, passed, given) in [
        (Script::ByPath(waits_in_vain), long, "500ms"),
        (Script::Always(refused()), Duration::ZERO, "15000ms"),
    ] {
        let (first, lost) = FakeManager::on_port(None, script);
        let (next, port) = answering(200, health());
        let client = client(&[lost, port], &Access::Plain, Duration::from_secs(20));
        let health = on_stopped_clock(async {
            let passes = async {
                advance_once(|| !first.seen().is_empty(), passed).await;
                HAS_PASSED.store(true, Ordering::Relaxed);
            };
            tokio::join!(client.health(), passes).0
        });
        assert_eq!(health.expect("health").data_nodes, 3);
        assert_eq!(master_timeout(&first).as_deref(), Some("15000ms"));
        assert_eq!(master_timeout(&next).as_deref(), Some(given));
    }
}

#[test]
fn nobody_there_is_told_for_each_up_to_three() {
    let ports = [closed_port(), closed_port(), closed_port(), closed_port(), closed_port()];
    match wait(client(&ports, &Access::Plain, ENGINE_ANSWER_TIMEOUT).health()) {
        Err(EngineError::NotReachable(why)) => {
            assert_eq!(why.matches("cannot connect to").count(), 3, "{why}");
            assert!(why.contains(&format!("http://127.0.0.1:{}", ports[0])), "{why}");
            assert!(why.ends_with("and 2 more endpoints"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_endpoints_together_have_twice_the_time_of_one() {
    let mute: Vec<(FakeManager, u16)> =
        (0..10).map(|_| FakeManager::on_port(None, Script::Silence)).collect();
    let ports: Vec<u16> = mute.iter().map(|(_, port)| *port).collect();
    let bound = Duration::from_millis(300);
    let began = Instant::now();
    match wait(client(&ports, &Access::Plain, bound).health()) {
        Err(EngineError::Unanswered(why)) => assert!(why.contains("no answer within"), "{why}"),
        other => panic!("{other:?}"),
    }
    let took = began.elapsed();
    assert!(took >= bound * 2, "{took:?}");
    assert!(mute[9].0.seen().is_empty());
}

#[test] // proves RESTART-15
fn a_flush_never_fails_and_never_waits_longer_than_it_may() {
    let (mute, silent) = FakeManager::on_port(None, Script::Silence);
    let (_fake, port) = answering(200, identity_of_nobody());
    let engine = wait(client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT).identify());
    let Ok(engine) = engine else { panic!("{engine:?}") };
    let client = client(&[silent], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    match wait_for_mute(
        &mute,
        client.flush(&engine, Duration::from_secs(2)),
        Duration::from_secs(2),
    ) {
        Flush::NotKnown(why) => assert!(why.contains("no answer within 2s"), "{why}"),
        done @ Flush::Done { .. } => panic!("{done:?}"),
    }
}

/// One answer that fits all three requests to an OpenSearch.
fn identity_of_nobody() -> Value {
    json!({
        "cluster_name": "logs", "cluster_uuid": "HHHrgapGQyCXt6wo3163vQ",
        "version": { "distribution": "opensearch", "number": "2.19.3" },
        "nodes": { "Xylk0DyHRxi6QGarWKRUMA": { "name": "logs-0", "version": "2.19.3" } },
    })
}

#[test] // proves RESTART-17
fn no_metadata_is_asked_for_and_what_has_not_changed_is_not_read_again() {
    let (_fake, port) = answering(200, identity_of_nobody());
    let engine = wait(client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT).identify());
    let engine = engine.expect("an engine");
    // One answer that fits every part of a look.
    let whole = |version: u64| {
        json!({
            "cluster_uuid": "HHHrgapGQyCXt6wo3163vQ", "version": version, "master_node": "n",
            "nodes": { "n": {
                "name": "logs-0", "ephemeral_id": "e", "transport_address": "127.0.0.1:9300",
                "version": "2.19.3", "roles": ["data"], "jvm": { "start_time_in_millis": 1 },
            } },
            "metadata": { "cluster_coordination": {
                "last_committed_config": ["n"], "last_accepted_config": ["n"],
            } },
            "routing_table": { "indices": { "docs": { "shards": { "0": [
                { "state": "STARTED", "primary": true, "node": "n", "relocating_node": null },
            ] } } } },
        })
    };
    let look = |version, before| {
        let (fake, port) = answering(200, whole(version));
        let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
        let topology = wait(client.topology(&engine, before)).expect("a topology");
        let path = |line: &str| line.split('?').next().unwrap_or_default().to_owned();
        let paths: Vec<String> = fake.seen().iter().map(|seen| path(&seen.line)).collect();
        (topology, paths)
    };
    let nodes =
        "GET /_cluster/state/version,master_node,nodes,metadata,blocks,customs/stayput-no-index";
    let copies = "GET /_cluster/state/routing_table,blocks";
    let details = "GET /_nodes/_all/settings,jvm";
    let (first, mut asked) = look(7, None);
    asked[1..].sort();
    assert_eq!(asked, [nodes, copies, details]);
    let (second, asked) = look(7, Some(&first));
    assert_eq!(asked, [nodes]);
    assert_eq!(second, first);
    let (_, asked) = look(8, Some(&first));
    assert_eq!(asked, [nodes, copies]);
}

#[test]
fn credentials_are_shown_and_never_told() {
    let refusal = json!({ "error": { "type": "security_exception", "reason": "unable to" } });
    for (credentials, header, shown) in [
        (
            Credentials::Basic { user: "elastic".into(), password: "hush".into() },
            "Basic ZWxhc3RpYzpodXNo",
            "the user and password",
        ),
        (Credentials::ApiKey("id:hush".into()), "ApiKey aWQ6aHVzaA==", "the API key"),
    ] {
        let access = Access::PlainWithCredentials(credentials, AllowPlain);
        let (fake, port) = answering(200, health());
        wait(client(&[port], &access, ENGINE_ANSWER_TIMEOUT).health()).expect("health");
        assert_eq!(fake.seen()[0].authorization.as_deref(), Some(header));
        let (_wrong, port) = answering(401, &refusal);
        match wait(client(&[port], &access, ENGINE_ANSWER_TIMEOUT).health()) {
            Err(EngineError::Unauthorized(why)) => {
                assert!(why.contains(shown) && !why.contains("hush"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        assert!(!format!("{:?}", client(&[port], &access, ENGINE_ANSWER_TIMEOUT)).contains("hush"));
    }
    let (fake, port) = answering(200, health());
    wait(client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT).health()).expect("health");
    assert_eq!(fake.seen()[0].authorization, None);
}

#[test]
fn tls_takes_certificates_for_the_address_or_for_the_name_and_no_other() {
    let pki = Pki::named(&["logs.search"]);
    let script = || Script::Always(Reply::json(200, health()));
    let (_fake, port) = FakeManager::on_port(Some(pki.acceptor()), script());
    let ask = |ca: &Pem, name: Option<&str>| {
        let access = Access::Tls {
            tls: tls(ca, None).expect("a CA"),
            server_name: name.map(str::to_owned),
            credentials: None,
        };
        wait(client(&[port], &access, ENGINE_ANSWER_TIMEOUT).health())
    };
    let ca = pki.pem("ca");
    assert_eq!(ask(&ca, Some("logs.search")).expect("health").color, Color::Green);
    for (ca, name, expected) in [
        (&ca, None, "127.0.0.1"),
        (&ca, Some("metrics.search"), "metrics.search"),
        (&Pki::new().pem("ca"), Some("logs.search"), "not signed by the ca of the test"),
    ] {
        match ask(ca, name) {
            Err(EngineError::Untrusted(why)) => {
                assert!(why.contains(expected) && why.contains(&port.to_string()), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_client_certificate_is_shown_and_old_engines_are_spoken_to() {
    let pki = Pki::new();
    let script = Script::Always(Reply::json(200, health()));
    let old = pki.server(&[&rustls::version::TLS12], true);
    let (_fake, port) = FakeManager::on_port(Some(old), script);
    let identity = Identity { certificate: pki.pem("cert"), key: pki.pem("key") };
    let access = |identity| Access::Tls {
        tls: tls(&pki.pem("ca"), identity).expect("a CA"),
        server_name: None,
        credentials: None,
    };
    let shown = wait(client(&[port], &access(Some(&identity)), ENGINE_ANSWER_TIMEOUT).health());
    assert_eq!(shown.expect("health").color, Color::Green);
    let hidden = wait(client(&[port], &access(None), ENGINE_ANSWER_TIMEOUT).health());
    assert!(matches!(hidden, Err(EngineError::NotReachable(_))), "{hidden:?}");
}

#[test]
fn what_cannot_be_used_is_refused_before_anything_is_sent() {
    let unusable = |endpoints: &[Endpoint], access: &Access| match EngineClient::new(
        endpoints,
        access,
        ENGINE_ANSWER_TIMEOUT,
    ) {
        Err(EngineError::Unusable(why)) => why,
        other => panic!("{other:?}"),
    };
    let why = unusable(&[], &Access::Plain);
    assert!(why.contains("no endpoint"), "{why}");
    let endpoint = |host: &str| [Endpoint { host: host.into(), port: 9200 }];
    let why = unusable(&endpoint("logs\n0"), &Access::Plain);
    assert!(why.contains(r"logs\n0"), "{why}");
    let user = Credentials::Basic { user: "a:b".into(), password: "hush".into() };
    let access = Access::PlainWithCredentials(user, AllowPlain);
    let why = unusable(&endpoint("logs-0"), &access);
    assert!(why.contains("colon") && !why.contains("hush"), "{why}");
    match tls(&Pem::new("the CA of Secret logs-ca", "no PEM"), None) {
        Err(EngineError::Unusable(why)) => assert!(why.contains("the CA of Secret logs-ca")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let reply =
        Reply { code: 200, content_type: "text/plain", body: " ".repeat(17 << 20), sequence: None };
    let (_fake, port) = FakeManager::on_port(None, Script::Always(reply));
    match wait(client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT).health()) {
        Err(EngineError::Unanswered(why)) => assert!(why.contains("larger than 1048576"), "{why}"),
        other => panic!("{other:?}"),
    }
}
