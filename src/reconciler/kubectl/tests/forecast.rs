//! Dry runs, from the sample of a snapshot.

use serde_json::json;

use crate::kubectl::cluster_view::ClusterView;
use crate::kubectl::forecast::DatedForecast;
use crate::kubectl::json::PlanOutput;
use crate::kubectl::page::Paint;
use crate::kubectl::pages;
use stayput_restart::{Request, Saved, Strategy, Target};

const PLAIN: Paint = Paint { colored: false };

fn sample() -> Saved {
    Saved::parse(include_str!("../../../../proto/samples/snapshot.json")).unwrap()
}

fn page(saved: &Saved, request: Option<&Request>) -> String {
    pages::forecast(&ClusterView::from_snapshot(saved), &DatedForecast::new(saved, request), PLAIN)
}

#[test]
fn a_restart_under_way() {
    let saved = sample();
    assert_eq!(page(&saved, None), "\
cluster     search/logs, observed at 2026-11-18T11:07:30Z
restart     rolling 4f2a91c07b3e: under way
step 1      under way: logs-warm-0 (it is under way)
step 2      logs-hot-0 (hot data goes after all other data and before nodes without data)
step 3      logs-master-2 (it is master-eligible: it goes after the other nodes)
step 4      logs-master-1 (it is master-eligible: it goes after the other nodes)
never       logs-hot-1: unreplicated_index: logs-hot-1 holds the only copy of shard 0 of once, which has no replica: add a replica (index.number_of_replicas), or cancel this restart and request one that accepts that this index is unavailable until the node is back: `kubectl stayput restart --allow-unreplicated once`
never       logs-master-0: do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded: logs-master-0 is the last master-eligible node to be restarted and goes after all others: waits for logs-hot-1; if that never happens, repair what it waits for; as a last resort, disable the rule with spec.restart.disabledPredicates: [do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded]
waiting     logs-hot-0, logs-hot-1, logs-master-0, logs-master-1, logs-master-2: another_in_progress: logs-warm-0 is under way; one node at a time
waiting     logs-warm-0: stopping: it is not ready for 10 s, since it is not known whether Services still send requests to it: EndpointSlices cannot be listed: forbidden
waiting     1 node: finished, or not part of the restart
            (assuming that every node comes back and nothing else in the cluster changes)
");
}

#[test]
fn a_request_that_nobody_made() {
    let saved = sample();
    let coordinated = Request {
        id: "dry-run".into(),
        strategy: Strategy::Coordinated,
        target: Target::default(),
        ..Request::default()
    };
    assert_eq!(page(&saved, Some(&coordinated)), "\
cluster     search/logs, observed at 2026-11-18T11:07:30Z
restart     none requested; a coordinated restart would do this
blocked by  another_in_progress: restart 4f2a91c07b3e is under way: the request waits until it is over
step 1      stop logs-hot-0, logs-hot-1, logs-master-0, logs-master-1, logs-master-2, logs-warm-0, logs-warm-1 (every node is stopped before any is started)
step 2      start logs-master-0, logs-master-1, logs-master-2 (it is master-eligible: those are started first)
step 3      start logs-hot-0, logs-hot-1, logs-warm-0, logs-warm-1 (it is started after the master-eligible nodes)
waiting     logs-hot-0, logs-hot-1, logs-master-0, logs-master-1, logs-master-2, logs-warm-0, logs-warm-1: another_in_progress: restart 4f2a91c07b3e is under way: the request waits until it is over
            (assuming that every node comes back and nothing else in the cluster changes)
");
}

#[test]
fn one_node_at_the_moment_of_the_snapshot() {
    let saved = sample();
    let view = ClusterView::from_snapshot(&saved);
    let forecast = DatedForecast::new(&saved, None);
    let pod = view.pod_of_node("logs-hot-1").unwrap();
    assert_eq!(pages::why_in_snapshot(&view, pod, &forecast, PLAIN), "\
observed at 2026-11-18T11:07:30Z
node        logs-hot-1 of search/logs
pod         logs-hot-1, ready, uid logs-hot-1-uid1
phase       schedule-rolling
engine      running
config      checksum v1…
why         logs-warm-0 is under way; one node at a time
restart     4f2a91c07b3e: waits for its turn, since 2026-11-18T11:06:40Z (50s ago)
last        its engine was never restarted in this pod
never       unreplicated_index: logs-hot-1 holds the only copy of shard 0 of once, which has no replica: add a replica (index.number_of_replicas), or cancel this restart and request one that accepts that this index is unavailable until the node is back: `kubectl stayput restart --allow-unreplicated once`
");
}

#[test]
fn for_programs() {
    let saved = sample();
    let output = PlanOutput::new(
        &ClusterView::from_snapshot(&saved),
        Some(&DatedForecast::new(&saved, None)),
    );
    let plan = serde_json::to_value(output).unwrap();
    let forecast = &plan["forecast"];
    assert_eq!(forecast["basis"], "underWay");
    assert_eq!(forecast["steps"][0]["when"], "underWay");
    assert_eq!(forecast["never"][0]["node"], json!("logs-hot-1"));
    assert_eq!(forecast["never"][0]["code"], "unreplicated_index");
}
