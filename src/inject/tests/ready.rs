//! Secured engines: how the manager asks whether they are ready.

use serde_json::Value;

use super::manifests::manifest;
use crate::{Authority, Finding, Login, Options, inject, uninject};

/// A manifest with these replacements.
fn edited(name: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(manifest(name), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

fn options(ready: &str, login: &str, authority: &str) -> Options {
    let chosen = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Options {
        ready: chosen(ready),
        ready_auth: chosen(login).map(|text| Login::parse(&text).unwrap()),
        ready_ca: chosen(authority).map(|text| Authority::parse(&text).unwrap()),
        ..Options::default()
    }
}

/// The spec of the pods of the last object.
fn pod(text: &str) -> Value {
    let object = crate::yaml::documents(text).unwrap().pop().unwrap().root.unwrap().value();
    match &object["spec"]["template"]["spec"] {
        Value::Null => object["spec"]["nodeSets"][0]["podTemplate"]["spec"].clone(),
        spec => spec.clone(),
    }
}

fn variable<'a>(pod: &'a Value, name: &str) -> &'a str {
    let env = pod["containers"][0]["env"].as_array().unwrap();
    let item = env.iter().find(|item| item["name"] == name);
    item.map_or("", |item| item["value"].as_str().unwrap())
}

/// The URL, what the manager logs in with, and the CA.
fn asked(pod: &Value) -> [&str; 3] {
    ["STAYPUT_READY", "STAYPUT_READY_AUTH", "STAYPUT_READY_CA"].map(|name| variable(pod, name))
}

fn errors(text: &str, options: &Options) -> Vec<Finding> {
    inject(text, options).expect_err("it is refused")
}

const HEALTH: &str = "https://127.0.0.1:9200/_cluster/health";
const LOGIN: &str = "/stayput-ready-auth";
const CA: &str = "/stayput-ready-ca/ca.crt";

#[test] // proves MANIFEST-9
fn with_its_secrets_the_health_of_a_secured_engine_is_asked() {
    let plain = "http://127.0.0.1:9200/_cluster/health";
    let set = |name: &str, value: &str| {
        edited(
            "elasticsearch-chart.yaml",
            &[
                ("name: xpack.security.http.ssl.enabled", &format!("name: {name}")),
                ("\"true\"", value),
            ],
        )
    };
    let (tls, no_tls) =
        (manifest("elasticsearch-chart.yaml"), set("xpack.security.http.ssl.enabled", "\"false\""));
    let unknown = manifest("opensearch-chart.yaml");
    let own = set("STAYPUT_READY_AUTH", "/own");
    let own_url = set("STAYPUT_READY", HEALTH);
    for (text, options, expected) in [
        (&tls, options("", "secret/a", "secret/b"), [HEALTH, LOGIN, CA]),
        (&unknown, options("", "secret/a", ""), [HEALTH, LOGIN, ""]),
        (
            &unknown,
            options("", "", "configmap/b/root.pem"),
            [HEALTH, "", "/stayput-ready-ca/root.pem"],
        ),
        (&unknown, options("", "secret/a/auth", ""), [HEALTH, "/stayput-ready-auth/auth", ""]),
        (&unknown, options("", "secret/a/elastic", ""), [HEALTH, LOGIN, ""]),
        (&no_tls, options("", "secret/a", ""), [plain, LOGIN, ""]),
        (&unknown, options(plain, "secret/a", ""), [plain, LOGIN, ""]),
        (&own, options("", "", "secret/b"), [HEALTH, "/own", CA]),
        (&own, options("", "", ""), [HEALTH, "/own", ""]),
        (&own_url, options("", "secret/a", "secret/b"), [HEALTH, LOGIN, CA]),
        (&tls, options("", "", ""), ["tcp://127.0.0.1:9200", "", ""]),
    ] {
        let injected = inject(text, &options).unwrap_or_else(|found| panic!("{found:#?}")).text;
        assert_eq!(asked(&pod(&injected)), expected, "{options:?}");
        assert_eq!(&uninject(&injected).unwrap().text, text);
        assert_eq!(inject(&injected, &options).unwrap().text, injected);
    }
}

#[test] // proves MANIFEST-9
fn of_a_secret_only_what_is_needed_is_mounted() {
    let text = manifest("opensearch-chart.yaml");
    let pod = pod(&inject(&text, &options("", "secret/a/elastic", "secret/b")).unwrap().text);
    let volume = |name: &str| {
        let volumes = pod["volumes"].as_array().unwrap();
        volumes.iter().find(|volume| volume["name"] == name).unwrap().clone()
    };
    let items = |key: &str| serde_json::json!([{ "key": key, "path": key }]);
    assert_eq!(volume("stayput-ready-auth")["secret"]["items"], items("elastic"));
    assert_eq!(volume("stayput-ready-ca")["secret"]["items"], items("ca.crt"));
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    for path in ["/stayput-ready-auth", "/stayput-ready-ca"] {
        let mount = mounts.iter().find(|mount| mount["mountPath"] == path).unwrap();
        assert_eq!(mount["readOnly"], true);
    }
}

#[test] // proves MANIFEST-9
fn the_secrets_of_eck_follow_from_the_name() {
    let old = manifest("eck-7.yaml");
    let with = |line: &str| old.replace("  nodeSets:", &format!("  {line}\n  nodeSets:"));
    let new = manifest("eck.yaml");
    // That the init container gets a user is said elsewhere.
    let options = |ready: &str, login: &str, authority: &str| Options {
        assigned_user: true,
        ..options(ready, login, authority)
    };
    let plain = "http://127.0.0.1:9200/_cluster/health";
    let no_tls = with("http: {tls: {selfSignedCertificate: {disabled: true}}}");
    let own = with("http: {tls: {certificate: {secretName: own}}}");
    let nobody = with("auth: {disableElasticUser: true}");
    for (text, options, expected) in [
        (&old, options("", "", ""), [HEALTH, LOGIN, CA]),
        (&no_tls, options("", "", ""), [plain, LOGIN, ""]),
        (&own, options("", "", ""), [HEALTH, LOGIN, ""]),
        (&own, options("", "", "secret/own"), [HEALTH, LOGIN, CA]),
        (&nobody, options("", "secret/reader", ""), [HEALTH, LOGIN, CA]),
        (&old, options("tcp://127.0.0.1:9200", "", ""), ["tcp://127.0.0.1:9200", "", ""]),
        // The readiness port needs no user, and says that the node has joined.
        (&new, options("", "", ""), ["tcp://127.0.0.1:8080", "", ""]),
        (&new, options(HEALTH, "", ""), [HEALTH, LOGIN, CA]),
        (&new, options("", "secret/reader", ""), [HEALTH, LOGIN, CA]),
    ] {
        let injected = inject(text, &options).unwrap_or_else(|found| panic!("{found:#?}"));
        assert_eq!(injected.notes, []);
        assert_eq!(asked(&pod(&injected.text)), expected, "{options:?}");
        assert_eq!(&uninject(&injected.text).unwrap().text, text);
    }
    let [found] = &errors(&nobody, &Options::default())[..] else { panic!("one error") };
    assert_eq!(found.field.as_deref(), Some("spec.auth.disableElasticUser"));
    assert!(found.remedy.contains("--ready-auth secret/NAME"), "{found}");
}

#[test] // proves MANIFEST-9
fn what_the_manager_would_refuse_is_said_before() {
    let text = manifest("opensearch-chart.yaml");
    for (ready, login, authority, message, remedy) in [
        (
            "tcp://127.0.0.1:9200",
            "secret/a",
            "",
            "asks for no user",
            "--ready https://127.0.0.1:9200",
        ),
        ("tcp://127.0.0.1:9200", "", "secret/b", "has no certificate", "Leave out --ready-ca"),
        ("http://localhost:1/", "secret/a", "secret/b", "has no certificate", "--ready https"),
        (
            "https://logs:9200/",
            "secret/a",
            "",
            "a password would be sent to https://logs",
            "--ready-ca",
        ),
        ("http://10.0.0.1:9200/", "secret/a", "", "nothing proves who gets it", "--ready-ca"),
    ] {
        let found = errors(&text, &options(ready, login, authority));
        let found = found.iter().find(|one| one.message.contains(message)).expect(message);
        assert!(found.field.as_deref().unwrap().ends_with(".readinessProbe"), "{found}");
        assert!(found.remedy.contains(remedy), "{found}");
    }
    for ready in ["http://[::1]:9200/", "https://127.0.0.2:9200", "http://localhost:9200/x"] {
        assert!(inject(&text, &options(ready, "secret/a", "")).is_ok(), "{ready}");
    }
    assert!(inject(&text, &options("https://logs:9200/", "secret/a", "secret/b")).is_ok());
    for (text, expected) in [
        ("a", "write secret/NAME, with"),
        ("secret/", "write secret/NAME, with"),
        ("secret/a/b/c", "write secret/NAME, with"),
        ("configmap/a", "a password belongs into a Secret"),
        ("secret/a/password", "write secret/a"),
    ] {
        let error = Login::parse(text).expect_err(text);
        assert!(error.contains(expected), "{error}");
    }
    for text in ["b", "secret/", "configmap/b/", "secret/b/c/d", "pod/b"] {
        assert!(Authority::parse(text).unwrap_err().contains("configmap/NAME/KEY"), "{text}");
    }
}

#[test] // proves MANIFEST-10
fn a_note_says_what_is_known_of_the_engine() {
    const SETTING: &str = "xpack.security.http.ssl.enabled";
    let note = |name: &str, value: &str, options: &Options| {
        let edits = [(SETTING, name), ("\"true\"", value)];
        let text = edited("elasticsearch-chart.yaml", &edits);
        let notes = inject(&text, options).unwrap().notes.into_iter();
        let mut notes =
            notes.filter(|note| note.field.as_deref().unwrap().ends_with(".readinessProbe"));
        notes.next().map(|note| note.to_string())
    };
    let none = Options::default();
    for (name, value, parts) in [
        (SETTING, "'true'", ["the engine has TLS, and", "--ready-ca secret/NAME"]),
        (
            "plugins.security.ssl.http.enabled",
            "'true'",
            ["the engine has TLS, and", "--ready-auth"],
        ),
        (SETTING, "\"false\"", ["the engine has no TLS, and", "--ready http://127.0.0.1:9200"]),
        ("other", "x", ["it is unknown whether the engine has TLS", "--ready-auth secret/NAME"]),
    ] {
        let note = note(name, value, &none).expect(name);
        assert!(parts.iter().all(|part| note.contains(part)), "{note}");
        assert!(note.contains("it counts as ready when port 9200 is open"), "{note}");
    }
    for (name, value) in
        [("xpack.security.enabled", "\"false\""), ("STAYPUT_READY", "tcp://127.0.0.1:9200")]
    {
        assert_eq!(note(name, value, &none), None, "{name}");
    }
    let secrets = options("", "secret/a", "");
    assert_eq!(note("other", "x", &secrets), None);
    let shared = edited("opensearch-chart.yaml", &[("enableServiceLinks", "hostNetwork")]);
    let notes = inject(&shared, &secrets).unwrap().notes;
    assert!(notes.iter().any(|note| note.message.contains("with hostNetwork")), "{notes:#?}");
    assert!(
        inject(&shared, &options("", "secret/a", "secret/b")).unwrap().notes.len() < notes.len()
    );
}

/// They are those that docs/inject.md names for each maker.
#[test] // proves MANIFEST-10
fn a_note_names_the_secrets_that_are_probably_the_right_ones() {
    let note = |text: &str| {
        let notes = inject(text, &Options::default()).unwrap().notes.into_iter();
        let mut notes = notes.filter(|note| note.message.contains("it counts as ready when"));
        notes.next().unwrap().to_string()
    };
    let password = "- {name: ELASTIC_PASSWORD, valueFrom: {secretKeyRef: {name: master-credentials, key: password}}}\n";
    let setting = "- name: xpack.security.http.ssl.enabled";
    let chart =
        edited("elasticsearch-chart.yaml", &[(setting, &format!("{password}          {setting}"))]);
    assert!(
        note(&chart).contains("--ready-auth secret/master-credentials and"),
        "{}",
        note(&chart)
    );
    let cluster = |security: &str| {
        edited(
            "opensearch-cluster-3.yaml",
            &[("spec:\n", &format!("spec:\n  security: {{{security}}}\n"))],
        )
    };
    for (security, parts) in [
        (
            "",
            [
                "the engine has no TLS",
                "--ready-auth secret/logs-admin-password; if it asks for no user, --ready http://127.0.0.1:9200",
            ],
        ),
        (
            "config: {adminCredentialsSecret: {name: ''}}",
            ["the engine has no TLS", "--ready-auth secret/logs-admin-password"],
        ),
        (
            "tls: {http: {generate: true}}",
            ["the engine has TLS", "secret/logs-admin-password and --ready-ca secret/logs-ca"],
        ),
        (
            "tls: {http: {secret: {name: a}}}, config: {adminCredentialsSecret: {name: own}}",
            ["the engine has TLS", "--ready-auth secret/own and --ready-ca secret/NAME"],
        ),
        ("tls: {http: {enabled: false}}", ["the engine has no TLS", ""]),
    ] {
        let note = note(&cluster(security));
        assert!(parts.iter().all(|part| note.contains(part)), "{security}: {note}");
    }
}
