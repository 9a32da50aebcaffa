//! Pairs of configs, and the settings that need all nodes at once.

use serde_json::{Value, json};

use crate::{EngineVersion, decisive, needs_coordinated, settings};

const ES8: EngineVersion = EngineVersion::Elasticsearch(8, 19);
const ES7: EngineVersion = EngineVersion::Elasticsearch(7, 17);
const ES70: EngineVersion = EngineVersion::Elasticsearch(7, 0);
const ES68: EngineVersion = EngineVersion::Elasticsearch(6, 8);
const OS2: EngineVersion = EngineVersion::OpenSearch(2, 19);

#[test] // proves UPDATE-71
fn nested_and_flat_are_the_same() {
    let flat = json!({"cluster.name": "a", "node.roles": ["data", "ingest"], "x.y": null});
    let nested = json!({"cluster": {"name": " a"}, "node": {"roles": ["data", "ingest"]}});
    let mixed = json!({"cluster": {"name": "a"}, "node.roles": "data,ingest"});
    assert_eq!(settings(&flat), settings(&nested));
    assert_eq!(settings(&flat), settings(&mixed));
    assert_eq!(settings(&json!({"a": {"b.c": true, "d": 1}}))["a.b.c"], "true");
    assert!(settings(&Value::Null).is_empty());
}

#[test] // proves UPDATE-71, UPDATE-82
fn each_pair_needs_what_it_needs() {
    let tls = "xpack.security.transport.ssl.enabled";
    let security = "xpack.security.enabled";
    let licence = "xpack.license.self_generated.type";
    let open = "plugins.security.disabled";
    let open_tls = "plugins.security.ssl.transport.enabled";
    let dual = "plugins.security_config.ssl_dual_mode_enabled";
    let old_tls = "opendistro_security.ssl.transport.enabled";
    let old_dual = "opendistro_security_config.ssl_dual_mode_enabled";
    let none: &[&str] = &[];
    for (name, engine, old, new, expected) in [
        ("nothing", ES8, json!({}), json!({}), none),
        ("a name", ES8, json!({}), json!({"cluster.name": "logs"}), &["cluster.name"]),
        ("the default's name", ES8, json!({}), json!({"cluster.name": "elasticsearch"}), none),
        ("the default's name", OS2, json!({}), json!({"cluster": {"name": "opensearch"}}), none),
        ("TLS on", ES8, json!({}), json!({tls: true}), &[tls]),
        ("TLS off", ES8, json!({tls: true}), json!({tls: "false"}), &[tls]),
        ("TLS without security", ES7, json!({}), json!({tls: true}), none),
        (
            "security on",
            ES7,
            json!({tls: true}),
            json!({tls: true, security: true}),
            &[security, tls],
        ),
        ("security said", ES8, json!({}), json!({security: true}), none),
        ("security off", ES8, json!({}), json!({security: false}), &[security]),
        ("a licence, later", ES7, json!({}), json!({licence: "trial"}), none),
        ("a licence, 7.0", ES70, json!({}), json!({licence: "trial"}), &[licence]),
        (
            "a licence, 6.8",
            ES68,
            json!({licence: "basic"}),
            json!({licence: "gold"}),
            &[security, licence],
        ),
        (
            "a licence with security off by name",
            ES68,
            json!({security: false}),
            json!({security: false, licence: "trial"}),
            none,
        ),
        (
            "a licence with security on by name, 6.8",
            ES68,
            json!({security: true}),
            json!({security: true, licence: "trial"}),
            none,
        ),
        (
            "a licence with security on by name, 7.0",
            ES70,
            json!({security: true}),
            json!({security: true, licence: "trial"}),
            &[licence],
        ),
        ("the same rank, 6.8", ES68, json!({licence: "gold"}), json!({licence: "platinum"}), none),
        ("a licence, OpenSearch", OS2, json!({}), json!({licence: "trial"}), none),
        ("a port", ES8, json!({}), json!({"transport.port": 9301}), &["transport.port"]),
        (
            "a port's old name",
            ES68,
            json!({"transport.port": 9301}),
            json!({"transport.tcp.port": 9301}),
            none,
        ),
        ("alone", OS2, json!({}), json!({"discovery.type": "single-node"}), &["discovery.type"]),
        ("zen", ES68, json!({}), json!({"discovery.type": "zen"}), none),
        (
            "FIPS",
            ES8,
            json!({}),
            json!({"xpack.security.fips_mode.enabled": true}),
            &["xpack.security.fips_mode.enabled"],
        ),
        ("security off", OS2, json!({}), json!({open: true}), &[open]),
        (
            "its old name",
            OS2,
            json!({"opendistro_security.disabled": true}),
            json!({open: true}),
            none,
        ),
        ("TLS off", OS2, json!({}), json!({open_tls: false}), &[open_tls]),
        ("TLS in dual mode", OS2, json!({dual: true, open_tls: false}), json!({dual: true}), none),
        ("dual mode alone", OS2, json!({}), json!({dual: true}), none),
        (
            "TLS with dual mode at once",
            OS2,
            json!({open_tls: false}),
            json!({dual: true}),
            &[open_tls],
        ),
        ("TLS of HTTP", ES8, json!({}), json!({"xpack.security.http.ssl.enabled": true}), none),
        ("roles", ES8, json!({}), json!({"node.roles": ["data"]}), none),
        ("old TLS off", OS2, json!({}), json!({old_tls: false}), &[open_tls]),
        (
            "old dual mode",
            OS2,
            json!({old_dual: true, open_tls: false}),
            json!({old_dual: true}),
            none,
        ),
        ("first masters", ES8, json!({"cluster.initial_master_nodes": ["a"]}), json!({}), none),
    ] {
        let found = needs_coordinated(&settings(&old), &settings(&new), engine);
        let names: Vec<&str> = found.iter().map(|reason| reason.setting).collect();
        assert_eq!(names, expected, "{name}, {engine:?}: {found:?}");
        let back = needs_coordinated(&settings(&new), &settings(&old), engine);
        let remembered = [&old, &new].map(|file| decisive(&settings(file)));
        assert_eq!(needs_coordinated(&remembered[0], &remembered[1], engine), found, "{name}");
        assert_eq!(back.len(), found.len(), "the way back of {name}, {engine:?}: {back:?}");
    }
}
