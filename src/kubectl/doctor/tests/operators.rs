//! Pods of ECK and of the OpenSearch operator.

use serde_json::{Value, json};

use crate::doctor::Facts;
use crate::doctor::Severity::{Error, Note, Warning};
use crate::doctor::checks::findings;
use crate::doctor::tests::each;
use crate::doctor::tests::healthy::{from, healthy, unknown};

/// What ECK knows as paused, from 3.5 on.
const PAUSED: &str = "eck.k8s.elastic.co/pause-orchestration";

fn operated(facts: &mut Facts, kind: &str, annotations: Value) {
    operated_with(facts, kind, annotations, json!([]));
}

fn operated_with(facts: &mut Facts, kind: &str, annotations: Value, conditions: Value) {
    let group =
        if kind == "Elasticsearch" { "elasticsearch.k8s.elastic.co" } else { "opensearch.org" };
    let object = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind,
        "metadata": {"name": "logs", "annotations": annotations},
        "status": {"conditions": conditions},
    });
    facts.operated.insert((kind.to_owned(), "logs".to_owned()), Ok(Some(from(object))));
}

/// ECK with the annotation that pauses it, and this status of the condition.
fn asked_to_pause(facts: &mut Facts, status: &str) {
    let conditions = json!([
        {"type": "ReconciliationComplete", "status": "True"},
        {"type": "OrchestrationPaused", "status": status},
    ]);
    operated_with(facts, "Elasticsearch", json!({PAUSED: "true"}), conditions);
}

#[test] // proves DOCTOR-1
fn operators_restart_nodes_by_themselves() {
    each(&[
        (
            "ECK",
            |facts| operated(facts, "Elasticsearch", json!({})),
            Warning,
            "operator",
            "Elasticsearch/logs",
            [
                "ECK restarts nodes by itself",
                "annotate --overwrite elasticsearch logs eck.k8s.elastic.co/pause-orchestration=true",
            ],
        ),
        (
            "ECK that does nothing at all",
            |facts| {
                operated(facts, "Elasticsearch", json!({"eck.k8s.elastic.co/managed": "false"}))
            },
            Warning,
            "operator_unmanaged",
            "Elasticsearch/logs",
            ["does not renew certificates", "eck.k8s.elastic.co/managed-"],
        ),
        (
            "ECK that does not know the annotation that pauses it",
            |facts| operated(facts, "Elasticsearch", json!({PAUSED: "true"})),
            Warning,
            "operator",
            "Elasticsearch/logs",
            [
                "ECK does not say that it is paused",
                "annotate --overwrite elasticsearch logs eck.k8s.elastic.co/managed=false",
            ],
        ),
        (
            "ECK that does not do yet what the annotation says",
            |facts| asked_to_pause(facts, "False"),
            Warning,
            "operator",
            "Elasticsearch/logs",
            ["OrchestrationPaused", "eck.k8s.elastic.co/managed=false"],
        ),
        (
            "ECK that does nothing at all, and was to be paused",
            |facts| {
                let both = json!({PAUSED: "true", "eck.k8s.elastic.co/managed": "false"});
                operated(facts, "Elasticsearch", both);
            },
            Warning,
            "operator_unmanaged",
            "Elasticsearch/logs",
            ["does not renew certificates", "eck.k8s.elastic.co/managed-"],
        ),
        (
            "the OpenSearch operator",
            |facts| operated(facts, "OpenSearchCluster", json!({})),
            Note,
            "operator",
            "OpenSearchCluster/logs",
            ["cannot be paused", "kubectl stayput -n search status logs"],
        ),
        (
            "ECK deletes what others announce, paused or not",
            |facts| operated(facts, "Elasticsearch", json!({})),
            Warning,
            "operator",
            "Elasticsearch/logs",
            ["deletes shutdown records and voting exclusions", "pause-orchestration=true"],
        ),
        (
            "the OpenSearch operator that may take a restart for a failure",
            |facts| operated(facts, "OpenSearchCluster", json!({})),
            Note,
            "operator",
            "OpenSearchCluster/logs",
            [
                "manager.parallelRecoveryEnabled=false, then confirm: kubectl -n search annotate \
                 searchcluster logs stayput.dev/parallel-recovery=false",
                "kubectl stayput -n search status logs",
            ],
        ),
    ]);
    let mut facts = healthy();
    asked_to_pause(&mut facts, "True");
    assert_eq!(findings(&facts), [], "it is paused");

    let mut facts = healthy();
    operated(&mut facts, "OpenSearchCluster", json!({}));
    let recovery = json!({"stayput.dev/parallel-recovery": "false"});
    facts.change_cluster(|it| it["metadata"]["annotations"] = recovery);
    let found = findings(&facts);
    assert!(found.iter().all(|one| !one.message.contains("parallel")), "{found:?}");
}

/// ECK with this number of pods that it may delete.
fn budget(facts: &mut Facts, pods: &Value) {
    let object = json!({
        "apiVersion": "elasticsearch.k8s.elastic.co/v1", "kind": "Elasticsearch",
        "metadata": {"name": "logs"},
        "spec": {"updateStrategy": {"changeBudget": {"maxUnavailable": pods}}},
    });
    facts.operated.insert(("Elasticsearch".into(), "logs".into()), Ok(Some(from(object))));
}

fn in_place(facts: &mut Facts) {
    facts.change_cluster(|it| it["spec"]["update"] = json!({"mode": "inPlace"}));
}

const TO_NONE: &str = "kubectl -n search patch elasticsearch logs --type merge -p \
                       '{\"spec\":{\"updateStrategy\":{\"changeBudget\":{\"maxUnavailable\":0}}}}'";
const TO_DEFAULT: &str = "{\"changeBudget\":{\"maxUnavailable\":null}}";

#[test] // proves UPDATE-101, DOCTOR-1
fn the_operators_object_has_to_let_edits_be_carried_out_in_place() {
    each(&[
        (
            "ECK that may delete a pod",
            |facts| {
                in_place(facts);
                operated(facts, "Elasticsearch", json!({}));
            },
            Warning,
            "operator_budget",
            "Elasticsearch/logs",
            ["changeBudget.maxUnavailable is 1, its default", TO_NONE],
        ),
        (
            "ECK that may delete all pods",
            |facts| {
                in_place(facts);
                budget(facts, &json!(-1));
            },
            Warning,
            "operator_budget",
            "Elasticsearch/logs",
            ["changeBudget.maxUnavailable is -1: ", TO_NONE],
        ),
        (
            "ECK that may delete no pod, and nobody carries edits out",
            |facts| budget(facts, &json!(0)),
            Warning,
            "operator_budget",
            "Elasticsearch/logs",
            ["neither ECK nor stayput restarts a node", TO_DEFAULT],
        ),
        (
            "ECK that may delete no pod, and stayput that is to carry edits out",
            |facts| budget(facts, &json!(0)),
            Warning,
            "operator_budget",
            "Elasticsearch/logs",
            ["spec.update.mode is off", r#"'{"spec":{"update":{"mode":"inPlace"}}}'"#],
        ),
        (
            "ECK that does nothing at all",
            |facts| {
                in_place(facts);
                let unmanaged = json!({"eck.k8s.elastic.co/managed": "false"});
                operated(facts, "Elasticsearch", unmanaged);
            },
            Warning,
            "operator_unmanaged",
            "Elasticsearch/logs",
            ["no edit of the Elasticsearch arrives", "logs eck.k8s.elastic.co/managed-"],
        ),
        (
            "the OpenSearch operator",
            |facts| {
                in_place(facts);
                operated(facts, "OpenSearchCluster", json!({}));
            },
            Note,
            "operator",
            "OpenSearchCluster/logs",
            ["To be certain, install deploy/keep-pods, which refuses that", "status logs"],
        ),
        (
            "an operator of another kind",
            |facts| {
                in_place(facts);
                operated(facts, "Database", json!({}));
            },
            Error,
            "operator",
            "Database/logs",
            ["Database logs decides about its pods", r#"{"update":{"mode":"off"}}"#],
        ),
    ]);
    let mut facts = healthy();
    in_place(&mut facts);
    budget(&mut facts, &json!(0));
    assert_eq!(findings(&facts), [], "nothing is left to do");
}

#[test] // proves UPDATE-101
fn eck_that_is_paused_and_may_delete_a_pod_is_told_both() {
    let mut facts = healthy();
    in_place(&mut facts);
    asked_to_pause(&mut facts, "True");
    let found = findings(&facts);
    let codes: Vec<&str> = found.iter().map(|one| one.code).collect();
    assert_eq!(codes, ["operator_budget", "operator_paused"]);
    assert!(found[1].remedy.ends_with("logs eck.k8s.elastic.co/pause-orchestration-"), "{found:?}");
}

#[test] // proves UPDATE-101
fn the_opensearch_operator_is_no_danger_where_its_deletions_are_refused() {
    let mut facts = healthy();
    in_place(&mut facts);
    operated(&mut facts, "OpenSearchCluster", json!({}));
    let recovery = json!({"stayput.dev/parallel-recovery": "false"});
    facts.change_cluster(|it| it["metadata"]["annotations"] = recovery);
    let message =
        |facts: &Facts| findings(facts).iter().map(|one| one.message.clone()).collect::<String>();
    facts.installation.keeps_pods = Err(unknown());
    assert!(message(&facts).ends_with("whether it is installed: forbidden"), "{}", message(&facts));
    facts.installation.keeps_pods = Ok(true);
    let label = "label its pods stayput.dev/keep-pod=true: then deploy/keep-pods refuses that";
    assert!(message(&facts).ends_with(label), "{}", message(&facts));
    for pod in facts.pods.as_mut().unwrap() {
        let labels = pod.metadata.labels.as_mut().unwrap();
        labels.insert("stayput.dev/keep-pod".to_owned(), "true".to_owned());
    }
    assert_eq!(findings(&facts), []);
}

#[test] // proves UPDATE-103
fn a_pod_whose_label_is_ahead_is_not_taken_for_updated() {
    let mut facts = healthy();
    facts.change_pod(|it| {
        it["metadata"]["labels"]["controller-revision-hash"] = json!("logs-2");
        it["metadata"]["annotations"] = json!({"stayput.dev/actual-revision": "logs-1"});
    });
    facts.change_set(|it| it["status"]["updateRevision"] = json!("logs-2"));
    let found = findings(&facts);
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(
        (found.code, found.severity, found.object.as_str()),
        ("label_ahead", Note, "Pod/logs-0")
    );
    let message = "made from revision logs-1, and not from logs-2, which its label names";
    assert!(found.message.contains(message), "{}", found.message);
    assert_eq!(found.remedy, "kubectl stayput -n search diff logs");
}
