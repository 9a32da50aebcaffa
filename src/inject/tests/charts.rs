//! What charts do besides: they copy the config, install plugins, set limits, and have tests of their own.

use serde_json::{Value, json};

use super::manifests::manifest;
use crate::{Options, Outcome, Severity, inject, uninject};

const CHART: &str = "opensearch-chart-3.yaml";
const COPY: &str = "cp -r /tmp/configfolder/*  /tmp/config/\n";
const ENTRYPOINT: &str = "          bash opensearch-docker-entrypoint.sh\n";
const INSTALL: &str = "          ./bin/opensearch-plugin install -b analysis-icu\n";

fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(manifest(CHART), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

#[track_caller]
fn done(text: &str) -> Outcome {
    let outcome = inject(text, &Options::default()).unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!(uninject(&outcome.text).unwrap().text, text);
    outcome
}

/// The engine's script behind another shell, written as a list.
fn with_shell(shell: &str) -> String {
    const SHELL: &str = "        command:\n        - sh\n        - -c\n        - |\n          #!/usr/bin/env bash\n          set";
    let text = manifest(CHART);
    let (before, rest) = text.rsplit_once(SHELL).unwrap();
    let (script, behind) = rest.split_once("        image:").unwrap();
    let script = format!("#!/usr/bin/env bash\nset{}", script.replace("\n          ", "\n"));
    let words = shell.strip_suffix(']').unwrap();
    format!(
        "{before}        command: {words}, {}]\n        image:{behind}",
        json!(script.trim_end())
    )
}

/// The pod's spec, and the engine's container in it.
fn spec(text: &str) -> (Value, Value) {
    let documents = crate::yaml::documents(text).unwrap().into_iter();
    let mut objects = documents.filter_map(|document| Some(document.root?.value()));
    let set = objects.find(|object| object["kind"] == "StatefulSet").unwrap();
    let spec = set["spec"]["template"]["spec"].clone();
    let engine = spec["containers"][0].clone();
    (spec, engine)
}

fn named<'a>(list: &'a Value, field: &str, name: &str) -> &'a Value {
    let mut items = list.as_array().unwrap().iter();
    items.find(|item| item[field] == name).unwrap_or(&Value::Null)
}

#[test] // proves MANIFEST-20
fn a_config_that_an_init_container_only_copies_is_watched_at_its_source() {
    let (spec, engine) = spec(&done(&manifest(CHART)).text);
    assert_eq!(
        named(&spec["volumes"], "name", "stayput-config"),
        &json!({"name": "stayput-config", "configMap": {"name": "search-master-config"}})
    );
    let path = "/usr/share/opensearch/config/opensearch.yml";
    assert_eq!(named(&engine["volumeMounts"], "mountPath", path), &Value::Null, "no longer a copy");
}

#[test] // proves MANIFEST-20
fn a_config_that_may_be_something_else_is_named_in_a_note() {
    let mount = "mountPath: /tmp/configfolder/opensearch.yml\n            subPath: opensearch.yml";
    for (from, to) in [
        (COPY, "cp -r /tmp/configfolder/* /tmp/config/\n          sed -i s/a/b/ /tmp/config/x\n"),
        (COPY, "cp -r /usr/share/opensearch/config/. /tmp/config/\n"),
        (COPY, "cp /tmp/configfolder/opensearch.yml /tmp/config/other.yml\n"),
        (COPY, "envsubst < /tmp/configfolder/opensearch.yml > /tmp/config/opensearch.yml\n"),
        (mount, "mountPath: /tmp/configfolder/opensearch.yml\n            subPath: green.yml"),
    ] {
        let outcome = done(&edited(&[(from, to)]));
        assert!(!outcome.text.contains("STAYPUT_CONFIG"), "{to}");
        let note = outcome.notes.iter().find(|note| note.message.contains("not watched")).unwrap();
        assert!(note.message.contains("written by the init container configfile"), "{to}: {note}");
        assert!(note.remedy.contains("the ConfigMap search-master-config"), "{to}: {note}");
    }
    let other = "- mountPath: /x\n            name: other\n          - mountPath: /tmp/config/";
    let secret = "- name: other\n        secret: {secretName: s}\n      - emptyDir: {}";
    let text = edited(&[("- mountPath: /tmp/config/", other), ("- emptyDir: {}", secret)]);
    let outcome = done(&text);
    let is_one = |note: &crate::Finding| note.message.contains("is no Secret or ConfigMap");
    assert!(outcome.notes.iter().any(is_one), "one of two is not taken: {:#?}", outcome.notes);
}

#[test] // proves MANIFEST-20
fn a_copy_that_the_manager_cannot_replace_stays_as_it_is() {
    let read_only = "securityContext: {readOnlyRootFilesystem: true}\n        command:\n        - sh\n        - -c\n        - |\n          #!/usr/bin/env bash\n          set";
    let command = "command:\n        - sh\n        - -c\n        - |\n          #!/usr/bin/env bash\n          set";
    let outcome = done(&edited(&[(command, read_only)]));
    let note = outcome.notes.iter().find(|note| note.message.contains("not watched")).unwrap();
    assert!(note.message.contains("cannot write to that directory"), "{note}");
}

/// `opensearch-plugin install` fails for a plugin that is there, and a start in place is in the same container.
#[test] // proves MANIFEST-21
fn plugins_are_installed_once_in_a_container_and_not_before_each_start() {
    let script = |text: &str| {
        let words = spec(text).1["command"].clone();
        let is_script = words[0] != "/stayput/stayput";
        is_script.then(|| words.as_array().unwrap().last().unwrap().as_str().unwrap().to_owned())
    };
    let text = done(&manifest(CHART)).text;
    let behind = "\n\nexec /stayput/stayput run -- bash opensearch-docker-entrypoint.sh\n";
    assert!(script(&text).unwrap().ends_with(behind), "{text}");
    for last in [
        "          exec ./opensearch-docker-entrypoint.sh opensearch\n",
        "          true && ./opensearch-docker-entrypoint.sh\n          # the end\n",
        "          cd /usr/share/opensearch; ./opensearch-docker-entrypoint.sh\n",
    ] {
        let script = script(&done(&edited(&[(ENTRYPOINT, last)])).text).unwrap();
        assert!(script.contains("exec /stayput/stayput run -- ./opensearch-docker"), "{script}");
        assert!(!script.contains("exec exec"), "{script}");
    }
    for shell in [
        "[bash, -e, -c]",
        "[bash, -o, pipefail, -c]",
        "[bash, -euo, pipefail, -c]",
        "[bash, -c, -e]",
        "[/bin/bash, --noprofile, -lc, --]",
        "[/usr/bin/env, bash, -c]",
        "[/tini, --, bash, -c]",
    ] {
        let text = with_shell(shell);
        let script = script(&done(&text).text).unwrap_or_else(|| panic!("{shell}"));
        assert!(script.ends_with(behind), "{shell}: {script}");
        let warm = Options { warm: true, ..Options::default() };
        let found = inject(&text, &warm).unwrap_err();
        assert!(found.iter().any(|one| one.message.contains("what a shell starts")), "{shell}");
    }
    // The image's entrypoint starts what it is given.
    let arguments =
        with_shell("[bash, -c]").replace("        command: [bash", "        args: [bash");
    assert!(script(&done(&arguments).text).unwrap().ends_with(behind), "{arguments}");
    for repeated in [
        "          \"$OPENSEARCH_HOME/bin/opensearch-plugin\" install -b icu\n",
        "          \"${OPENSEARCH_HOME}\"/bin/opensearch-plugin 'install' icu\n",
        "          ./bin/opensearch-plugin \\\n            install icu\n",
        "          ./bin/opensearch-plugin remove opensearch-knn\n",
        "          echo y | ./bin/opensearch-plugin install icu\n",
        "          echo if it is not there; ./bin/opensearch-plugin install icu\n",
        "          if ! ./bin/opensearch-plugin install icu; then\n            exit 1\n          fi\n",
        "          if true; then true; elif true; then true; fi; ./bin/opensearch-plugin install icu\n",
    ] {
        let script = script(&done(&edited(&[(INSTALL, repeated)])).text);
        assert!(script.unwrap_or_else(|| panic!("{repeated}")).ends_with(behind), "{repeated}");
    }
    for asked in [
        "          ./bin/opensearch-plugin list | grep -q icu || ./bin/opensearch-plugin install -b icu\n",
        "          [ -d plugins/icu ] && ./bin/opensearch-plugin install -b icu\n",
        "          if ! [ -d plugins/icu ]; then\n            ./bin/opensearch-plugin install icu\n          fi\n",
        "          # ./bin/opensearch-plugin install icu\n",
        "          ./bin/opensearch-plugin list | grep -q knn && \"./bin/opensearch-plugin\" remove knn\n",
        "          for one in icu; do [ -d plugins/$one ] && ./bin/opensearch-plugin install $one; done\n",
        "          if [ -d plugins/icu ]; then true; else ./bin/opensearch-plugin install icu; fi\n",
        "          echo \"opensearch-plugin install is not needed\"\n",
    ] {
        assert_eq!(script(&done(&edited(&[(INSTALL, asked)])).text), None, "{asked}");
    }
    for last in [
        "          bash opensearch-docker-entrypoint.sh || exit 1\n",
        "          \"$@\"\n",
        "          A=b ./opensearch-docker-entrypoint.sh\n",
        "          ./start-it\n",
        "          true \\\n            ./opensearch-docker-entrypoint.sh\n",
        "          if true; then ./opensearch-docker-entrypoint.sh; fi\n",
        "          cat <<E > x\n          opensearch\n          E\n          opensearch\n",
    ] {
        let found = inject(&edited(&[(ENTRYPOINT, last)]), &Options::default()).unwrap_err();
        let error = found.iter().find(|one| one.severity == Severity::Error).unwrap();
        assert!(error.message.contains("installs plugins"), "{last}: {error}");
        assert!(error.field.as_deref().unwrap().ends_with(".command"), "{error}");
    }
    // Of what gives a script to a shell in another way it is not known how it can be changed.
    let found = inject(&with_shell("[su, opensearch, -c]"), &Options::default()).unwrap_err();
    assert!(found.iter().any(|one| one.message.contains("installs plugins")), "{found:#?}");
}

/// While a script installs plugins, nobody answers the liveness probe. The kubelet asks it only when the startup
/// probe has succeeded.
#[test] // proves MANIFEST-23
fn behind_a_script_the_manager_has_the_time_that_the_script_takes() {
    let probe = |text: &str| spec(&done(text).text).1["startupProbe"].clone();
    let found = probe(&manifest(CHART));
    assert_eq!(
        found["httpGet"],
        json!({"path": "/livez", "port": "stayput", "scheme": "HTTPS"}),
        "{found}"
    );
    assert_eq!((&found["periodSeconds"], &found["failureThreshold"]), (&json!(10), &json!(30)));
    let own = "        startupProbe: {initialDelaySeconds: 20, periodSeconds: 30, failureThreshold: 40, tcpSocket: {port: 9200}}\n";
    let own = edited(&[("        readinessProbe:\n", &format!("{own}        readinessProbe:\n"))]);
    let found = probe(&own);
    for (field, value) in
        [("initialDelaySeconds", 20), ("periodSeconds", 30), ("failureThreshold", 40)]
    {
        assert_eq!(found[field], value, "the time that it had: {field}");
    }
    assert_eq!(found["httpGet"]["path"], "/livez");
    assert_eq!(found["tcpSocket"], Value::Null);
    let guarded = "          [ -d plugins/icu ] && ./bin/opensearch-plugin install -b icu\n";
    assert_eq!(probe(&own.replace(INSTALL, guarded)), Value::Null, "the manager answers at once");
}

/// A pod is `Guaranteed` only if each of its containers has limits, and a quota asks for them.
#[test] // proves MANIFEST-22
fn the_init_container_has_what_a_copy_needs_of_each_resource_of_the_engine() {
    let both = json!({"cpu": "100m", "memory": "64Mi"});
    let init = |text: &str| named(&spec(text).0["initContainers"], "name", "stayput").clone();
    let found = init(&done(&manifest(CHART)).text);
    assert_eq!(found["resources"], json!({"limits": both, "requests": both}));
    let claims = "resources:\n          claims: [{name: x}]\n          limits:\n            cpu";
    let found =
        init(&done(&edited(&[("resources:\n          limits:\n            cpu", claims)])).text);
    assert_eq!(found["resources"], json!({"limits": both, "requests": both}));
    assert_eq!(init(&done(&manifest("hand-written.yaml")).text)["resources"], Value::Null);
    let cluster = manifest("opensearch-cluster-3.yaml");
    let pool = "      replicas: 3\n      resources: {limits: {memory: 4Gi}}\n";
    let text = done(&cluster.replacen("      replicas: 3\n", pool, 1)).text;
    let cluster = crate::yaml::one(&text).unwrap().value();
    let init = named(&cluster["spec"]["nodePools"][0]["initContainers"], "name", "stayput");
    assert_eq!(init["resources"], json!({"limits": {"memory": "64Mi"}}));
}

#[test]
fn a_test_of_a_chart_is_not_named() {
    let notes = |text: &str| {
        let notes = done(text).notes.into_iter();
        notes.filter(|note| note.object.as_deref() == Some("Pod/search-test")).count()
    };
    assert_eq!(notes(&manifest(CHART)), 0);
    assert_eq!(notes(&edited(&[("\"helm.sh/hook\"", "other")])), 1);
}

#[test]
fn a_manager_in_a_script_is_found_too() {
    let by_hand = "          exec /stayput/stayput run -- ./opensearch-docker-entrypoint.sh\n";
    let found = inject(&edited(&[(ENTRYPOINT, by_hand)]), &Options::default()).unwrap_err();
    assert!(found[0].message.contains("the manager is there already"), "{found:#?}");
}

#[test]
fn a_file_that_stays_mounted_by_sub_path_is_named_with_what_helps() {
    let mounts = "        volumeMounts:\n        - name: config-emptydir";
    let mounted = |path: &str| {
        let path = format!("/usr/share/opensearch/config/{path}");
        let more = format!(
            "        volumeMounts:\n        - {{name: other, mountPath: {path}, subPath: x}}\n        - name: config-emptydir"
        );
        let volume = "      - {name: other, secret: {secretName: s}}\n      - emptyDir: {}";
        let text = edited(&[(mounts, &more), ("      - emptyDir: {}", volume)]);
        let notes = done(&text).notes.into_iter();
        let mut notes = notes.filter(|note| note.message.contains("it stays mounted by subPath"));
        notes.next().unwrap().remedy
    };
    assert!(mounted("x").contains("Move the file"), "{}", mounted("x"));
    // A key of a Secret has no directories.
    let nested = mounted("opensearch-security/x");
    assert!(
        nested.contains("as a whole at /usr/share/opensearch/config/opensearch-security"),
        "{nested}"
    );
}
