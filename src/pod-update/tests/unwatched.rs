//! What an engine's container reads where nobody watches it.

use serde_json::{Value, json};

use super::template;
use crate::unwatched;

/// Objects and paths in the usual template, where `/config` is watched, after `change`.
fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut template = template();
    template["spec"]["containers"][0]["env"] =
        json!([{"name": "STAYPUT_CONFIG", "value": "/config"}]);
    change(&mut template);
    let found = unwatched(&template, "opensearch").into_iter();
    found.map(|one| format!("{} at {}", one.source, one.path)).collect()
}

/// Mounts a volume in the engine's container.
fn mount(all: &mut Value, path: &str, volume: Value) {
    let name = path.trim_start_matches('/').replace('/', "-");
    let mounts = all["spec"]["containers"][0]["volumeMounts"].as_array_mut().expect("a list");
    mounts.push(json!({"name": name, "mountPath": path}));
    let mut volume = volume;
    volume["name"] = json!(name);
    all["spec"]["volumes"].as_array_mut().expect("a list").push(volume);
}

fn certificates(all: &mut Value) {
    mount(all, "/certs", json!({"secret": {"secretName": "logs-certs"}}));
}

fn variable(all: &mut Value, name: &str, value: Value) {
    let mut variable = value;
    variable["name"] = json!(name);
    all["spec"]["containers"][0]["env"].as_array_mut().expect("a list").push(variable);
}

#[test] // proves UPDATE-16
fn what_is_mounted_as_a_whole_beside_the_config_is_not_watched() {
    assert_eq!(found(|_| {}), [""; 0]);
    assert_eq!(found(certificates), ["Secret logs-certs at /certs"]);
    let projected = json!([
        {"secret": {"name": "s"}},
        {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
        {"serviceAccountToken": {"path": "token"}},
    ]);
    let both = found(|all| mount(all, "/more", json!({"projected": {"sources": projected}})));
    assert_eq!(both, ["ConfigMap c at /more", "Secret s at /more"]);
}

#[test]
fn a_second_directory_of_the_config_is_watched() {
    let two = found(|all| {
        certificates(all);
        all["spec"]["containers"][0]["env"][0]["value"] = json!("main=/config,certs=/certs/");
    });
    assert_eq!(two, [""; 0]);
    let by_arguments = found(|all| {
        certificates(all);
        let options =
            ["stayput", "run", "--config=main=/config", "--config=certs=/certs", "--", "x"];
        all["spec"]["containers"][0]["command"] = json!(options);
    });
    assert_eq!(by_arguments, [""; 0]);
    // The same object twice: a change of it is a change of the config.
    let twice = found(|all| mount(all, "/again", json!({"secret": {"secretName": "logs-config"}})));
    assert_eq!(twice, [""; 0]);
    // Inside a watched directory.
    let inside = found(|all| mount(all, "/config/more", json!({"configMap": {"name": "c"}})));
    assert_eq!(inside, [""; 0]);
}

#[test] // proves UPDATE-16
fn what_the_manager_reads_itself_is_left_out() {
    for (option, value) in [
        ("STAYPUT_TLS_CERT", "/certs/tls.crt"),
        ("STAYPUT_TLS_KEY", "/certs/tls.key"),
        ("STAYPUT_CLIENT_CA", "/certs/ca.crt"),
        ("STAYPUT_JWT_KEY", "/certs/key"),
        ("STAYPUT_JWT_PUBLIC_KEY", "/certs/key.pem"),
        ("STAYPUT_JWKS", "/certs/jwks.json"),
        ("STAYPUT_READY_CA", "/certs/ca.crt"),
        // A directory.
        ("STAYPUT_READY_AUTH", "/certs"),
    ] {
        let own = found(|all| {
            certificates(all);
            variable(all, option, json!({"value": value}));
        });
        assert_eq!(own, [""; 0], "{option}");
    }
    let another = found(|all| {
        certificates(all);
        variable(all, "STAYPUT_TLS_CERT", json!({"value": "/certs-of-the-manager/tls.crt"}));
    });
    assert_eq!(another, ["Secret logs-certs at /certs"]);
}

#[test]
fn nothing_is_said_where_it_is_not_known_or_concerns_no_engine() {
    for (what, change) in [
        (
            "no config is watched",
            &(|all: &mut Value| {
                all["spec"]["containers"][0]["env"] = json!([]);
            }) as &dyn Fn(&mut Value),
        ),
        ("what is watched is not written", &|all| {
            let reference = json!({"configMapKeyRef": {"name": "c", "key": "k"}});
            all["spec"]["containers"][0]["env"][0] =
                json!({"name": "STAYPUT_CONFIG", "valueFrom": reference});
        }),
        ("what the manager reads is not written", &|all| {
            variable(all, "STAYPUT_TLS_CERT", json!({"value": "$(DIR)/tls.crt"}));
        }),
    ] {
        let found = found(|all| {
            certificates(all);
            change(all);
        });
        assert_eq!(found, [""; 0], "{what}");
    }
    // Of other containers, by `subPath`, of the pod itself.
    let others = found(|all| {
        certificates(all);
        let engine = &mut all["spec"]["containers"][0]["volumeMounts"];
        let mut certs = engine.as_array_mut().expect("a list").pop().expect("the last one");
        all["spec"]["containers"][1]["volumeMounts"] = json!([certs]);
        certs["subPath"] = json!("ca.crt");
        let mounts = all["spec"]["containers"][0]["volumeMounts"].as_array_mut().expect("a list");
        mounts.push(certs);
        let sources = json!([{"configMap": {"name": "kube-root-ca.crt"}}]);
        let path = "/var/run/secrets/kubernetes.io/serviceaccount";
        mount(all, path, json!({"projected": {"sources": sources}}));
    });
    assert_eq!(others, [""; 0]);
}
