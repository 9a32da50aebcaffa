//! Several engines in one stream.

use super::manifests::manifest;
use crate::{Options, Outcome, Severity, inject};

/// A StatefulSet whose container has only the name of an engine, as that of an exporter.
const EXPORTER: &str = "---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: exporter}
spec:
  template:
    spec:
      containers:
        - {name: elasticsearch, image: example/exporter:1}
";

fn stream() -> String {
    manifest("hand-written.yaml") + EXPORTER
}

#[track_caller]
fn done(text: &str, options: &Options) -> Outcome {
    inject(text, options).unwrap_or_else(|found| panic!("{found:#?}"))
}

fn with_command() -> Options {
    Options { command: vec!["/start".to_owned()], ..Options::default() }
}

#[test] // proves MANIFEST-5
fn a_container_that_is_only_named_like_an_engine_can_be_left_out() {
    let found = inject(&stream(), &Options::default()).unwrap_err();
    let mut errors = found.iter().filter(|one| one.severity == Severity::Error);
    let found = errors.next().unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(errors.next(), None);
    assert_eq!(found.object.as_deref(), Some("StatefulSet/exporter"));
    assert!(found.remedy.contains("If it is no engine, leave it out: --skip KIND/NAME"), "{found}");
    let skip = Options { skip: vec!["StatefulSet/exporter".to_owned()], ..Options::default() };
    let outcome = done(&stream(), &skip);
    assert!(outcome.text.ends_with(EXPORTER), "{}", outcome.text);
    let objects: Vec<_> = outcome.changed.iter().map(|one| one.object.as_str()).collect();
    assert_eq!((objects, outcome.notes), (vec!["StatefulSet/logs"], vec![]));
}

#[test] // proves MANIFEST-5
fn a_command_replaces_no_entrypoint_that_is_known_beside_another_engine() {
    let text = done(&stream(), &with_command()).text;
    assert!(text.contains("- \"--\"\n            - ./opensearch-docker-entrypoint.sh"), "{text}");
    assert_eq!(text.matches("/start").count(), 1, "{text}");
    let alone = done(&manifest("hand-written.yaml"), &with_command()).text;
    assert!(alone.contains("- /start"), "{alone}");
    // Engines whose command is not known all get it: a chart with a StatefulSet for each role.
    let both = EXPORTER.to_owned() + &EXPORTER.replace("name: exporter", "name: other");
    assert_eq!(done(&both, &with_command()).text.matches("/start").count(), 2);
}
