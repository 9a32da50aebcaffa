//! A row for each decision, with the place in the source of the operator (commit ef6502ab, `opensearch-operator/pkg`).

use std::time::Duration;

use super::{Action, Decision, Pod, Policy, Pool, Seen, decide};

/// Three nodes of one pool that are all as declared.
fn at_rest() -> Seen {
    Seen {
        pools: vec![pool("logs", true)],
        parallel_recovery: true,
        is_restarting: false,
        is_green: true,
        allocation: None,
    }
}

fn pool(set: &str, is_manager: bool) -> Pool {
    let pod = |ordinal| Pod {
        name: format!("{set}-{ordinal}"),
        revision: "1".into(),
        is_ready: true,
        is_deleting: false,
    };
    Pool {
        set: set.into(),
        replicas: 3,
        is_manager,
        is_as_declared: true,
        policy: Policy::OrderedReady,
        claims: 3,
        current_revision: "1".into(),
        update_revision: "1".into(),
        updated_replicas: 3,
        available_replicas: 3,
        pods: [0, 1, 2].map(pod).to_vec(),
    }
}

/// The StatefulSet controller has seen another template.
fn edited(pool: &mut Pool) {
    pool.update_revision = "2".into();
    pool.updated_replicas = 0;
}

/// The pod with this ordinal has the label of the update revision.
fn label(pool: &mut Pool, ordinal: usize) {
    pool.pods[ordinal].revision = "2".into();
    pool.updated_replicas += 1;
}

/// As text: the actions, and the seconds until the next look.
fn shown(seen: &Seen) -> String {
    let Decision { actions, again } = decide(seen);
    let action = |action: &Action| match action {
        Action::Write { set } => format!("write {set}"),
        Action::Remake { set, policy } => format!("remake {set} {policy:?}"),
        Action::SetCurrentRevision { set } => format!("current {set}"),
        Action::SetRestarting(true) => "restarting".into(),
        Action::SetRestarting(false) => "restarted".into(),
        Action::Allocate(value) => format!("allocate {value}"),
        Action::Delete { pod } => format!("delete {pod}"),
    };
    let actions: Vec<String> = actions.iter().map(action).collect();
    let again = if again < Duration::from_secs(1) { 0 } else { again.as_secs() };
    format!("{} | {again}", actions.join(", "))
}

type Row = (&'static str, fn(&mut Seen), &'static str);

#[test]
fn each_decision_of_its_source() {
    let rows: [Row; 20] = [
        // controllers/opensearchController.go:355
        ("nothing to do", |_| {}, " | 30"),
        // reconcilers/cluster.go:344-356
        ("edited", |seen| seen.pools[0].is_as_declared = false, "write logs | 30"),
        // reconcilers/rollingRestart.go:104-107, :194-232, :362-392; helpers/helpers.go:938: the lowest ordinal first
        (
            "the controller has seen the edit",
            |seen| edited(&mut seen.pools[0]),
            "restarting, allocate primaries, delete logs-0 | 10",
        ),
        (
            "one is of the new revision",
            |seen| {
                edited(&mut seen.pools[0]);
                label(&mut seen.pools[0], 0);
                seen.is_restarting = true;
            },
            "restarting, allocate primaries, delete logs-1 | 10",
        ),
        // rollingRestart.go:108-119, :130-147
        (
            "all have the label, and none was deleted",
            |seen| {
                edited(&mut seen.pools[0]);
                (0..3).for_each(|ordinal| label(&mut seen.pools[0], ordinal));
            },
            "current logs | 30",
        ),
        (
            "all have the label, after a deletion",
            |seen| {
                edited(&mut seen.pools[0]);
                (0..3).for_each(|ordinal| label(&mut seen.pools[0], ordinal));
                (seen.is_restarting, seen.allocation) = (true, Some("primaries".into()));
            },
            "current logs, allocate all, restarted | 30",
        ),
        (
            "allocation is back already",
            |seen| (seen.is_restarting, seen.allocation) = (true, Some("all".into())),
            "restarted | 30",
        ),
        // reconcilers/scaler.go:84-90, :402-415: the look ends before rollingRestart.go
        (
            "edited, and one is not available",
            |seen| {
                edited(&mut seen.pools[0]);
                seen.pools[0].available_replicas = 2;
            },
            " | 15",
        ),
        // rollingRestart.go:94-99, :121-127: by the pods, while the set's status is not that far
        (
            "edited, and one is not ready",
            |seen| {
                edited(&mut seen.pools[0]);
                seen.pools[0].pods[2].is_ready = false;
            },
            " | 10",
        ),
        (
            "edited, and one is being deleted",
            |seen| {
                edited(&mut seen.pools[0]);
                seen.pools[0].pods[2].is_deleting = true;
            },
            " | 10",
        ),
        (
            "edited, and a node of another pool is not ready",
            |seen| {
                seen.pools.push(pool("warm", false));
                edited(&mut seen.pools[0]);
                seen.pools[1].pods[0].is_ready = false;
            },
            " | 10",
        ),
        // opensearch-gateway/services/os_data_service.go:218-262
        (
            "edited, and not green",
            |seen| {
                edited(&mut seen.pools[0]);
                seen.is_green = false;
            },
            "restarting, allocate all | 10",
        ),
        (
            "edited, not green, and all is allocated",
            |seen| {
                edited(&mut seen.pools[0]);
                (seen.is_green, seen.allocation) = (false, Some("all".into()));
            },
            "restarting | 10",
        ),
        // rollingRestart.go:247-256: pools without cluster managers first, then by name
        (
            "three pools are edited",
            |seen| {
                seen.pools.extend([pool("warm", false), pool("hot", false)]);
                seen.pools.iter_mut().for_each(edited);
            },
            "restarting, allocate primaries, delete hot-0 | 10",
        ),
        // rollingRestart.go:275-303
        (
            "a quorum of cluster managers is just there",
            |seen| {
                edited(&mut seen.pools[0]);
                seen.pools[0].replicas = 1;
                seen.pools[0].available_replicas = 1;
                seen.pools[0].pods.truncate(1);
            },
            "restarting | 10",
        ),
        // reconcilers/cluster.go:249-294
        ("one is down", |seen| down(seen, 1), " | 15"),
        ("two are down", |seen| down(seen, 2), "remake logs Parallel | 0"),
        (
            "two are down, and it does not recover clusters",
            |seen| {
                down(seen, 2);
                seen.parallel_recovery = false;
            },
            " | 15",
        ),
        (
            "two are down, and their data is on no claim",
            |seen| {
                down(seen, 2);
                seen.pools[0].claims = 0;
            },
            " | 15",
        ),
        // cluster.go:297-305
        (
            "recovered",
            |seen| {
                down(seen, 1);
                seen.pools[0].policy = Policy::Parallel;
            },
            "remake logs OrderedReady | 15",
        ),
    ];
    for (what, change, expected) in rows {
        let mut seen = at_rest();
        change(&mut seen);
        assert_eq!(shown(&seen), expected, "{what}");
    }
}

/// So many pods are not ready.
fn down(seen: &mut Seen, count: usize) {
    let pool = &mut seen.pools[0];
    pool.pods.iter_mut().take(count).for_each(|pod| pod.is_ready = false);
    pool.available_replicas = pool.replicas - count;
}
