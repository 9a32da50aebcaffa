//! Clocks of managers, the reconciler, the apiserver and this machine.

use serde_json::json;
use stayput_restart::Time;

use crate::doctor::Severity::{Error, Warning};
use crate::doctor::checks::findings;
use crate::doctor::tests::each;
use crate::doctor::tests::healthy::{certificate, encoded, from, healthy, now, unknown};
use crate::doctor::{ApiserverTime, Facts, Taken};

const POD: &str = "Pod/logs-0";
const RECONCILER: &str = "Deployment/stayput-reconciler";

/// The clock of the first manager is so many seconds ahead.
fn manager_ahead(facts: &mut Facts, seconds: i64) {
    facts.see(|it| it["snapshot"]["pods"][0]["manager"]["known"]["clockAhead"] = json!(seconds));
}

/// The reconciler's clock is so many seconds ahead.
fn ahead(facts: &mut Facts, seconds: i64) {
    let Ok(Taken { saved, .. }) = &mut facts.snapshot else { return };
    let at = now().0.checked_add_signed(seconds * 1000).unwrap();
    saved.snapshot.now = Time(at);
}

#[test] // proves DOCTOR-1, DOCTOR-4
fn clocks() {
    each(&[
        (
            "a minute behind",
            |facts| ahead(facts, -60),
            Warning,
            "clock",
            RECONCILER,
            ["60 s behind the apiserver's", "timedatectl"],
        ),
        (
            "ten minutes ahead",
            |facts| ahead(facts, 600),
            Error,
            "clock",
            RECONCILER,
            ["600 s ahead of the apiserver's", "timedatectl"],
        ),
        (
            "a manager 29 s ahead",
            |facts| manager_ahead(facts, 29),
            Warning,
            "clock",
            POD,
            ["29 s ahead of the reconciler's", "timedatectl"],
        ),
        (
            "a manager 30 s behind",
            |facts| manager_ahead(facts, -30),
            Error,
            "clock",
            POD,
            ["30 s behind the reconciler's: it may refuse tokens", "timedatectl"],
        ),
        (
            "a manager that takes certificates, an hour behind",
            |facts| {
                facts.put_secret(json!({
                    "metadata": {"name": "client", "annotations": {"stayput.dev/allow": "logs"}},
                    "data": {"tls.crt": encoded(&certificate(2027)), "tls.key": "YQ=="},
                }));
                facts.change_cluster(|it| {
                    it["spec"]["manager"]["auth"] = json!({"clientCertificateSecret": "client"});
                });
                manager_ahead(facts, -3600);
            },
            Warning,
            "clock",
            POD,
            ["3600 s behind the reconciler's", "timedatectl"],
        ),
    ]);
    let mut facts = healthy();
    manager_ahead(&mut facts, 4);
    assert_eq!(findings(&facts), []);
    // A snapshot that takes long was made at some time meanwhile.
    let mut facts = healthy();
    ahead(&mut facts, 30);
    facts.snapshot.as_mut().unwrap().answered = now().plus(40_000);
    assert_eq!(findings(&facts), []);
    // So is an answer of the apiserver that takes long.
    ahead(&mut facts, 0);
    let (asked, answered) = (now(), now().plus(40_000));
    facts.installation.apiserver_time =
        Ok(ApiserverTime { asked, server: now().plus(20_000), answered });
    assert_eq!(findings(&facts), []);
}

/// It is compared without a reconciler, and makes none absent.
#[test] // proves DOCTOR-4
fn a_wrong_clock_of_this_machine_is_no_fault_of_the_reconciler() {
    for (server, words) in
        [(-3600, "3600 s ahead of the apiserver's"), (3600, "3600 s behind the apiserver's")]
    {
        let server = Time(now().0.checked_add_signed(server * 1000).unwrap());
        let mut facts = healthy();
        facts.installation.apiserver_time =
            Ok(ApiserverTime { asked: now(), server, answered: now() });
        facts.installation.lease = Ok(Some(from(json!({"spec": {
            "holderIdentity": "one", "renewTime": server.to_string(),
        }}))));
        facts.snapshot = Err(unknown());
        let found = findings(&facts);
        let codes: Vec<&str> = found.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, ["no_snapshot", "clock"], "{found:#?}");
        assert!(found[1].message.contains(words), "{found:#?}");
        assert_eq!((found[1].severity, found[1].object.as_str()), (Warning, "this machine"));
    }
}
