//! TLS is turned on in a living cluster: between its nodes, which all of them need at once, and then
//! for HTTP, where the reconciler follows.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Outcome, Strategy};

use super::fixture::{Fixture, NAMES, PHASE_TIMEOUT, until};
use super::load::{self, INDEX, Load};
use super::{on, step};
use crate::support::cluster::Flavor;

/// Who asks without a name may do anything: the test is about TLS.
const SECURITY: &str = "\
xpack.security.authc.anonymous: {username: anybody, roles: superuser}
xpack.security.transport.ssl: {enabled: true, verification_mode: certificate, key: tls.key, \
    certificate: tls.crt, certificate_authorities: [ca.crt]}
";
const HTTP: &str = "xpack.security.http.ssl: {enabled: true, key: tls.key, certificate: tls.crt}";

/// Documents that are there before the first restart.
const BEFORE: usize = 100;

#[test] // proves UPDATE-81
fn turned_on_between_nodes_and_then_for_http() {
    let name = "tls::turned_on_between_nodes_and_then_for_http";
    on(name, Flavor::ElasticsearchWithCertificates, |fixture: Fixture| {
        // The CA of the managers has signed the engines' certificates, too.
        let engine = json!({"spec": {"engine": {"caSecret": "logs-manager-ca"}}});
        fixture.kube.merge::<SearchCluster>("logs", &engine);
        load::create(fixture.nodes()[0]);
        fixture.until_formed();
        let written = between_nodes(&fixture);
        for_http(&fixture, written);
    });
}

fn security(text: &str) -> String {
    text.replace("xpack.security.enabled: false", "xpack.security.enabled: true")
}

/// Returns how many documents were written.
fn between_nodes(fixture: &Fixture) -> usize {
    step("one by one is refused");
    let expected = fixture.configure_all(SECURITY, security);
    let before = runs(fixture);
    // It ends a phase after it has begun.
    fixture.policy(&json!({ "phaseTimeout": "30s" }));
    fixture.ask("one-by-one", "rolling", &[]);
    let entry = fixture.until_over("one-by-one");
    fixture.policy(&json!({ "phaseTimeout": PHASE_TIMEOUT }));
    assert_eq!(entry.outcome, Outcome::Aborted, "{entry:?}");
    assert!(entry.reason.contains("xpack.security.enabled"), "{entry:?}");
    assert_eq!(runs(fixture), before, "nothing was restarted");

    step("all at once");
    let nodes = fixture.nodes();
    assert!((0..BEFORE).all(|id| nodes[0].index(INDEX, id)), "documents are taken");
    let load = Load::start(&nodes, BEFORE);
    fixture.ask("between-nodes", "coordinated", &[]);
    done(fixture, "between-nodes", &expected, &before);
    fixture.until_formed();
    let written = load.end().written;
    step(&format!("{written} documents"));
    assert!(written > BEFORE, "{written}");
    load::assert_found(nodes[0], written);
    assert!(fixture.status().ledger.debts.is_empty());
    written
}

fn for_http(fixture: &Fixture, written: usize) {
    step("TLS for HTTP");
    let expected = fixture.configure_all(&format!("{SECURITY}{HTTP}"), security);
    let before = runs(fixture);
    fixture.ask("for-http", "coordinated", &[]);
    done(fixture, "for-http", &expected, &before);
    let health = "_cluster/health?wait_for_status=green&wait_for_nodes=3";
    until("a green cluster over TLS", || over_tls(fixture, health));
    let count = || over_tls(fixture, &format!("{INDEX}/_count"))?["count"].as_u64();
    let found = until("all documents", count);
    assert!(found >= written as u64 && found <= written as u64 + 1, "{found} of {written}");
    let is_plain = fixture.nodes()[0].send("GET", "/", None);
    assert!(is_plain.is_err(), "it has TLS only: {is_plain:?}");
    let settings = until("settings", || over_tls(fixture, "_cluster/settings?flat_settings=true"));
    assert_eq!(settings["persistent"], json!({}), "allocation is as it was");
    assert!(fixture.status().ledger.debts.is_empty());
}

/// Waits until it is over: every node runs on the expected config, under the same manager.
#[track_caller]
fn done(
    fixture: &Fixture,
    id: &str,
    expected: &BTreeMap<String, String>,
    before: &BTreeMap<String, Run>,
) {
    let entry = fixture.until_over(id);
    println!("{entry:?}");
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    assert_eq!(entry.strategy, Strategy::Coordinated);
    let after = runs(fixture);
    for name in NAMES {
        let (was, is) = (&before[name], &after[name]);
        assert_eq!((&was.boot, was.pid), (&is.boot, is.pid), "the manager of {name}");
        assert_ne!(was.run, is.run, "{name}");
        assert_eq!(is.checksum, expected[name].as_str(), "{name}");
    }
}

/// What a manager reports of itself and of its engine.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    boot: Value,
    pid: Option<i32>,
    run: Value,
    checksum: Value,
}

fn runs(fixture: &Fixture) -> BTreeMap<String, Run> {
    let cluster = fixture.cluster();
    let of = |member: &crate::support::cluster::Member| {
        let status = member.manager().api.status();
        let run = Run {
            boot: status["manager"]["boot_id"].clone(),
            pid: member.manager_pid(),
            run: status["run"]["id"].clone(),
            checksum: status["run"]["checksum"].clone(),
        };
        (member.pod.name.clone(), run)
    };
    cluster.members.iter().map(of).collect()
}

/// The answer of the first node over TLS; none if it does not answer with success.
fn over_tls(fixture: &Fixture, target: &str) -> Option<Value> {
    let (address, port, ca) = fixture
        .with(NAMES[0], |member| (member.address, member.rest.port, member.mount().join("ca.crt")));
    let output = Command::new("curl")
        .args(["--silent", "--fail", "--max-time", "30", "--cacert"])
        .arg(ca)
        .arg(format!("https://{address}:{port}/{target}"))
        .output()
        .expect("curl can be executed");
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
}
