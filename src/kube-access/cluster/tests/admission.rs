//! The admission policy of `deploy/`, which limits what the reconciler changes of a pod.

use std::path::Path;

use stayput_restart::annotation::{
    ACTUAL_REVISION, CONTENT, ENVIRONMENT, LAST_RESTART, NUDGE, PHASE, SHOWN, STOPPED,
};

#[test] // proves RESTART-105
fn the_policy_allows_the_annotations_that_the_reconciler_writes_and_no_other() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/base/admission-policy.yaml");
    let policy = std::fs::read_to_string(path).unwrap();
    let is_named = |key: &&str| policy.contains(&format!("\"{key}\""));
    let own = [PHASE, SHOWN, LAST_RESTART, NUDGE, CONTENT, ACTUAL_REVISION, ENVIRONMENT];
    assert!(own.iter().all(is_named), "{policy}");
    assert!(!is_named(&STOPPED), "only people write it: {policy}");
}
