//! The user of the init container.

use serde_json::{Value, json};

use super::manifests::manifest;
use crate::{Options, inject, uninject};

/// The `securityContext` of the first init container of ours.
fn security(text: &str) -> Value {
    security_with(text, &Options::default())
}

fn security_with(text: &str, options: &Options) -> Value {
    let injected = inject(text, options).unwrap().text;
    assert_eq!(uninject(&injected).unwrap().text, text);
    let object = crate::yaml::documents(&injected).unwrap().pop().unwrap().root.unwrap().value();
    let spec = &object["spec"];
    let inits = [
        &spec["template"]["spec"],
        &spec["nodeSets"][0]["podTemplate"]["spec"],
        &spec["nodePools"][0],
    ];
    let mut inits = inits.into_iter().filter_map(|pod| pod["initContainers"].as_array()).flatten();
    inits.find(|one| one["name"] == "stayput").unwrap()["securityContext"].clone()
}

/// The manager's image has no user, so it would be root.
#[test] // proves MANIFEST-15
fn a_pod_that_may_not_run_as_root_starts() {
    const POD: &str = "      # the engine\n";
    const CONTAINER: &str = "          args: [opensearch]   # as always\n";
    let own = manifest("hand-written.yaml");
    let with = |pod: &str, container: &str| {
        let field = |indent: &str, fields: &str| format!("{indent}securityContext: {{{fields}}}\n");
        let text = own.replace(POD, &field("      ", pod));
        security(&text.replace(CONTAINER, &field("          ", container)))
    };
    let non_root = "runAsNonRoot: true";
    for (pod, container, user, is_said) in [
        (non_root, "", json!(1000), false),
        ("", non_root, json!(1000), true),
        ("runAsUser: 1001", non_root, Value::Null, true),
        ("runAsNonRoot: true, runAsUser: 1001", "", Value::Null, false),
        ("", "runAsNonRoot: true, runAsUser: 1001", json!(1001), true),
        (non_root, "runAsNonRoot: false", Value::Null, true),
        ("", "", Value::Null, false),
    ] {
        let found = with(pod, container);
        assert_eq!(found["runAsUser"], user, "{pod}; {container}");
        assert_eq!(!found["runAsNonRoot"].is_null(), is_said, "{pod}; {container}");
    }
}

#[test] // proves MANIFEST-15
fn so_do_those_of_operators() {
    let eck = manifest("eck-7.yaml");
    let template = "    podTemplate: {spec: {securityContext: {runAsNonRoot: true}}}\n";
    let eck = eck.replacen("    count:", &format!("{template}    count:"), 1);
    assert_eq!(security(&eck)["runAsUser"], 1000, "{eck}");
    let cluster = manifest("opensearch-cluster-3.yaml");
    for field in ["podSecurityContext", "securityContext"] {
        let general = format!("  general:\n    {field}: {{runAsNonRoot: true}}\n");
        let text = cluster.replacen("  general:\n", &general, 1);
        assert_ne!(text, cluster);
        assert_eq!(security(&text)["runAsUser"], 1000, "{field}");
    }
}

/// OpenShift's `restricted-v2` refuses a user that it has not given itself.
#[test] // proves MANIFEST-28
fn where_the_cluster_gives_users_none_is_written() {
    let assigned = Options { assigned_user: true, ..Options::default() };
    let own = manifest("hand-written.yaml");
    let args = "          args: [opensearch]   # as always\n";
    let text = own.replace(args, "          securityContext: {runAsNonRoot: true}\n");
    assert_ne!(text, own);
    assert_eq!(security_with(&text, &assigned)["runAsUser"], Value::Null);
    assert_eq!(security_with(&text, &assigned)["runAsNonRoot"], true);
    let eck = manifest("eck-7.yaml");
    let template = "    podTemplate: {spec: {securityContext: {runAsNonRoot: true}}}\n";
    let eck = eck.replacen("    count:", &format!("{template}    count:"), 1);
    let cluster = manifest("opensearch-cluster-3.yaml");
    let general = "  general:\n    securityContext: {runAsNonRoot: true}\n";
    let cluster = cluster.replacen("  general:\n", general, 1);
    for text in [text, eck, cluster] {
        assert_eq!(security_with(&text, &assigned)["runAsUser"], Value::Null, "{text}");
        let notes = inject(&text, &Options::default()).unwrap().notes;
        let note = notes.iter().find(|note| note.message.contains("OpenShift")).unwrap();
        assert!(note.remedy.contains("--assigned-user"), "{note}");
        let notes = inject(&text, &assigned).unwrap().notes;
        assert!(!notes.iter().any(|note| note.message.contains("OpenShift")), "{notes:#?}");
    }
    // A user that somebody has chosen stays.
    let chosen =
        own.replace(args, "          securityContext: {runAsNonRoot: true, runAsUser: 1001}\n");
    assert_eq!(security_with(&chosen, &assigned)["runAsUser"], 1001);
}

/// The fields that PodSecurity `restricted` asks of each container, from the container or from its pod.
#[test] // proves MANIFEST-28
fn a_restricted_pod_stays_one() {
    let own = manifest("hand-written.yaml");
    let locked = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}";
    let profile = "seccompProfile: {type: RuntimeDefault}";
    let non_root = "runAsNonRoot: true, runAsUser: 1000";
    for (pod, container) in [
        (format!("{non_root}, {profile}"), locked.to_owned()),
        (non_root.to_owned(), format!("{locked}, {profile}")),
        (profile.to_owned(), format!("{locked}, {non_root}")),
        ("fsGroup: 1000".to_owned(), format!("{locked}, {non_root}, {profile}")),
    ] {
        let text =
            own.replace("      # the engine\n", &format!("      securityContext: {{{pod}}}\n"));
        let text = text.replace(
            "          args: [opensearch]   # as always\n",
            &format!("          securityContext: {{{container}}}\n"),
        );
        let init = security(&text);
        let pod = crate::yaml::one(&format!("{{{pod}}}")).unwrap().value();
        let field =
            |name: &str| if init[name].is_null() { pod[name].clone() } else { init[name].clone() };
        assert_eq!(init["allowPrivilegeEscalation"], false, "{text}");
        assert_eq!(init["capabilities"], json!({"drop": ["ALL"]}), "{text}");
        assert_eq!(field("seccompProfile")["type"], "RuntimeDefault", "{text}");
        assert_eq!(
            (field("runAsNonRoot"), field("runAsUser")),
            (json!(true), json!(1000)),
            "{text}"
        );
    }
}
