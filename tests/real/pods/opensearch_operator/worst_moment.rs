//! The operator looks when its StatefulSet wants another revision and no pod has its label yet.

use serde_json::json;
use stayput_standin::opensearch_operator::Action;

use super::stage::{ReadyPods, Stage};
use crate::pods::clients::{Clients, document};
use crate::pods::door::Door;
use crate::pods::fixture::OTHER;
use crate::pods::nodes::NODES;
use crate::pods::seen::{assert_other_containers_in_the_same_pods, attributes, seen};
use crate::support::wait::{eventually, eventually_briefly};

#[test] // proves UPDATE-97, UPDATE-98
fn its_deletion_is_refused_or_one_pod_is_replaced() {
    const TEST: &str = "pods::opensearch_operator::worst_moment::\
                        its_deletion_is_refused_or_one_pod_is_replaced";
    let Some(stage) = Stage::set_up(TEST) else { return };
    let clients = Clients::start(&stage.fixture, Door::plain());
    let ready = ReadyPods::count(&stage.fixture);

    with_the_policy_a_config_arrives_in_the_same_pods(&stage);
    without_it_one_pod_is_replaced_and_counts_as_done(&stage);

    assert_eq!(ready.fewest(), NODES.len() - 1, "one node at a time");
    let pods = seen(&stage.fixture);
    let count = clients.end();
    println!("{:?}, {:?}, failing for {:?}", count.writes, count.searches, count.failing);
    let lost = |number: &&u32| pods[0].ask(&document(**number)).is_none();
    let lost: Vec<&u32> = count.kept.iter().filter(lost).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // The operator leaves this for good.
    let settings = pods[0].ask("/_cluster/settings?flat_settings=true").expect("an answer");
    let all = json!({ "cluster.routing.allocation.enable": "all" });
    assert_eq!(settings, json!({ "persistent": {}, "transient": all }));
}

fn with_the_policy_a_config_arrives_in_the_same_pods(stage: &Stage) {
    let fixture = &stage.fixture;
    fixture.people.run(
        "kubectl apply -k deploy/keep-pods
         kubectl -n search label pods --selector app=logs stayput.dev/keep-pod=true",
    );
    let account = "system:serviceaccount:opensearch-operator-system:any";
    let delete =
        ["delete", "pod", "logs-0", "--dry-run=server", "--namespace=search", "--as", account];
    let group = "--as-group=system:serviceaccounts:opensearch-operator-system";
    eventually("the policy counts", || {
        fixture.admin().attempt(&[&delete[..], &[group]].concat(), "").is_err().then_some(())
    });
    let (before, known, looks) = (seen(fixture), stage.restarts(), stage.operator.looks());
    let held = stage.hold_reconciler();
    stage.edit(&json!({ "general": { "additionalConfig": { "node.attr.round": "second" } } }));
    stage.operator.until("the deletion is refused", |look| {
        look.refused.as_ref().is_some_and(|why| why.contains("stayput.dev/keep-pod"))
    });
    drop(held);
    stage.until_carried_out(known);
    assert_eq!(attributes(&stage.fixture, "round"), ["second"; NODES.len()]);
    assert_other_containers_in_the_same_pods(&before, &seen(fixture));
    assert_eq!(stage.container_restarts().into_values().collect::<Vec<_>>(), [1; NODES.len()]);
    stage.until_operator_is_content();
    let done = stage.operator.done_since(looks);
    assert!(!done.iter().any(|action| matches!(action, Action::Delete { .. })), "{done:?}");
    fixture.people.run(
        "kubectl -n search label pods --selector app=logs stayput.dev/keep-pod-
         kubectl delete -k deploy/keep-pods",
    );
}

fn without_it_one_pod_is_replaced_and_counts_as_done(stage: &Stage) {
    let fixture = &stage.fixture;
    let (before, known, looks) = (seen(fixture), stage.restarts(), stage.operator.looks());
    let held = stage.hold_reconciler();
    // Another image: the kubelet waits before it makes a container with the same one once more.
    stage.edit(&json!({ "general": { "image": OTHER } }));
    eventually_briefly("the operator deletes a pod", || {
        let done = stage.operator.done_since(looks);
        done.iter().any(|action| matches!(action, Action::Delete { .. })).then_some(())
    });
    drop(held);
    stage.until_carried_out(known);
    let after = seen(fixture);
    assert!(after.iter().all(|pod| pod.image == OTHER), "{after:#?}");
    assert_eq!(after.len(), before.len(), "{after:#?}");
    for (was, is) in before.iter().zip(&after) {
        let is_replaced = was.name == "logs-0";
        assert_eq!(was.uid != is.uid, is_replaced, "{}", is.name);
        assert_eq!((&was.name, &was.claim), (&is.name, &is.claim));
    }
    let restarts: Vec<u64> = stage.container_restarts().into_values().collect();
    assert_eq!(restarts, [0, 2, 2], "nothing was stopped twice");
    stage.until_operator_is_content();
    let done = stage.operator.done_since(looks);
    let deleted = |action: &&Action| matches!(action, Action::Delete { .. });
    assert_eq!(done.iter().filter(deleted).count(), 1, "{done:?}");
}
