//! Texts that are not read as manifests, or are more than they look.

use std::fmt::Write as _;

use super::manifests::manifest;
use crate::{Options, inject, uninject};

/// An alias stands for a copy, also of what has aliases itself: some lines would take all memory.
#[test] // proves MANIFEST-6
fn aliases_do_not_grow_without_bound() {
    let mut text = "a0: &a0 {text: some}\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    for found in [inject(&text, &Options::default()), uninject(&text)] {
        let found = found.unwrap_err();
        assert!(found[0].message.contains("its aliases stand for more than"), "{found:#?}");
    }
    let nested = "&a [".repeat(150) + &"x".repeat(1 << 20) + &"]".repeat(150);
    assert!(inject(&nested, &Options::default()).is_err());
    let few = "a: &a {b: c}\nd: [*a, *a]\n";
    assert_eq!(inject(few, &Options::default()).unwrap().text, few);
}

/// As kubectl takes them: `kubectl get --output json` twice, or `jq`.
#[test] // proves MANIFEST-6
fn json_objects_may_follow_each_other() {
    let list = manifest("list.json");
    let one = inject(&list, &Options::default()).unwrap().text;
    for between in ["", "\n", "\n\n"] {
        let both = format!("{}{between}{}", list.trim_end(), list);
        let injected =
            inject(&both, &Options::default()).unwrap_or_else(|found| panic!("{found:#?}"));
        assert_eq!(injected.text, format!("{}{between}{one}", one.trim_end()));
        let documents: Vec<usize> = injected.changed.iter().map(|one| one.document).collect();
        assert_eq!(documents, [1, 2]);
        assert_eq!(uninject(&injected.text).unwrap().text, both);
    }
}

#[test] // proves MANIFEST-6
fn a_template_of_helm_is_told_from_a_manifest() {
    for text in ["a: {{ .Values.x }}\n", "{{- if .x }}\na: b\n{{- end }}\n"] {
        let found = inject(text, &Options::default()).unwrap_err();
        assert!(found[0].remedy.contains("helm template"), "{text}: {found:#?}");
    }
}
