//! An edit while the SearchCluster is paused: labels go ahead, so that the operator rests, and no node is stopped.

use serde_json::json;

use super::super::detached::run;
use super::super::fixture::Reconciler;
use super::{Beside, are_same_pods_with_other_containers};

#[tokio::test] // proves UPDATE-104
async fn while_paused_an_edit_is_read_and_taken_back_before_anything_happens() {
    let beside = Beside::new().await;
    beside.fixture.respec(json!({"paused": true})).await;
    let reconciler = Reconciler::start(beside.fixture.client.clone());
    beside.fixture.until_seen().await;
    let (before, processes) = (beside.controller.pods().await, beside.fixture.processes());
    beside.edit_config("second").await;
    beside.until_all_are_labelled().await;
    let diff = run(&beside.fixture, "diff logs").await.stdout;
    assert_eq!(diff.matches("container ").count(), before.len(), "{diff}");

    // Back again: for nobody there is anything to do.
    beside.edit_config("first").await;
    beside.until_all_are_labelled().await;
    assert_eq!(beside.fixture.processes(), processes, "every process goes on");

    beside.edit_config("third").await;
    beside.until_all_are_labelled().await;
    beside.fixture.respec(json!({"paused": false})).await;
    beside.until_done().await;
    beside.until_content().await;
    beside.check_end().await;
    let after = beside.controller.pods().await;
    assert!(are_same_pods_with_other_containers(&before, &after), "{before:#?} {after:#?}");
    beside.end(reconciler).await;
}

impl Beside {
    /// Lets the set's controller see the edit, and waits until all labels name its revision: here another one each
    /// time, also where an edit is taken back.
    async fn until_all_are_labelled(&self) {
        let revision = self.controller.see().await;
        self.until_all_have("all labels follow the edit", &revision).await;
        self.until_content().await;
    }
}
