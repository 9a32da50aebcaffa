//! Which objects the engine's config is made from, or why they cannot be found.

use serde_json::{Value, json};

use super::template;
use crate::{MountedPart, mounted_config};

/// What is found in the usual template after `change`: a line for each object, and the globs; or the
/// reason.
fn found(change: impl FnOnce(&mut Value)) -> Result<Vec<String>, String> {
    let mut template = template();
    template["spec"]["containers"][0]["env"] =
        json!([{"name": "STAYPUT_CONFIG", "value": "/config"}]);
    change(&mut template);
    let config = mounted_config(&template, "opensearch").map_err(|error| error.to_string())?;
    let line = |part: MountedPart| {
        let MountedPart { source, items, directory, optional } = part;
        let items: Vec<String> =
            items.into_iter().map(|(key, path)| format!(" {key}={path}")).collect();
        let optional = if optional { " optional" } else { "" };
        let directory = if directory.is_empty() { directory } else { format!("{directory}: ") };
        format!("{directory}{source}{}{optional}", items.concat())
    };
    let lines = config.parts.into_iter().map(line);
    Ok(lines.chain(config.live.into_iter().map(|glob| format!("live {glob}"))).collect())
}

/// The reason that begins like this.
#[track_caller]
fn not_found(begin: &str, change: impl FnOnce(&mut Value)) {
    let reason = found(change).expect_err("nothing is found");
    assert!(reason.starts_with(begin), "{reason}");
}

fn lines(lines: &[&str]) -> Result<Vec<String>, String> {
    Ok(lines.iter().map(|line| (*line).to_owned()).collect())
}

fn container(all: &mut Value) -> &mut Value {
    &mut all["spec"]["containers"][0]
}

fn volume(all: &mut Value, volume: Value) {
    all["spec"]["volumes"] = json!([volume]);
}

#[test] // proves UPDATE-66
fn the_directory_is_named_by_variables_or_arguments() {
    assert_eq!(found(|_| {}), lines(&["Secret logs-config"]));
    for command in [
        json!(["/stayput/stayput", "run", "--config=/config/", "--live=*.crt", "--", "opensearch"]),
        json!(["stayput", "run", "--config", "/config", "--live", "*.crt", "--", "opensearch"]),
    ] {
        let with_command = found(|all| {
            container(all)["env"] = json!([
                {"name": "STAYPUT_CONFIG", "value": "/other"},
                {"name": "STAYPUT_LIVE", "value": "users*"},
            ]);
            container(all)["command"] = command;
        });
        assert_eq!(with_command, lines(&["Secret logs-config", "live *.crt"]));
    }
    let arguments = found(|all| {
        container(all)["env"] = json!([]);
        container(all)["args"] = json!(["run", "--config=/config", "--", "x"]);
    });
    assert_eq!(arguments, lines(&["Secret logs-config"]));
    let several = found(|all| {
        container(all)["env"] = json!([
            {"name": "STAYPUT_CONFIG", "value": "main=/config,jvm=/jvm\n"},
            {"name": "STAYPUT_LIVE", "value": "main/users*, *.crt"},
        ]);
        let jvm = json!({"name": "jvm", "mountPath": "/jvm"});
        container(all)["volumeMounts"].as_array_mut().expect("a list").push(jvm);
        let jvm = json!({"name": "jvm", "configMap": {"name": "logs-jvm"}});
        all["spec"]["volumes"].as_array_mut().expect("a list").push(jvm);
    });
    let expected =
        ["main: Secret logs-config", "jvm: ConfigMap logs-jvm", "live main/users*", "live *.crt"];
    assert_eq!(several, lines(&expected));
}

#[test] // proves UPDATE-66
fn what_is_not_written_in_the_pod_is_not_guessed() {
    not_found("has neither --config nor STAYPUT_CONFIG", |all| container(all)["env"] = json!([]));
    not_found("has neither --config nor STAYPUT_CONFIG", |all| {
        // Of the engine, or of a shell.
        container(all)["env"] = json!([]);
        container(all)["command"] = json!(["stayput", "run", "--", "x", "--config=/config"]);
        container(all)["args"] = json!(["sh", "-c", "stayput run --config=/config"]);
    });
    not_found("takes STAYPUT_CONFIG from elsewhere", |all| {
        let reference = json!({"configMapKeyRef": {"name": "c", "key": "k"}});
        container(all)["env"] = json!([{"name": "STAYPUT_CONFIG", "valueFrom": reference}]);
    });
    not_found("takes --config from elsewhere", |all| {
        container(all)["command"] = json!(["stayput", "run", "--config=$(DIR)", "--", "x"]);
    });
    not_found("takes STAYPUT_LIVE from elsewhere", |all| {
        let live = json!({"name": "STAYPUT_LIVE", "value": "$(LIVE)"});
        container(all)["env"].as_array_mut().expect("a list").push(live);
    });
    not_found("watches config, which is no absolute path", |all| {
        container(all)["env"][0]["value"] = json!("config");
    });
}

#[test] // proves UPDATE-66
fn items_and_what_is_optional_are_as_in_the_volume() {
    let items = json!([{"key": "a", "path": "x/a.yml"}, {"key": "b", "path": "b"}]);
    let config_map = json!({"name": "c", "items": items, "optional": true, "defaultMode": 256});
    let one = found(|all| volume(all, json!({"name": "config", "configMap": config_map})));
    assert_eq!(one, lines(&["ConfigMap c a=x/a.yml b=b optional"]));
    let projected = json!([
        {"secret": {"name": "s", "items": []}},
        {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}], "optional": true}},
        {"secret": {"name": "last"}},
    ]);
    let three = found(|all| {
        volume(all, json!({"name": "config", "projected": {"sources": projected}}));
    });
    assert_eq!(three, lines(&["Secret s", "ConfigMap c k=p optional", "Secret last"]));
}

#[test] // proves UPDATE-66
fn a_directory_with_other_files_is_not_taken_for_config() {
    not_found("watches /config, where no volume is mounted", |all| {
        container(all)["volumeMounts"] = json!([{"name": "config", "mountPath": "/"}]);
    });
    not_found("watches /config, whose volume is of the kind emptyDir", |all| {
        volume(all, json!({"name": "config", "emptyDir": {}}));
    });
    not_found("mounts parts of volumes by subPath at /config", |all| {
        container(all)["volumeMounts"] = json!([
            {"name": "config", "mountPath": "/config/opensearch.yml", "subPath": "opensearch.yml"},
        ]);
    });
    not_found("watches /config, in which another volume is mounted at /config/certs", |all| {
        let certs = json!({"name": "certs", "mountPath": "/config/certs"});
        container(all)["volumeMounts"].as_array_mut().expect("a list").push(certs);
    });
    let beside = found(|all| {
        let certs = json!({"name": "certs", "mountPath": "/config-certs"});
        container(all)["volumeMounts"].as_array_mut().expect("a list").push(certs);
    });
    assert_eq!(beside, lines(&["Secret logs-config"]));
    not_found("watches /config, in which serviceAccountToken is mounted, too", |all| {
        let sources = json!([
            {"secret": {"name": "s"}},
            {"serviceAccountToken": {"path": "token"}},
        ]);
        volume(all, json!({"name": "config", "projected": {"sources": sources}}));
    });
}
