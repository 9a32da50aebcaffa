//! What cannot be done, or should be known: each with document, object, field and remedy.

use super::manifests::manifest;
use crate::{Finding, Options, Severity, inject, uninject};

/// The findings of the hand-written manifests with a change.
fn found(from: &str, to: &str) -> (bool, Vec<Finding>) {
    let text = manifest("hand-written.yaml");
    let changed = text.replace(from, to);
    assert_ne!(changed, text, "{from}");
    match inject(&changed, &Options::default()) {
        Ok(outcome) => (true, outcome.notes),
        Err(found) => (false, found),
    }
}

#[test] // proves MANIFEST-30
fn a_finding_names_the_place_and_the_remedy() {
    const CONFIG: &str = "mountPath: /usr/share/opensearch/config/opensearch.yml\n              subPath: opensearch.yml";
    for (from, to, is_done, field, message, remedy) in [
        (
            "opensearchproject/opensearch:2.19.3",
            "example/search:1",
            false,
            "containers[name=opensearch].image",
            "the entrypoint of the image example/search:1 is not known",
            "--command WORD",
        ),
        (
            "args: [opensearch]   # as always",
            "command: [/stayput/stayput, run, --, x]",
            false,
            "spec.template.spec.containers",
            "the manager is there already",
            "by hand",
        ),
        (
            "args: [opensearch]   # as always",
            "command: [bash, -c, ./start]",
            true,
            "containers[name=opensearch].command",
            "the shell stays",
            "`exec`",
        ),
        (
            CONFIG,
            "mountPath: /usr/share/opensearch/config",
            false,
            "containers[name=opensearch].volumeMounts",
            "is a mount of the Secret logs-config",
            "subPath",
        ),
        (
            "subPath: opensearch.yml",
            "subPath: other.yml",
            false,
            "volumeMounts[mountPath=/usr/share/opensearch/config/opensearch.yml].subPath",
            "the file has another name",
            "Rename it",
        ),
        (
            CONFIG,
            "mountPath: /elsewhere",
            true,
            "containers[name=opensearch].volumeMounts",
            "no Secret or ConfigMap is mounted at /usr/share/opensearch/config/opensearch.yml",
            "--config secret/NAME",
        ),
        (
            "httpGet: {path: /_cluster/health, port: http}",
            "tcpSocket: {port: 9200}",
            true,
            "containers[name=opensearch].readinessProbe",
            "it is unknown whether the engine has TLS",
            "--ready",
        ),
        (
            "            # data\n",
            "            - {name: config, mountPath: /usr/share/opensearch/config/a/b, subPath: b}\n",
            true,
            "volumeMounts[mountPath=/usr/share/opensearch/config/a/b]",
            "it stays mounted by subPath",
            "Mount what has b as a whole at /usr/share/opensearch/config/a, without subPath",
        ),
        (
            "          args: [opensearch]",
            "          <<: {args: [opensearch]}",
            false,
            "<<",
            "it has merge keys",
            "Write their content out",
        ),
    ] {
        let (done, found) = found(from, to);
        assert_eq!(done, is_done, "{to}: {found:#?}");
        let [finding] = &found[..] else { panic!("{to}: {found:#?}") };
        assert_eq!((finding.document, finding.object.as_deref()), (2, Some("StatefulSet/logs")));
        assert!(finding.field.as_deref().unwrap().ends_with(field), "{finding}");
        assert!(finding.message.contains(message), "{finding}");
        assert!(finding.remedy.contains(remedy), "{finding}");
        assert_eq!(finding.severity == Severity::Note, is_done);
    }
}

/// The kubelet shows a new container as started only when its hook has ended, and until then the reconciler does
/// not start the engine.
#[test] // proves MANIFEST-24
fn a_hook_that_may_wait_for_the_engine_is_named() {
    const ARGS: &str = "          args: [opensearch]   # as always\n";
    let hook = |command: &str| {
        let line =
            format!("          lifecycle: {{postStart: {{exec: {{command: {command}}}}}}}\n");
        found(ARGS, &line)
    };
    let waits = "until curl -f localhost:9200; do sleep 1; done";
    // What runs in the background with the hook's own output keeps it from ending, too.
    for script in [waits.to_owned(), format!("({waits}) &"), format!("({waits}) >/x && true")] {
        let (done, found) = hook(&format!("[sh, -c, '{script}']"));
        let [note] = &found[..] else { panic!("{found:#?}") };
        assert!(done && note.severity == Severity::Note, "{note}");
        let field = note.field.as_deref().unwrap();
        assert!(field.ends_with("containers[name=opensearch].lifecycle.postStart"), "{note}");
        assert!(note.message.contains("until the hook has ended"), "{note}");
        assert!(note.remedy.contains(">/dev/null 2>&1 &"), "{note}");
    }
    assert_eq!(hook(&format!("[sh, -c, '({waits}) >/dev/null 2>&1 &']")).1, []);
    let text = manifest("eck.yaml");
    let container = "- name: elasticsearch\n";
    assert!(text.contains(container), "{text}");
    let own =
        format!("{container}          lifecycle: {{postStart: {{exec: {{command: [/wait]}}}}}}\n");
    let notes = inject(&text.replacen(container, &own, 1), &Options::default()).unwrap().notes;
    assert!(
        notes.iter().any(|note| note.message.contains("until the hook has ended")),
        "{notes:#?}"
    );
}

#[test] // proves MANIFEST-2
fn a_place_that_is_used_elsewhere_too_is_not_edited() {
    let text = manifest("hand-written.yaml");
    let text = text.replace("volumeMounts:", "volumeMounts: &mounts");
    let text = text.replace("volumeClaimTemplates: []", "x: *mounts");
    let found = inject(&text, &Options::default()).unwrap_err();
    assert!(found[0].message.contains("cannot be edited"), "{found:#?}");
    assert!(found[0].remedy.contains("without anchors"), "{found:#?}");
    let field = found[0].field.as_deref().unwrap();
    assert!(field.contains("containers[name=opensearch].volumeMounts["), "{field}");
}

#[test] // proves MANIFEST-30
fn a_key_that_is_there_twice_is_named() {
    let text = manifest("hand-written.yaml");
    let twice = text.replace("          args:", "          env: []\n          args:");
    let found = inject(&twice, &Options::default()).unwrap_err();
    let field = found[0].field.as_deref();
    assert_eq!(field, Some("spec.template.spec.containers[0].env"), "{found:#?}");
    assert_eq!(found[0].message, "the key is there twice");
    let other = text.replace("kind: Service", "kind: Service\nkind: Service");
    assert!(inject(&other, &Options::default()).is_ok());
}

#[test]
fn what_is_no_yaml_is_said_once() {
    for text in ["a: [", "a: b: c", "\"", "- a\nb: c", "kind: \t{"] {
        for found in [inject(text, &Options::default()), uninject(text)] {
            let found = found.unwrap_err();
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].message.contains("not YAML"), "{text}: {found:?}");
        }
    }
    let deep = "[".repeat(100_000);
    assert!(inject(&deep, &Options::default()).is_err());
}

#[test]
fn a_record_that_was_damaged_is_an_error() {
    let text = inject(&manifest("hand-written.yaml"), &Options::default()).unwrap().text;
    let text = text.replace("injected: '[{", "injected: '[");
    for found in [inject(&text, &Options::default()), uninject(&text)] {
        let found = found.unwrap_err();
        assert!(found[0].field.as_deref().unwrap().contains("stayput.dev/injected"), "{found:?}");
    }
}

#[test]
fn options_go_before_what_is_found() {
    let text = manifest("hand-written.yaml");
    let options = Options {
        command: vec!["/start".to_owned(), "a b".to_owned()],
        cluster: Some("other".to_owned()),
        ready: Some("tcp://127.0.0.1:1".to_owned()),
        config: Some(crate::ConfigSource::parse("configmap/mine").unwrap()),
        ..Options::default()
    };
    let outcome = inject(&text, &options).unwrap();
    assert_eq!(outcome.notes, []);
    for part in
        ["- /start\n            - a b\n", "other-manager-tls", "tcp://127.0.0.1:1", "name: mine"]
    {
        assert!(outcome.text.contains(part), "{part}");
    }
    let elsewhere = Options { container: Some("none".to_owned()), ..Options::default() };
    assert_eq!(inject(&text, &elsewhere).unwrap().text, text);
    for text in ["mine", "configmap/mine=", "configmap/mine=config", "configmap/mine=/"] {
        assert!(crate::ConfigSource::parse(text).is_err(), "{text}");
    }
}

#[test] // proves MANIFEST-30
fn an_engine_that_is_not_changed_is_named() {
    let text = manifest("hand-written.yaml");
    let deployment = text.replace("kind: StatefulSet", "kind: Deployment");
    let outcome = inject(&deployment, &Options::default()).unwrap();
    assert_eq!((outcome.text, outcome.changed), (deployment, vec![]));
    let [note] = &outcome.notes[..] else { panic!("{:#?}", outcome.notes) };
    assert!(note.message.contains("a Deployment is not changed"), "{note}");
    let own = text.replace("opensearchproject/opensearch", "example/search");
    let own = own.replace("- name: opensearch\n", "- name: search\n");
    let foo = Options { container: Some("foo".to_owned()), ..Options::default() };
    for (text, options, message) in [
        (&own, &Options::default(), "no container has an image that is known"),
        (&text, &foo, "it has no container foo"),
    ] {
        let outcome = inject(text, options).unwrap();
        let [finding] = &outcome.without_engine[..] else { panic!("{outcome:#?}") };
        assert_eq!(finding.object.as_deref(), Some("StatefulSet/logs"));
        assert!(finding.message.contains(message), "{finding}");
        assert!(finding.remedy.contains("--container NAME"), "{finding}");
    }
}

#[test] // proves MANIFEST-30
fn an_object_without_a_name_needs_that_of_its_cluster() {
    let text = manifest("hand-written.yaml").replace("  name: logs\n", "  generateName: logs-\n");
    let found = inject(&text, &Options::default()).unwrap_err();
    assert_eq!(found[0].field.as_deref(), Some("metadata.name"), "{found:#?}");
    let options = Options { cluster: Some("logs".to_owned()), ..Options::default() };
    assert!(inject(&text, &options).unwrap().text.contains("logs-manager-tls"));
}

#[test] // proves MANIFEST-30
fn names_of_secrets_are_names() {
    for text in ["secret/A_B", "secret/", "configmap/a b", "secret/a_b=/etc/x"] {
        assert!(crate::ConfigSource::parse(text).is_err(), "{text}");
    }
    for text in ["secret/A_B", "secret/a_b/key"] {
        assert!(crate::Login::parse(text).is_err(), "{text}");
        assert!(crate::Authority::parse(text).is_err(), "{text}");
    }
    assert!(crate::ConfigSource::parse("secret/a.b-1=/etc/x").is_ok());
}

#[test] // proves MANIFEST-4
fn a_rollout_without_the_rules_is_named_where_something_changes() {
    const ON_DELETE: &str = "  updateStrategy: {type: OnDelete}\n";
    for strategy in ["", "  updateStrategy: {type: RollingUpdate}\n"] {
        let (done, found) = found(ON_DELETE, strategy);
        let [note] = &found[..] else { panic!("{found:#?}") };
        assert!(done && note.field.as_deref() == Some("spec.updateStrategy.type"), "{note}");
        assert!(note.message.contains("not when the cluster is green"), "{note}");
        let command = "`kubectl --namespace search patch statefulset logs --patch '{\"spec\"";
        assert!(note.remedy.contains(command), "{note}");
    }
    let text = manifest("hand-written.yaml").replace(ON_DELETE, "");
    let once = inject(&text, &Options::default()).unwrap().text;
    assert_eq!(inject(&once, &Options::default()).unwrap().notes, [], "nothing is replaced");
}

#[test] // proves MANIFEST-26
fn a_second_engine_in_a_pod_is_named() {
    let other =
        "        - {name: other, image: 'opensearchproject/opensearch:2.19.3'}\n      volumes:\n";
    let (done, found) = found("      volumes:\n", other);
    let [note] = &found[..] else { panic!("{found:#?}") };
    assert!(done && note.field.as_deref().unwrap().ends_with("containers[name=other]"), "{note}");
    assert!(note.message.contains("only opensearch is restarted"), "{note}");
    assert!(note.remedy.contains("--container other"), "{note}");
}

#[test] // proves MANIFEST-30
fn options_are_checked() {
    use crate::check::{cluster, image, ready};
    for text in ["logs", "a-1.b"] {
        assert!(cluster(text).is_ok(), "{text}");
    }
    for text in ["", "Foo_Bar", "-a", "a.", "a b"] {
        assert!(cluster(text).is_err(), "{text}");
    }
    for text in ["a", "r.example:5000/a/b:1", "a@sha256:00", "[::1]:5000/a"] {
        assert!(image(text).is_ok(), "{text}");
    }
    for text in ["", "a b", "a:", "/a", "-a", "a\n"] {
        assert!(image(text).is_err(), "{text}");
    }
    for text in ["tcp://127.0.0.1:1", "http://[::1]:9200/x?y", "https://logs", "http://[::1]/"] {
        assert!(ready(text).is_ok(), "{text}");
    }
    for text in [
        "foo",
        "",
        "tcp://a",
        "tcp://a:1/x",
        "http://",
        "ftp://a:1",
        "http://a:0",
        "http://u:p@a",
        "http://a b",
    ] {
        assert!(ready(text).is_err(), "{text}");
    }
}
