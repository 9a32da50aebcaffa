//! What would not work in the pod is said before.

use super::manifests::manifest;
use crate::{ConfigSource, Options, Severity, inject, uninject};

const MOUNT: &str =
    "mountPath: /usr/share/opensearch/config/opensearch.yml\n              subPath: opensearch.yml";
const ARGS: &str = "          args: [opensearch]   # as always\n";
const VOLUMES: &str = "      volumes:\n";
const IMAGE: &str = "opensearchproject/opensearch:2.19.3";

fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(manifest("hand-written.yaml"), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

fn with_config(text: &str) -> Options {
    Options {
        config: Some(ConfigSource::parse(text).unwrap()),
        command: vec!["/start".to_owned()],
        ..Options::default()
    }
}

/// What is found; whether it is done is the severity of all.
#[track_caller]
fn said(text: &str, options: &Options, severity: Severity, field: &str, message: &str) {
    let found = match inject(text, options) {
        Ok(outcome) => outcome.notes,
        Err(found) => found,
    };
    let found = found.iter().find(|one| one.message.contains(message));
    let found = found.unwrap_or_else(|| panic!("{message}: {:#?}", inject(text, options)));
    assert_eq!(found.severity, severity, "{found}");
    assert!(found.field.as_deref().unwrap().ends_with(field), "{found}");
}

#[test] // proves MANIFEST-18
fn the_config_goes_to_where_the_image_reads_it() {
    let edits = [(IMAGE, "bitnami/opensearch:2.19.3"), (MOUNT, "mountPath: /x")];
    let text = edited(&edits);
    let injected = inject(&text, &with_config("configmap/mine")).unwrap().text;
    assert!(injected.contains("/stayput-config=/opt/bitnami/opensearch/config\n"), "{injected}");
    let own = edited(&[(IMAGE, "example/search:1"), (MOUNT, "mountPath: /x")]);
    let message = "it is not known where the image example/search:1 reads its config";
    said(&own, &with_config("configmap/mine"), Severity::Error, ".image", message);
    let injected = inject(&own, &with_config("configmap/mine=/etc/search/")).unwrap().text;
    assert!(injected.contains("/stayput-config=/etc/search\n"), "{injected}");
    assert_eq!(uninject(&injected).unwrap().text, own);
    // The mount shows that it is read there.
    let own = edited(&[(IMAGE, "example/search:1")]);
    let injected = inject(&own, &with_config("configmap/mine")).unwrap().text;
    assert!(injected.contains("/stayput-config=/usr/share/opensearch/config\n"), "{injected}");
}

#[test] // proves MANIFEST-18
fn a_path_may_be_written_in_other_ways() {
    let none = Options::default();
    let text = edited(&[(MOUNT, "mountPath: /usr/share/opensearch/config/")]);
    said(&text, &none, Severity::Error, ".volumeMounts", "is a mount of the Secret logs-config");
    let text = edited(&[(
        MOUNT,
        "mountPath: /usr/share/opensearch//config/opensearch.yml/\n              subPath: opensearch.yml",
    )]);
    let injected = inject(&text, &none).unwrap().text;
    assert!(!injected.contains("            - name: config\n"), "{injected}");
    assert_eq!(uninject(&injected).unwrap().text, text);
    let data = "mountPath: /usr/share/opensearch/data";
    let taken = |path: &str| edited(&[(data, &format!("mountPath: {path}"))]);
    let warm = Options { warm: true, ..Options::default() };
    for path in [
        "/usr/share/opensearch/config/jvm.options.d/",
        "/usr/share/opensearch//config/./jvm.options.d",
    ] {
        let message = "the volume of the archive is to be mounted there";
        said(&taken(path), &warm, Severity::Error, "/config/jvm.options.d]", message);
    }
    let place = "volumeMounts[mountPath=/stayput]";
    said(&taken("/stayput/"), &none, Severity::Error, place, "it is there already");
    // The manager's own volume at the same place is what it needs.
    let mount = "            - {name: stayput, mountPath: //stayput/, readOnly: true}\n";
    let text = edited(&[("            # data\n", &format!("{mount}            # data\n"))]);
    let injected = inject(&text, &none).unwrap().text;
    assert!(!injected.contains("mountPath: /stayput\n"), "{injected}");
    assert_eq!(uninject(&injected).unwrap().text, text);
    let config = with_config("configmap/mine=/usr//share/opensearch/config/");
    let injected = inject(&edited(&[(IMAGE, "example/search:1")]), &config).unwrap().text;
    assert!(injected.contains("/stayput-config=/usr/share/opensearch/config\n"), "{injected}");
    assert!(
        !injected.contains("            - name: config\n"),
        "it stands for the mount: {injected}"
    );
}

#[test] // proves MANIFEST-18
fn a_projected_volume_is_known() {
    let none = Options::default();
    let with = |sources: &str| {
        edited(&[(
            "secret: {secretName: logs-config}",
            &format!("projected: {{sources: [{sources}]}}"),
        )])
    };
    let text = with("{secret: {name: a}}, {configMap: {name: b}}");
    let outcome = inject(&text, &none).unwrap();
    assert_eq!(outcome.notes, []);
    assert!(
        outcome.text.contains("name: stayput-config\n          projected:"),
        "{}",
        outcome.text
    );
    let text = with("{secret: {name: a}}, {serviceAccountToken: {path: t}}");
    let message = "opensearch.yml is no Secret or ConfigMap, so";
    said(&text, &none, Severity::Note, ".volumeMounts", message);
    let whole =
        with("{secret: {name: a}}").replace(MOUNT, "mountPath: /usr/share/opensearch/config");
    said(&whole, &none, Severity::Error, ".volumeMounts", "a mount of the projected volume config");
}

#[test] // proves MANIFEST-18
fn a_root_file_system_that_cannot_be_written_to_needs_volumes() {
    const READ_ONLY: &str = "          securityContext: {readOnlyRootFilesystem: true}\n";
    const FIELD: &str = "securityContext.readOnlyRootFilesystem";
    let none = Options::default();
    let text = edited(&[(ARGS, READ_ONLY)]);
    let message = "copied to /usr/share/opensearch/config, which cannot be written to";
    said(&text, &none, Severity::Error, FIELD, message);
    let mounts = "            - {name: own, mountPath: /usr/share/opensearch/config}\n";
    let text = text.replace("            # data\n", &format!("{mounts}            # data\n"));
    let text =
        text.replace(VOLUMES, &format!("{VOLUMES}        - {{name: own, emptyDir: {{}}}}\n"));
    assert_eq!(inject(&text, &none).unwrap().notes, []);
}

/// Kubernetes puts a claim in the place of the volume with its name.
#[test] // proves MANIFEST-18
fn a_claim_with_the_name_of_a_volume_of_the_manager_is_refused() {
    let none = Options::default();
    let claims = |name: &str| {
        let claims = format!("  volumeClaimTemplates: [{{metadata: {{name: {name}}}}}]\n");
        edited(&[("  volumeClaimTemplates: []\n", &claims)])
    };
    for name in ["stayput", "stayput-state", "stayput-tls", "stayput-jwks", "stayput-config"] {
        let place = format!("volumeClaimTemplates[name={name}]");
        said(&claims(name), &none, Severity::Error, &place, "would take the place of a volume");
    }
    assert!(inject(&claims("stayput-warm"), &none).is_ok());
    let warm = Options { warm: true, ..Options::default() };
    let place = "volumeClaimTemplates[name=stayput-warm]";
    said(
        &claims("stayput-warm"),
        &warm,
        Severity::Error,
        place,
        "would take the place of a volume",
    );
    assert!(inject(&claims("data"), &none).is_ok());
    let set = "    volumeClaimTemplates: [{metadata: {name: stayput-state}}]\n";
    let eck = manifest("eck.yaml").replacen("    count:", &format!("{set}    count:"), 1);
    let place = "volumeClaimTemplates[name=stayput-state]";
    said(&eck, &none, Severity::Error, place, "would take the place of a volume");
}

#[test] // proves MANIFEST-18
fn the_config_is_not_copied_to_where_the_data_is() {
    let text = edited(&[(IMAGE, "docker.elastic.co/elasticsearch/elasticsearch:8.19.0")]);
    for directory in ["/usr/share/elasticsearch/data", "/usr/share/elasticsearch/data/x/"] {
        let options = with_config(&format!("secret/x={directory}"));
        said(&text, &options, Severity::Error, ".volumeMounts", "is for the engine's data");
    }
    let claims = "  volumeClaimTemplates: [{metadata: {name: data}}]\n";
    let own = edited(&[
        (IMAGE, "example/search:1"),
        ("  volumeClaimTemplates: []\n", claims),
        ("mountPath: /usr/share/opensearch/data", "mountPath: /mine"),
    ]);
    let message = "/mine is for the engine's data (the claim data)";
    said(&own, &with_config("secret/x=/mine"), Severity::Error, ".volumeMounts", message);
    assert!(inject(&own, &with_config("secret/x=/etc/search")).is_ok());
}

#[test] // proves MANIFEST-18
fn names_that_are_taken_are_refused() {
    let none = Options::default();
    let volume = |volume: &str| edited(&[(VOLUMES, &format!("{VOLUMES}        - {volume}\n"))]);
    let field = |field: &str| edited(&[(ARGS, &format!("          {field}\n"))]);
    let init = "      initContainers: [{name: stayput, image: x}]\n";
    for (text, place) in [
        (volume("{name: stayput-config, emptyDir: {}}"), "volumes[name=stayput-config]"),
        (volume("{name: stayput, configMap: {name: x}}"), "volumes[name=stayput]"),
        (field("ports: [{name: stayput, containerPort: 9201}]"), "ports[name=stayput]"),
        (edited(&[(VOLUMES, &format!("{init}{VOLUMES}"))]), "initContainers[name=stayput]"),
        (
            edited(&[("mountPath: /usr/share/opensearch/data", "mountPath: /stayput")]),
            "volumeMounts[mountPath=/stayput]",
        ),
    ] {
        said(&text, &none, Severity::Error, place, "it is there already");
    }
    let text = field("ports: [{name: http, containerPort: 9199}]");
    said(&text, &none, Severity::Error, ".ports", "the manager listens on port 9199");
    for text in [
        field("ports: [{name: stayput, containerPort: 9199, protocol: TCP}]"),
        volume("{name: stayput, emptyDir: {medium: Memory}}"),
    ] {
        let injected = inject(&text, &none).unwrap().text;
        assert_eq!(uninject(&injected).unwrap().text, text);
    }
}
