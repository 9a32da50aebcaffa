//! The user of the init container.

use serde_json::{Value, json};

use super::manifests::manifest;
use crate::{Options, inject, uninject};

/// The `securityContext` of the first init container of ours.
fn security(text: &str) -> Value {
    let injected = inject(text, &Options::default()).unwrap().text;
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
#[test]
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

#[test]
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
