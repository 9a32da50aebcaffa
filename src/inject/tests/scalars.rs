//! Numbers and truth values are read as kubectl reads them: what is copied has to mean the same.

use serde_json::{Value, json};

use super::manifests::manifest;
use crate::yaml::{documents, one};
use crate::{Options, inject, uninject};

#[test] // proves MANIFEST-14
fn scalars_are_read_as_kubectl_reads_them() {
    for (text, value) in [
        ("0644", json!(420)),
        ("0o644", json!(420)),
        ("0O644", json!(420)),
        ("-0644", json!(-420)),
        ("0", json!(0)),
        ("00", json!(0)),
        ("+5", json!(5)),
        ("0x1A4", json!(420)),
        ("0b11", json!(3)),
        ("1_000", json!(1000)),
        ("0_644", json!(420)),
        // No octal number: Go takes it for one with a fraction.
        ("0899", json!(899)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(u64::MAX)),
        ("0.5", json!(0.5)),
        (".5", json!(0.5)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("yes", json!(true)),
        ("On", json!(true)),
        ("y", json!(true)),
        ("NO", json!(false)),
        ("off", json!(false)),
        ("n", json!(false)),
        ("~", Value::Null),
        ("!!int '0644'", json!(420)),
        ("!!bool yes", json!(true)),
        ("!!str 0644", json!("0644")),
        ("'0644'", json!("0644")),
        ("yEs", json!("yEs")),
        ("0o8", json!("0o8")),
        ("1.2.3", json!("1.2.3")),
        ("0x", json!("0x")),
        ("+-5", json!("+-5")),
        (".inf", json!(".inf")),
        ("2001-12-14", json!("2001-12-14")),
        ("1Gi", json!("1Gi")),
        ("_1", json!("_1")),
    ] {
        let text = format!("a: {text}\n");
        assert_eq!(one(&text).unwrap().value()["a"], value, "{text}");
    }
}

#[test] // proves MANIFEST-14
fn what_is_copied_means_the_same() {
    let text = manifest("hand-written.yaml");
    let text = text.replace(
        "secret: {secretName: logs-config}",
        "secret: {secretName: logs-config, defaultMode: 0400, optional: yes, items: [{key: a, path: a, mode: 0o755}]}",
    );
    let text = text.replace(
        "args: [opensearch]   # as always",
        "securityContext: {runAsUser: 01750, runAsNonRoot: yes}",
    );
    let injected = inject(&text, &Options::default()).unwrap().text;
    let set = documents(&injected).unwrap().pop().unwrap().root.unwrap().value();
    let spec = &set["spec"]["template"]["spec"];
    let volumes = spec["volumes"].as_array().unwrap();
    let secret = &volumes.iter().find(|one| one["name"] == "stayput-config").unwrap()["secret"];
    assert_eq!(secret["defaultMode"], 0o400);
    assert_eq!(secret["optional"], true);
    assert_eq!(secret["items"][0]["mode"], 0o755);
    let security = &spec["initContainers"][0]["securityContext"];
    assert_eq!((&security["runAsUser"], &security["runAsNonRoot"]), (&json!(1000), &json!(true)));
    for written in ["defaultMode: 256", "mode: 493", "runAsUser: 1000", "runAsNonRoot: true"] {
        assert!(injected.contains(written), "{written}: {injected}");
    }
    assert_eq!(uninject(&injected).unwrap().text, text);
    assert_eq!(inject(&injected, &Options::default()).unwrap().text, injected);
}
