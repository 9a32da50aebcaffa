//! Nobody names the sources of the config: they are found in the pods.

use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Outcome, Strategy};

use super::fixture::{Fixture, NODES, Reconciler};
use super::objects::search_cluster;

#[tokio::test] // proves UPDATE-66
async fn a_secret_that_pods_mount_is_changed_and_each_runs_on_it() {
    let fixture = Fixture::bare("").await;
    // Nothing of this is mounted before a restart asks the kubelet for it.
    for name in NODES {
        fixture.configure(name, "node.attr.rack: r2").await;
    }
    fixture.create::<SearchCluster>(search_cluster(false)).await;
    fixture.respec(json!({"restart": {"onConfigChange": "rolling"}})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    // A node whose manager has not answered when the others are restarted follows them.
    let over = |cluster: &SearchCluster| {
        cluster.status.as_ref().is_some_and(|status| {
            status.ledger.history.iter().map(|entry| entry.nodes).sum::<u32>() == 3
        })
    };
    let cluster = fixture.until("all run on the new config", over).await;
    for entry in &cluster.status.expect("a status").ledger.history {
        let ended = (entry.strategy, entry.outcome);
        assert_eq!(ended, (Strategy::Rolling, Outcome::Done), "{entry:?}");
    }
    for name in NODES {
        let status = fixture.status(name).await;
        let runs_on = status.run.expect("it runs").checksum;
        assert_eq!(runs_on, status.config.expect("a config").checksum, "{name}");
        assert_eq!(status.starts, 2, "{name}");
    }
    reconciler.end().await;
}
