//! Variables of the manager that are there already.

use super::manifests::manifest;
use crate::{Finding, Options, Severity, inject};

fn found(name: &str, variable: &str, value: &str) -> Vec<Finding> {
    let own = format!("env:\n            - {{name: {variable}, value: '{value}'}}\n");
    let text = manifest(name).replace("env:\n", &own);
    match inject(&text, &Options::default()) {
        Ok(outcome) => outcome.notes,
        Err(found) => found,
    }
}

#[test] // proves MANIFEST-19
fn what_would_keep_the_manager_from_working_is_said_before() {
    for (variable, value, severity, message) in [
        ("STAYPUT_READY", "bad", Severity::Error, "does not take \"bad\""),
        ("STAYPUT_LISTEN", "127.0.0.1:9199", Severity::Error, "ask the manager at port 9199"),
        ("STAYPUT_LISTEN", "localhost:9199", Severity::Error, "ask the manager at port 9199"),
        ("STAYPUT_LISTEN", ":9200", Severity::Error, "ask the manager at port 9199"),
        ("STAYPUT_STATE_DIR", "/state", Severity::Error, "it is on no volume"),
        (
            "STAYPUT_STATE_DIR",
            "/stayput-config/x",
            Severity::Error,
            "a part of the engine's config",
        ),
        (
            "STAYPUT_STATE_DIR",
            "/usr/share/opensearch/config",
            Severity::Error,
            "a part of the engine's config",
        ),
        ("STAYPUT_CONFIG", "/a", Severity::Error, "STAYPUT_STAGE would copy from"),
        ("STAYPUT_STAGE", "/a=/b", Severity::Error, "STAYPUT_STAGE would copy from"),
        ("STAYPUT_TYPO", "x", Severity::Note, "does not know this variable"),
    ] {
        let found = found("hand-written.yaml", variable, value);
        let [found] = &found[..] else { panic!("{variable}={value}: {found:#?}") };
        assert_eq!(found.severity, severity, "{found}");
        assert!(
            found.field.as_deref().unwrap().ends_with(&format!(".env[name={variable}]")),
            "{found}"
        );
        assert!(found.message.contains(message), "{found}");
    }
    for (variable, value) in [
        ("STAYPUT_READY", "tcp://127.0.0.1:9200"),
        ("STAYPUT_LISTEN", "0.0.0.0:9199"),
        ("STAYPUT_LISTEN", "$(POD_IP):9199"),
        ("STAYPUT_STATE_DIR", "/stayput-state/x"),
        ("STAYPUT_STATE_DIR", "/usr/share/opensearch/data/stayput"),
        ("STAYPUT_CONFIG", "main=/stayput-config"),
        ("STAYPUT_STAGE", "/stayput-config/=/usr/share/opensearch/config"),
        ("STAYPUT_GRACE", "60s"),
    ] {
        assert_eq!(found("hand-written.yaml", variable, value), [], "{variable}={value}");
    }
}
