//! Dry runs, from the sample of a snapshot.

use serde_json::json;
use stayput_restart::{LivePod, PodPatch, PodUpdate, Request, Saved, Strategy, Target, UpdateStep};

use crate::json::PlanOutput;
use crate::snapshot::DatedForecast;
use crate::text::{self, Paint};
use crate::view::ClusterView;

const PLAIN: Paint = Paint { colored: false };

fn sample() -> Saved {
    Saved::parse(include_str!("../../../proto/samples/snapshot.json")).unwrap()
}

fn page(saved: &Saved, request: Option<&Request>) -> String {
    text::forecast(&ClusterView::from_snapshot(saved), &DatedForecast::new(saved, request), PLAIN)
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
            (restart, unless another step is named: keeps container, pod, address and volumes)
never       logs-hot-1: unreplicated_index: logs-hot-1 holds the only copy of shard 0 of once, which has no replica: add a replica (index.number_of_replicas), or cancel this restart and request one that accepts that this index is unavailable until the node is back: `kubectl stayput -n search restart logs --allow-unreplicated once`
never       logs-master-0: do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded: logs-master-0 is the last master-eligible node to be restarted and goes after all others: waits for logs-hot-1; if that never happens, repair what it waits for; as a last resort, disable the rule: cancel this restart and request one by `kubectl stayput -n search restart logs --skip-rule do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded`; for all stops, write its name into the annotation eck.k8s.elastic.co/disable-upgrade-predicates
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
            (restart, unless another step is named: keeps container, pod, address and volumes)
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
    assert_eq!(text::why_in_snapshot(&view, pod, &forecast, PLAIN), "\
observed at 2026-11-18T11:07:30Z
node        logs-hot-1 of search/logs
pod         logs-hot-1, ready, uid logs-hot-1-uid1
phase       schedule-rolling
engine      running
config      checksum v1…
why         logs-warm-0 is under way; one node at a time
runbook     docs/runbook/waiting.md, or: kubectl stayput runbook another_in_progress
restart     4f2a91c07b3e: waits for its turn, since 2026-11-18T11:06:40Z (50s ago)
last        its engine was never restarted in this pod
never       unreplicated_index: logs-hot-1 holds the only copy of shard 0 of once, which has no replica: add a replica (index.number_of_replicas), or cancel this restart and request one that accepts that this index is unavailable until the node is back: `kubectl stayput -n search restart logs --allow-unreplicated once`
");
}

#[test]
fn for_programs() {
    let saved = sample();
    let output =
        PlanOutput::new(&ClusterView::from_snapshot(&saved), Ok(&DatedForecast::new(&saved, None)));
    let plan = serde_json::to_value(output).unwrap();
    let forecast = &plan["forecast"];
    assert_eq!(forecast["basis"], "underWay");
    assert_eq!(forecast["steps"][0]["when"], "underWay");
    assert_eq!(forecast["never"][0]["node"], json!("logs-hot-1"));
    assert_eq!(forecast["never"][0]["code"], "unreplicated_index");
}

/// The sample, in which pods lack something of their templates.
fn with_updates(allowed: &[UpdateStep]) -> Saved {
    let mut saved = sample();
    saved.policy.update = allowed.iter().copied().collect();
    for (node, step, field) in [
        (
            "logs-hot-0",
            UpdateStep::Container,
            "spec.containers[search].image: search:1 -> search:2",
        ),
        ("logs-master-1", UpdateStep::Replace, "spec.affinity: {} is new"),
        ("logs-master-2", UpdateStep::Relabel, "metadata.labels.team: a is new"),
    ] {
        let pod = saved.snapshot.pods.iter_mut().find(|pod| pod.node == node);
        let pod = pod.expect("it is in the sample");
        let container_id = Some("containerd://1".to_owned());
        pod.live = Some(Box::new(LivePod { container_id, ..LivePod::default() }));
        pod.update = Ok(Some(PodUpdate {
            from: "logs-1".into(),
            to: "logs-2".into(),
            step,
            because: vec![field.to_owned()],
            new_container: false,
            data_elsewhere: false,
            settings: None,
            patch: PodPatch::default(),
        }));
    }
    saved
}

#[test] // proves UPDATE-30
fn plan_shows_step_fields_and_what_is_kept_of_each_node() {
    let steps = [UpdateStep::Relabel, UpdateStep::Restart, UpdateStep::Container];
    let saved = with_updates(&steps);
    let page = page(&saved, None);
    for lines in [
        "
step 2      logs-hot-0 (hot data goes after all other data and before nodes without data)
            container, keeps pod, address and volumes: spec.containers[search].image: search:1 -> search:2
",
        "
template    logs-master-1 (not carried out: spec.update.allow does not have this step; add it there, or delete the pod yourself): replace, keeps name and volume claims: spec.affinity: {} is new
template    logs-master-2 (without a restart): relabel, keeps the engine's process: metadata.labels.team: a is new
",
        "
            (restart, unless another step is named: keeps container, pod, address and volumes)
",
    ] {
        assert!(page.contains(lines), "{lines}is not in\n{page}");
    }
    let dated = DatedForecast::new(&saved, None);
    let output = PlanOutput::new(&ClusterView::from_snapshot(&saved), Ok(&dated));
    let others = &serde_json::to_value(output).unwrap()["forecast"]["otherUpdates"];
    assert_eq!(
        (&others[0]["name"], &others[0]["step"]),
        (&json!("logs-master-1"), &json!("replace"))
    );
    assert_eq!(others[0]["because"], json!(["spec.affinity: {} is new"]));

    // With the right to replace pods it is a step.
    let all = [&steps[..], &[UpdateStep::Replace]].concat();
    let page = self::page(&with_updates(&all), None);
    let replaced = "
            replace, keeps name and volume claims: spec.affinity: {} is new
";
    assert!(page.contains(replaced), "{page}");
}
