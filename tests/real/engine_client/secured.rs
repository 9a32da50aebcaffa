//! An Elasticsearch with users, over TLS.

use stayput_engine::{
    Access, Allocation, Color, Credentials, Distribution, EngineClient, EngineError, Flush, tls,
};
use stayput_http::https::Pem;
use stayput_standin::harness::pki::issue;

use super::{BOUND, client, wait};
use crate::support::engine::{Kind, Node};
use crate::support::skip;

const SETTINGS: &str = "xpack.security.enabled: true\nxpack.security.http.ssl.enabled: true\n\
    xpack.security.http.ssl.certificate: http.crt\nxpack.security.http.ssl.key: http.key\n\
    xpack.security.authc.realms.file.file1.order: 0";
/// Passwords without the name of a hash are compared as they are.
const USERS: &str = "admin:admin-secret\nreader:reader-secret\n";
const USERS_ROLES: &str = "superuser:admin\nlooking:reader\n";
const ROLES: &str = "looking:\n  cluster: [monitor]\n";

/// A CA, and a certificate signed by it, with its key.
fn issued() -> (String, String, String) {
    issue(&["logs.search", "127.0.0.1"]).expect("a certificate").pem()
}

#[test] // proves STOP-36
fn the_right_user_is_let_in_and_every_other_is_told_why_not() {
    let name = "engine_client::secured::the_right_user_is_let_in_and_every_other_is_told_why_not";
    let mut node = match Node::new(Kind::Elasticsearch) {
        Ok(node) => node,
        Err(why) => return skip(name, &why),
    };
    let (ca, certificate, key) = issued();
    node.swap_with(
        SETTINGS,
        &[
            ("http.crt", &certificate),
            ("http.key", &key),
            ("users", USERS),
            ("users_roles", USERS_ROLES),
            ("roles.yml", ROLES),
        ],
    );
    let mut launch = node.launch();
    let ready = launch.options.iter().position(|option| option == "--ready").expect("--ready");
    let health = format!("https://127.0.0.1:{}/_cluster/health", node.http_port());
    launch.options[ready + 1] = health.clone();
    let file = |name: &str, content: &str| {
        let path = node.work().join(name);
        std::fs::write(&path, content).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (trusted, auth) = (file("ready-ca.crt", &issued().0), file("ready-auth", "reader:wrong"));
    let launch = launch.options(["--ready-ca", &trusted, "--ready-auth", &auth]);
    let manager = launch.start();
    let fails = |what: &str| {
        let status = manager.api.status_when(what, |status| {
            status["ready_error"].as_str().is_some_and(|error| error.contains(what))
        });
        let error = status["ready_error"].as_str().expect("an error");
        assert!(error.starts_with(&format!("the probe {health} ")), "{error}");
        assert!(!error.contains("wrong"), "{error}");
        assert_eq!((&status["state"], &status["ready"]), (&"starting".into(), &false.into()));
    };
    // Each is mended while the engine runs; the manager reads the file again.
    fails("ready-ca.crt did not sign");
    file("ready-ca.crt", &ca);
    fails("answered 401: the engine does not accept what is in --ready-auth");
    file("ready-auth", "reader:reader-secret\n");
    let status = manager.api.until_ready();
    assert_eq!(status["ready_error"], serde_json::Value::Null);
    assert!(!manager.log().contains("reader-secret"), "the password is in the log");

    let connect = |ca: &str, server_name: Option<&str>, credentials| -> EngineClient {
        let access = Access::Tls {
            tls: tls(&Pem::new("the CA of the test", ca), None).expect("a CA"),
            server_name: server_name.map(str::to_owned),
            credentials,
        };
        client(&[("127.0.0.1".into(), node.http_port())], &access)
    };
    let basic = |user: &str, password: &str| {
        Some(Credentials::Basic { user: user.into(), password: password.into() })
    };

    let admin = connect(&ca, None, basic("admin", "admin-secret"));
    let engine = wait(admin.identify()).expect("an engine");
    assert_eq!(engine.distribution, Distribution::Elasticsearch);
    assert_eq!((engine.version.to_string().as_str(), engine.has_node_shutdown), ("8.19.0", false));
    assert_eq!(wait(admin.health()).expect("health").color, Color::Green);
    let before = wait(admin.allocation(&engine)).expect("settings");
    assert_eq!(before, Allocation::default());
    let named = connect(&ca, Some("logs.search"), basic("admin", "admin-secret"));
    assert_eq!(wait(named.health()).expect("health").data_nodes, 1);

    let wrong_name = connect(&ca, Some("metrics.search"), basic("admin", "admin-secret"));
    match wait(wrong_name.health()) {
        Err(EngineError::Untrusted(why)) => assert!(why.contains("metrics.search"), "{why}"),
        other => panic!("{other:?}"),
    }
    let wrong_ca = connect(&issued().0, None, basic("admin", "admin-secret"));
    match wait(wrong_ca.health()) {
        Err(EngineError::Untrusted(why)) => assert!(why.contains("not signed by"), "{why}"),
        other => panic!("{other:?}"),
    }
    for (credentials, shown) in [
        (basic("admin", "wrong-secret"), "did not accept the user and password"),
        (basic("nobody", "admin-secret"), "did not accept the user and password"),
        (Some(Credentials::ApiKey("aWQ6a2V5".into())), "did not accept the API key"),
        (None, "did not accept the client certificate, if any"),
    ] {
        let outsider = connect(&ca, None, credentials);
        match wait(outsider.health()) {
            Err(EngineError::Unauthorized(why)) => {
                assert!(why.contains(shown) && why.contains("HTTP 401"), "{why}");
                assert!(!why.contains("secret"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(wait(outsider.identify()), Err(EngineError::Unauthorized(_))));
    }

    let reader = connect(&ca, None, basic("reader", "reader-secret"));
    let seen = wait(reader.identify()).expect("monitor is enough to read");
    assert_eq!(seen, engine);
    let topology = wait(reader.topology(&seen, None)).expect("monitor is enough to read");
    assert_eq!((topology.nodes.len(), topology.shards.len()), (1, 0));
    match wait(reader.tighten(&before, "primaries", "{}")) {
        Err(EngineError::Unauthorized(why)) => {
            assert!(why.contains("HTTP 403") && why.contains("`manage`"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    match wait(reader.flush(&engine, BOUND)) {
        Flush::NotKnown(why) => assert!(why.contains("indices:admin/flush"), "{why}"),
        done @ Flush::Done { .. } => panic!("{done:?}"),
    }
    assert_eq!(wait(admin.allocation(&engine)).expect("settings"), before);
}
