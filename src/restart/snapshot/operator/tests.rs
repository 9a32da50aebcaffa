//! Tests of operators and their objects.

use super::*;
use crate::Unknown;

#[test]
fn labels_name_the_operator_and_its_object() {
    let of = |label: &str| {
        let labels = BTreeMap::from([(label.to_owned(), "logs".to_owned())]);
        Operator::of_labels(&labels).map(|operator| (operator.kind, operator.describe_object()))
    };
    for kind in OperatorKind::ALL {
        assert_eq!(of(kind.label()), Some((kind, format!("{} logs", kind.object()))));
    }
    assert_eq!(of("app"), None);
}

fn operator(kind: OperatorKind) -> Operator {
    Operator { kind, object: "logs".into(), replaces_pods: true }
}

/// A SearchCluster beside an operator whose object says this.
fn beside(kind: OperatorKind, facts: Known<OperatorFacts>) -> Cluster {
    let object = OperatorObject { kind, name: "logs".into(), facts };
    Cluster { name: "search/logs".into(), operator_objects: vec![object], ..Cluster::default() }
}

#[test] // proves RESTART-164
fn what_an_operator_does_with_old_pods_is_said_as_its_object_has_it() {
    let facts = |max_unavailable, state| {
        Ok(OperatorFacts { max_unavailable, state, ..OperatorFacts::default() })
    };
    let unknown = || Err(Unknown { message: "forbidden".into() });
    let patch = |budget: u8| {
        format!(
            "to let ECK replace them one at a time: `kubectl -n search patch elasticsearch logs --type merge -p \
             '{{\"spec\":{{\"updateStrategy\":{{\"changeBudget\":{{\"maxUnavailable\":{budget}}}}}}}}}'`; set it \
             back to 0 after"
        )
    };
    let budget_0 = format!(
        "the pods of Elasticsearch logs have an older revision, and ECK deletes only one that is not ready, \
         since changeBudget.maxUnavailable allows 0; {}",
        patch(1)
    );
    let replaces =
        "ECK replaces the pods of Elasticsearch logs, which restarts their engines; do nothing";
    let itself = "otherwise ECK replaces the pod by itself";
    let paused = "ECK is paused for Elasticsearch logs: once eck.k8s.elastic.co/pause-orchestration is gone, ECK \
                  replaces its pods";
    let unmanaged = "ECK does nothing for Elasticsearch logs, since eck.k8s.elastic.co/managed is false: once it is \
                     managed again, ECK replaces its pods";
    let opensearch = "the OpenSearch operator replaces the pods of OpenSearchCluster logs, which restarts their \
                      engines; do nothing";
    let refused = "otherwise the OpenSearch operator replaces the pod by itself, unless deploy/keep-pods refuses that";
    let (eck, working) = (OperatorKind::Eck, OperatorState::Working);
    let unsure = format!("{replaces} unless it is paused");
    let cases: [(_, _, &str, &str); 9] = [
        (eck, facts(None, working), replaces, itself),
        (eck, facts(Some(2), working), replaces, itself),
        (eck, facts(Some(-1), working), replaces, itself),
        (eck, facts(Some(0), working), &budget_0, &patch(1)),
        (eck, facts(Some(0), OperatorState::Paused), paused, paused),
        (eck, facts(None, OperatorState::Unmanaged), unmanaged, unmanaged),
        (eck, unknown(), &unsure, itself),
        (OperatorKind::OpenSearch, facts(None, working), opensearch, refused),
        (OperatorKind::Opster, unknown(), opensearch, refused),
    ];
    for (kind, facts, says, remedy) in cases {
        let (cluster, operator) = (beside(kind, facts), operator(kind));
        assert_eq!(operator.replaces(&cluster), says);
        assert_eq!(operator.remedy(&cluster), remedy);
    }
}

/// Another object's facts say nothing about these pods.
#[test]
fn the_object_of_other_pods_does_not_count() {
    let facts = OperatorFacts { max_unavailable: Some(0), ..OperatorFacts::default() };
    let cluster = beside(OperatorKind::OpenSearch, Ok(facts));
    let replacement = operator(OperatorKind::Eck).replacement(&cluster);
    assert_eq!(replacement, Replacement::EachPod);
}
