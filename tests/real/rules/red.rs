//! A red index blocks every node that runs.

use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;

use crate::restart::fixture::until;
use crate::restart::step;

use super::five_nodes::FiveNodes;

const RULE: &str = "only_restart_healthy_node_if_green_or_yellow";
const DISABLE: &str = "eck.k8s.elastic.co/disable-upgrade-predicates";

/// A shard that no node may hold: the cluster is red, until a user confirms that this rule is to be
/// disabled.
pub(super) fn index(cluster: &FiveNodes) {
    step("an index that no node may hold");
    let settings = json!({ "settings": {
        "number_of_shards": 1,
        "number_of_replicas": 0,
        "index.routing.allocation.include._id": "nobody",
    } });
    cluster.ask_engine("PUT", "/red?wait_for_active_shards=0", Some(&settings));
    let health = cluster.fixture.engine("/_cluster/health?wait_for_status=red&timeout=0s");
    assert_eq!(health["status"], "red", "{health:#}");
    let id = cluster.id("red");
    let before = cluster.fixture.facts();
    cluster.stayput(&["restart", "logs", "--node", "logs-d-1", "--id", &id]);
    let message = cluster.until_blocked("logs-d-1", RULE);
    assert!(message.contains("red"), "{message}");
    assert_eq!(cluster.fixture.facts(), before);

    step("let through by disabling exactly this rule");
    let annotate = |value| {
        let change = json!({ "metadata": { "annotations": { DISABLE: value } } });
        cluster.fixture.kube.merge::<SearchCluster>("logs", &change);
    };
    annotate(json!(RULE));
    until("its engine serves again", || {
        let status = cluster.fixture.with("logs-d-1", |member| member.manager().api.status());
        let is_another = status["run"]["id"] != before["logs-d-1"].run;
        (status["ready"] == true && is_another).then_some(())
    });
    annotate(json!(null));
    // Otherwise its end would wait for green in vain.
    cluster.ask_engine("DELETE", "/red", None);
    cluster.until_done(&id, &before, &["logs-d-1"]);
    cluster.until_whole();
}
