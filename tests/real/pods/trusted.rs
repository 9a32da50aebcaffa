//! What people do once a cluster is set up, by the documents alone: ask the doctor, hold restarts by gates
//! and windows, skip a rule, look at the page, and take the cluster out of stayput's hands.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use super::first_ten_minutes::STAYPUT;
use super::fixture::Fixture;
use super::nodes::{Node, observe, until_formed};
use crate::support::wait::eventually;

/// The rule that the request skips.
const RULE: &str = "only_restart_healthy_node_if_green_or_yellow";

/// A document, and who types its commands: with a kubeconfig whose namespace is that of the engines.
struct Reader<'a> {
    fixture: &'a Fixture,
    text: String,
}

impl<'a> Reader<'a> {
    fn of(fixture: &'a Fixture, document: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(document);
        Self { fixture, text: fs::read_to_string(path).expect("the document") }
    }

    /// Runs a line of the document, with these options besides.
    #[track_caller]
    fn line_with(&self, line: &str, options: &str) -> String {
        assert!(self.text.contains(line), "the document has no {line}");
        run(self.fixture, &format!("{line} {options}"))
    }

    #[track_caller]
    fn line(&self, line: &str) -> String {
        self.line_with(line, "")
    }
}

/// Runs a script in the namespace of the engines.
#[track_caller]
fn quietly(fixture: &Fixture, script: &str) -> String {
    fixture.people.run(&format!("export KUBECONFIG=\"$PWD/trusted.kubeconfig\"\n{script}"))
}

/// The same, and shows what it prints.
#[track_caller]
fn run(fixture: &Fixture, script: &str) -> String {
    let began = Instant::now();
    let printed = quietly(fixture, script);
    println!("{} ms\n{script}\n{printed}", began.elapsed().as_millis());
    printed
}

/// Needs three nodes at rest, on their config; takes the SearchCluster away.
pub(super) fn trusted(fixture: &Fixture) {
    let began = Instant::now();
    fixture.people.run(
        "cp \"$KUBECONFIG\" trusted.kubeconfig
         kubectl --kubeconfig trusted.kubeconfig config set-context --current --namespace search",
    );
    doctor(fixture);
    let before = observe(fixture, STAYPUT);
    until_formed(&before);
    let after = gated(fixture, &before);
    held(fixture, &after);
    page(fixture);
    detached(fixture, &after);
    println!("doctor, gates, windows, page and detach took {} s", began.elapsed().as_secs());
}

/// It ends with 0 only without errors, and everything could be read.
fn doctor(fixture: &Fixture) {
    let reader = Reader::of(fixture, "first-ten-minutes.md");
    let printed = reader.line("kubectl stayput --namespace search doctor logs");
    assert!(printed.contains("result      "), "{printed}");
    assert!(!printed.contains("\nunknown "), "{printed}");
}

/// A restart of one node waits for a gate, and goes without one of the rules once that is open. Returns the
/// nodes afterwards.
fn gated(fixture: &Fixture, before: &BTreeMap<String, Node>) -> BTreeMap<String, Node> {
    let rules = Reader::of(fixture, "rules.md");
    let gate = "kubectl annotate searchcluster logs gate.stayput.dev/backup";
    rules.line(&format!("{gate}='waits for the nightly backup'"));
    let skip = format!("--skip-rule {RULE}");
    rules.line_with("kubectl stayput restart logs", &format!("--id friday --node logs-2 {skip}"));
    until_blocked(fixture, "gate_closed");
    let status = run(fixture, "kubectl stayput status logs");
    assert!(status.contains(&format!("rules off   {RULE} is not evaluated")), "{status}");
    let why = run(fixture, "kubectl stayput why logs-2");
    assert!(why.contains("backup is closed (waits for the nightly backup)"), "{why}");
    rules.line("kubectl annotate searchcluster logs --overwrite gate.stayput.dev/backup=friday");
    let watched = rules.line("kubectl stayput watch logs --id friday");
    assert!(watched.contains("restart friday done: 1 node"), "{watched}");
    rules.line(&format!("{gate}-"));
    let history = run(fixture, "kubectl stayput history logs");
    assert!(history.contains(&format!("without {RULE}")), "{history}");
    let status = run(fixture, "kubectl stayput status logs");
    assert!(!status.contains("rules off"), "{status}");
    let after = observe(fixture, STAYPUT);
    until_formed(&after);
    for (name, node) in &after {
        assert_eq!(node.stays, before[name].stays, "{name}");
        assert_eq!(node.run() != before[name].run(), name == "logs-2", "{name}");
    }
    after
}

/// The next restart waits until the last one was checked, then for a maintenance window. It stops nothing.
fn held(fixture: &Fixture, before: &BTreeMap<String, Node>) {
    let rules = Reader::of(fixture, "rules.md");
    let gate = "kubectl annotate searchcluster logs after.gate.stayput.dev/smoke-test";
    rules.line(&format!("{gate}='run by the pipeline'"));
    run(
        fixture,
        r#"windows="[{\"days\":[\"$(LC_ALL=C date --utc --date '3 days' +%a)\"],\"start\":\"03:00\",\"duration\":\"1h\"}]"
           kubectl patch searchcluster logs --type merge --patch "{\"spec\":{\"restart\":{\"windows\":$windows}}}""#,
    );
    rules.line_with("kubectl stayput restart logs", "--id saturday --node logs-1");
    until_blocked(fixture, "gate_closed");
    let why = run(fixture, "kubectl stayput why logs-1");
    assert!(why.contains("restart friday has ended, and the gate smoke-test is closed"), "{why}");
    run(fixture, &format!("{gate}=friday --overwrite"));
    // That is no fault of anything, so it does not count as blocked.
    eventually("it waits for its window", || {
        let why = quietly(fixture, "kubectl stayput why logs-1");
        why.contains("outside of the maintenance windows").then_some(())
    });
    run(fixture, "kubectl stayput cancel logs\nkubectl stayput watch logs --id saturday || true");
    let history = run(fixture, "kubectl stayput history logs");
    let aborted = |line: &str| line.contains("saturday") && line.contains("aborted");
    assert!(history.lines().any(aborted), "{history}");
    rules.line(&format!("{gate}-"));
    for (name, node) in observe(fixture, STAYPUT) {
        assert_eq!(
            (node.stays.clone(), node.run()),
            (before[&name].stays.clone(), before[&name].run())
        );
    }
}

#[track_caller]
fn until_blocked(fixture: &Fixture, code: &str) {
    let blocked = format!("--for=jsonpath='{{.status.blocked}}'={code}");
    run(fixture, &format!("kubectl wait searchcluster logs {blocked} --timeout=2m"));
}

/// The page is for who may view, and shows what that user may see. Who has no right gets none.
fn page(fixture: &Fixture) {
    run(
        fixture,
        "kubectl create serviceaccount viewer
         kubectl create serviceaccount stranger
         kubectl create rolebinding viewer --clusterrole view --serviceaccount search:viewer
         for user in viewer stranger; do
           kubectl config set-credentials $user --token \"$(kubectl create token $user)\"
           kubectl config set-context $user --cluster test --user $user --namespace search
         done",
    );
    let shown = run(
        fixture,
        "kubectl stayput --context viewer ui logs > ui.out &
         until grep -q http:// ui.out; do kill -0 $!; sleep 0.1; done
         curl --silent --show-error --fail --location --cookie-jar jar --cookie jar \
           \"$(grep -o 'http://127[^ ]*' ui.out)\"
         kill $!",
    );
    for text in ["search/logs", "logs-0", "logs-2", "friday", "saturday"] {
        assert!(shown.contains(text), "no {text}: {shown}");
    }
    let refused = run(
        fixture,
        "if kubectl stayput --context stranger ui logs 2> refused; then exit 1; fi
         if kubectl stayput --context viewer restart logs 2>> refused; then exit 1; fi
         cat refused",
    );
    assert_eq!(refused.matches("you may not").count(), 2, "{refused}");
}

/// Nothing of ours is left, and the same engines run in the same pods.
fn detached(fixture: &Fixture, before: &BTreeMap<String, Node>) {
    let reader = Reader::of(fixture, "doctor.md");
    println!("{}", reader.line_with("kubectl stayput detach", "logs --yes"));
    let get = |what: &[&str], path: &str| fixture.run(&[&["get", "--output", path], what].concat());
    assert_eq!(get(&["searchclusters"], "name"), "");
    let annotations = "jsonpath={.items[*].metadata.annotations}";
    let left = get(&["pods", "--selector", "app=logs"], annotations);
    assert!(!left.contains("stayput.dev") && !left.contains("restart-phase"), "{left}");
    let left = get(&["secrets"], annotations);
    assert!(!left.contains("stayput.dev/allow"), "{left}");
    let after = observe(fixture, STAYPUT);
    for (name, node) in &after {
        assert_eq!(node.stays, before[name].stays, "{name}");
        assert_eq!(node.run(), before[name].run(), "{name}");
        assert_eq!(node.status["state"], "running", "{name}: {:#}", node.status);
    }
    let settings = after["logs-0"].ask("/_cluster/settings").expect("the engine answers");
    assert_eq!(settings, serde_json::json!({ "persistent": {}, "transient": {} }));
    until_formed(&after);
}
