//! A hook `preStop` of the engine's container: the kubelet runs it before it ends the container, and counts its time.

use super::manifests::manifest;
use crate::{Finding, Options, inject, uninject};

/// The kubelet's grace period, the manager's, and the notes.
fn graces(grace: &str, hook: &str) -> (i64, String, Vec<Finding>) {
    let text = manifest("hand-written.yaml");
    let text = text.replace("      # the engine\n", grace);
    let hook = format!("          lifecycle: {{preStop: {{{hook}}}}}\n          env:\n");
    let text = text.replace("          env:\n", &hook);
    let outcome = inject(&text, &Options::default()).unwrap();
    assert_eq!(uninject(&outcome.text).unwrap().text, text);
    let set = crate::yaml::documents(&outcome.text).unwrap().pop().unwrap().root.unwrap().value();
    let spec = &set["spec"]["template"]["spec"];
    let mut env = spec["containers"][0]["env"].as_array().unwrap().iter();
    let manager = env.find(|one| one["name"] == "STAYPUT_TERMINATION_GRACE").unwrap();
    let kubelet = spec["terminationGracePeriodSeconds"].as_i64().unwrap();
    (kubelet, manager["value"].as_str().unwrap().to_owned(), outcome.notes)
}

const LONG: &str = "      terminationGracePeriodSeconds: 600\n";

#[test] // proves MANIFEST-25
fn what_a_hook_sleeps_is_not_the_managers_time() {
    for hook in [
        "sleep: {seconds: 280}",
        "exec: {command: [sleep, '280']}",
        "exec: {command: [/bin/sleep, 280s]}",
        "exec: {command: [sh, -c, 'sleep 280']}",
    ] {
        let (kubelet, manager, notes) = graces(LONG, hook);
        assert_eq!((kubelet, manager.as_str(), notes), (600, "310s", vec![]), "{hook}");
        let (kubelet, manager, _) = graces("", hook);
        assert_eq!((kubelet, manager.as_str()), (460, "170s"), "{hook}");
    }
}

#[test] // proves MANIFEST-25
fn a_hook_that_does_more_is_named() {
    for hook in [
        "exec: {command: [/move-shards]}",
        "exec: {command: [sh, -c, 'sleep 5; /move-shards']}",
        "exec: {command: [sh, -c, 'sleep $N']}",
        "httpGet: {port: 9200}",
    ] {
        let (kubelet, manager, notes) = graces(LONG, hook);
        assert_eq!((kubelet, manager.as_str()), (600, "590s"), "{hook}");
        let [note] = &notes[..] else { panic!("{notes:#?}") };
        assert!(note.field.as_deref().unwrap().ends_with("lifecycle.preStop"), "{note}");
        assert!(note.message.contains("a restart in place does not run the hook"), "{note}");
        assert!(note.remedy.contains("STAYPUT_TERMINATION_GRACE"), "{note}");
    }
    let text = manifest("eck.yaml");
    let container = "        - name: elasticsearch\n";
    let hook = "          lifecycle: {preStop: {exec: {command: [/move-shards]}}}\n";
    let text = text.replace(container, &format!("{container}{hook}"));
    let notes = inject(&text, &Options::default()).unwrap().notes;
    let is_one = |note: &Finding| note.message.contains("does not run the hook");
    assert!(notes.iter().any(is_one), "{notes:#?}");
}
