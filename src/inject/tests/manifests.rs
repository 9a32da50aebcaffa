//! Manifests as people and charts write them, and what comes out, in full: `manifests/NAME` and
//! `manifests/NAME.injected`.

use std::fs;
use std::path::PathBuf;

use crate::{Authority, Login, Options, inject, uninject};

/// The facts are those of the charts of Elastic and of the OpenSearch project, of ECK and of the
/// OpenSearch operator; the texts are ours.
const MANIFESTS: [&str; 9] = [
    "hand-written.yaml",
    "opensearch-chart.yaml",
    "opensearch-chart-3.yaml",
    "elasticsearch-chart.yaml",
    "list.json",
    "eck.yaml",
    "eck-7.yaml",
    "opensearch-cluster.yaml",
    "opensearch-cluster-3.yaml",
];

/// The OpenSearch operator gives its engines certificates.
const TLS_OF_OPERATOR: &str = "spec:\n  security: {tls: {http: {generate: true}}}\n";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/manifests").join(name)
}

pub(super) fn manifest(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// What comes out: the notes as comments, then the manifests.
fn page(text: &str) -> (String, String) {
    page_with(text, &Options::default())
}

fn page_with(text: &str, options: &Options) -> (String, String) {
    let outcome = inject(text, options).unwrap_or_else(|found| panic!("{found:#?}"));
    let notes: Vec<String> = outcome.notes.iter().map(|note| format!("# {note}\n")).collect();
    (notes.concat() + &outcome.text, outcome.text)
}

#[test] // proves MANIFEST-11
fn manifests_come_out_as_written_down() {
    for name in MANIFESTS {
        assert_written(&page(&manifest(name)).0, &format!("{name}.injected"));
    }
}

/// With the Secrets of the chart and of the operator, as `--ready-auth` and `--ready-ca` name them.
#[test] // proves MANIFEST-9
fn secured_engines_come_out_as_written_down() {
    for (name, login, authority) in [
        (
            "elasticsearch-chart.yaml",
            "secret/elasticsearch-master-credentials",
            "secret/elasticsearch-master-certs",
        ),
        ("opensearch-cluster-3.yaml", "secret/logs-admin-password", "secret/logs-ca"),
    ] {
        let options = Options {
            ready_auth: Some(Login::parse(login).unwrap()),
            ready_ca: Some(Authority::parse(authority).unwrap()),
            ..Options::default()
        };
        let mut text = manifest(name);
        if name.starts_with("opensearch-cluster") {
            text = text.replacen("spec:\n", TLS_OF_OPERATOR, 1);
        }
        let (page, injected) = page_with(&text, &options);
        assert_written(&page, &format!("{name}.secured"));
        assert_eq!(uninject(&injected).unwrap().text, text, "{name}");
        assert_eq!(page_with(&injected, &options).1, injected, "{name}");
        let [again, first] =
            [&injected, &text].map(|text| inject(text, &Options::default()).unwrap());
        assert_eq!((again.text, again.notes), (first.text, first.notes));
    }
}

fn assert_written(page: &str, name: &str) {
    let expected = path(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&expected, page).unwrap();
    }
    let expected = fs::read_to_string(expected).unwrap_or_default();
    assert_eq!(page, expected, "{name}: UPDATE_DOCS=1 writes it anew");
}

#[test] // proves MANIFEST-2
fn uninject_gives_back_every_byte() {
    for name in MANIFESTS {
        let text = manifest(name);
        let (_, injected) = page(&text);
        assert_ne!(injected, text, "{name}");
        assert_eq!(uninject(&injected).unwrap().text, text, "{name}");
    }
}

#[test] // proves MANIFEST-2
fn twice_is_once_and_other_options_replace_the_first() {
    for name in MANIFESTS {
        let text = manifest(name);
        let (_, once) = page(&text);
        assert_eq!(page(&once).1, once, "{name}");
        let other = Options { image: Some("mirror/manager:1".to_owned()), ..Options::default() };
        let updated = inject(&once, &other).unwrap().text;
        assert_eq!(updated, inject(&text, &other).unwrap().text, "{name}");
        assert!(updated.contains("mirror/manager:1"), "{name}");
    }
}

/// A check compares with what was given, not with what was there before the first inject.
#[test] // proves MANIFEST-29
fn only_what_differs_from_the_input_counts_as_changed() {
    for name in MANIFESTS {
        let text = manifest(name);
        let first = inject(&text, &Options::default()).unwrap();
        assert_eq!(first.changed.len(), 1, "{name}");
        let again = inject(&first.text, &Options::default()).unwrap();
        assert_eq!(again.changed, [], "{name}");
    }
    let text = manifest("hand-written.yaml");
    let image = Options { image: Some("mirror/manager:1".to_owned()), ..Options::default() };
    let warm = Options { warm: true, ..Options::default() };
    let container = "spec.template.spec.containers[name=opensearch]";
    let init = "spec.template.spec.initContainers";
    for (first, then, expected) in [
        (Options::default(), &image, vec![format!("replaces {init}[name=stayput]")]),
        (
            warm,
            &Options::default(),
            vec![
                format!(
                    "removes {container}.volumeMounts[mountPath=/usr/share/opensearch/config/jvm.options.d]"
                ),
                format!("removes {init}[name=stayput-warm]"),
                "removes spec.template.spec.volumes[name=stayput-warm]".to_owned(),
                "replaces metadata.annotations.stayput.dev/injected".to_owned(),
            ],
        ),
    ] {
        let injected = inject(&text, &first).unwrap().text;
        let [changed] = &inject(&injected, then).unwrap().changed[..] else { panic!("one") };
        let mut edits = changed.edits.clone();
        edits.sort();
        assert_eq!(edits, expected);
    }
}

#[test] // proves MANIFEST-12
fn what_has_no_engine_keeps_every_byte() {
    let other = "# a\n\n---\nkind:   List\nitems: [ ]\n---\n---\napiVersion: apps/v1\nkind: StatefulSet\n\
                 metadata: {name: db}\nspec:\n  template:\n    spec:\n      containers: [{name: db, image: postgres}]\n...\n";
    for text in ["", "\n", "# only this", other, "{\"kind\": \"Pod\"}\r\n"] {
        let outcome = inject(text, &Options::default()).unwrap();
        assert_eq!(outcome.text, text);
        assert!(outcome.changed.is_empty());
        assert_eq!(uninject(text).unwrap().text, text);
    }
}

#[test] // proves MANIFEST-2
fn other_changes_stay_when_the_manager_is_taken_out() {
    let text = manifest("hand-written.yaml");
    let (_, injected) = page(&text);
    let edit = |text: &str| {
        let text = text.replace("replicas: 3 # three", "replicas: 5 # five");
        text.replace("- name: C\n", "- name: B\n              value: new\n            - name: C\n")
    };
    assert_ne!(edit(&injected), injected);
    assert_eq!(uninject(&edit(&injected)).unwrap().text, edit(&text));
}

#[test]
fn empty_lines_that_belong_to_a_value_stay_in_it() {
    let text = manifest("hand-written.yaml");
    let text =
        text.replace("value: |\n                text\n", "value: |+\n                text\n\n");
    let (_, injected) = page(&text);
    assert!(injected.contains("text\n\n\n            - name: STAYPUT_LISTEN"), "{injected}");
    assert_eq!(uninject(&injected).unwrap().text, text);
}

#[test] // proves MANIFEST-2
fn an_object_that_kubernetes_gives_back_says_the_same_afterwards() {
    for name in MANIFESTS {
        let text = manifest(name);
        let (_, injected) = page(&text);
        for (before, document) in crate::yaml::documents(&text)
            .unwrap()
            .into_iter()
            .zip(crate::yaml::documents(&injected).unwrap())
        {
            let (before, document) = (before.root.unwrap().value(), document.root.unwrap().value());
            let json = serde_json::to_string_pretty(&document).unwrap();
            let back = uninject(&json).unwrap().text;
            assert_eq!(crate::yaml::one(&back).unwrap().value(), before, "{name}");
        }
    }
}
