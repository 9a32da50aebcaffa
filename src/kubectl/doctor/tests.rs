//! Every finding, from a healthy cluster with one thing wrong.

mod certificates;
mod clocks;
#[path = "../../../tests/it/support/commands.rs"]
mod commands;
mod healthy;
mod network;
mod objects;
mod operators;
mod relabelled;
mod rights;
mod seen;
mod unwatched;

use crate::doctor::checks::findings;
use crate::doctor::tests::healthy::{healthy, unknown};
use crate::doctor::{Facts, Finding, Severity, Verdict};
use crate::run;

type Change = fn(&mut Facts);
/// What is changed, how, and what is then said: severity, code, object, and parts of message and remedy.
type Row = (&'static str, Change, Severity, &'static str, &'static str, [&'static str; 2]);

/// Each change of the healthy cluster leads to this finding and to no other code.
#[track_caller]
fn each(rows: &[Row]) {
    for (what, change, severity, code, object, parts) in rows {
        let mut facts = healthy();
        change(&mut facts);
        let found = findings(&facts);
        let is_it = |finding: &&Finding| finding.code == *code && finding.object == *object;
        let finding = found.iter().find(is_it);
        let finding =
            finding.unwrap_or_else(|| panic!("{what}: no {code} of {object}: {found:#?}"));
        assert_eq!(finding.severity, *severity, "{what}");
        for finding in &found {
            can_be_typed(finding);
        }
        let [message, remedy] = parts;
        assert!(finding.message.contains(message), "{what}: {}", finding.message);
        assert!(finding.remedy.contains(remedy), "{what}: {}", finding.remedy);
        let others: Vec<&Finding> = found.iter().filter(|other| other.code != *code).collect();
        assert!(others.is_empty(), "{what}: {others:#?}");
    }
}

/// Each line of a remedy is a command that can be pasted, or a sentence.
#[track_caller]
fn can_be_typed(finding: &Finding) {
    let is_command = |line: &&str| ["kubectl ", "helm "].iter().any(|one| line.starts_with(one));
    for line in finding.remedy.lines().filter(is_command) {
        let problems = commands::problems(line, run::definition());
        assert!(problems.is_empty(), "{}: {problems:#?}", finding.code);
    }
}

#[test] // proves DOCTOR-1
fn of_a_healthy_cluster_nothing_is_said() {
    assert_eq!(findings(&healthy()), []);
}

#[test] // proves DOCTOR-7
fn the_worst_comes_first_and_decides() {
    let mut facts = healthy();
    facts.cluster.spec.paused = true;
    facts.budgets = Ok(vec![]);
    assert_eq!(Verdict::of(&findings(&facts)), Verdict::Good);
    facts.installation.lease = Err(unknown());
    assert_eq!(Verdict::of(&findings(&facts)), Verdict::Unknown);
    facts.secrets.insert("manager-ca".into(), Ok(None));
    let found = findings(&facts);
    assert_eq!(Verdict::of(&found), Verdict::Bad);
    let severities: Vec<&str> = found.iter().map(|finding| finding.severity.as_str()).collect();
    assert_eq!(severities, ["error", "unknown", "warning", "note"]);
}

#[test]
fn the_same_about_several_pods_is_said_once() {
    let mut facts = healthy();
    for pod in facts.pods.as_mut().unwrap() {
        pod.metadata.owner_references = None;
    }
    let found = findings(&facts);
    let owners: Vec<&Finding> = found.iter().filter(|one| one.code == "no_owner").collect();
    assert_eq!(owners.len(), 1, "{found:#?}");
    assert_eq!(owners[0].object, "Pod/logs-0, Pod/logs-1, Pod/logs-2");
}

/// Nothing that cannot be read counts as good.
#[test] // proves DOCTOR-7
fn what_cannot_be_read_is_unknown() {
    let unread: [(&str, Change, &str); 13] = [
        ("pods", |facts| facts.pods = Err(unknown()), "no_pods"),
        ("a set", |facts| drop(facts.sets.insert("logs".into(), Err(unknown()))), "owner"),
        (
            "a Secret",
            |facts| drop(facts.secrets.insert("logs-admin".into(), Err(unknown()))),
            "secret",
        ),
        ("snapshot", |facts| facts.snapshot = Err(unknown()), "no_snapshot"),
        ("Lease", |facts| facts.installation.lease = Err(unknown()), "leader"),
        ("reconcilers", |facts| facts.installation.pods = Err(unknown()), "reconciler"),
        ("definition", |facts| facts.installation.definition = Err(unknown()), "definition"),
        ("policies", |facts| facts.policies = Err(unknown()), "network"),
        ("other policies", |facts| facts.installation.policies = Err(unknown()), "network"),
        ("budgets", |facts| facts.budgets = Err(unknown()), "budget"),
        ("a right", |facts| facts.rights[3].1 = Err(unknown()), "rights"),
        (
            "the apiserver's time",
            |facts| facts.installation.apiserver_time = Err(unknown()),
            "clock",
        ),
        (
            "the operator's object",
            |facts| {
                let key = ("Elasticsearch".to_owned(), "logs".to_owned());
                facts.operated.insert(key, Err(unknown()));
            },
            "operator",
        ),
    ];
    for (what, change, code) in unread {
        let mut facts = healthy();
        change(&mut facts);
        let found = findings(&facts);
        let is_it = |one: &Finding| {
            one.code == code
                && one.severity == Severity::Unknown
                && one.message.contains("forbidden")
        };
        assert!(found.iter().any(is_it), "{what}: {found:#?}");
        assert_eq!(Verdict::of(&found), Verdict::Unknown, "{what}: {found:#?}");
    }
}
