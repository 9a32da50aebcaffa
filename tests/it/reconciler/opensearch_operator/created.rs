//! A StatefulSet that the operator has just created, as for a new cluster or when it recovers one: its record of the set
//! is in the template until its next look, which would cost each pod.

use stayput_standin::opensearch_operator::{Action, just_created};

use super::super::fixture::Reconciler;
use super::{Beside, deleted};

#[tokio::test] // proves UPDATE-85
async fn the_operators_record_of_a_new_set_costs_no_pod() {
    let beside = Beside::with(just_created).await;
    let reconciler = Reconciler::start(beside.fixture.client.clone());
    beside.fixture.until_seen().await;
    let (before, processes) = (beside.controller.pods().await, beside.fixture.processes());
    let look = beside.operator.look().await;
    assert_eq!(look.done, [Action::Write { set: "logs".into() }], "{look:?}");
    let revision = beside.controller.see().await;
    beside.until_all_have("all pods have the label", &revision).await;
    let look = beside.operator.look().await;
    assert_eq!(deleted(&look.done), [""; 0], "{look:?}");
    beside.until_content().await;
    let after = beside.controller.pods().await;
    let made = |found: &super::Found| -> Vec<(String, String)> {
        found.values().map(|pod| (pod.uid.clone(), pod.container.clone())).collect()
    };
    assert_eq!(made(&after), made(&before));
    assert_eq!(beside.fixture.processes(), processes, "every process goes on");
    assert!(after.values().all(|pod| !pod.is_ahead), "{after:#?}");
    beside.end(reconciler).await;
}
