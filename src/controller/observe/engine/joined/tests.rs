use super::*;

use serde_json::{from_value, json};

#[test]
fn a_member_is_back_once_a_new_process_of_its_name_is_listed() {
    let member = |node: &str, before: &str| Member {
        node: node.into(),
        ephemeral_id: Some(before.into()),
        ..Member::default()
    };
    let members = [member("logs-0", "old-0"), member("logs-1", "old-1")];
    for (listed, expected) in [
        (&[("logs-2", "old-2")][..], 2),
        (&[("logs-0", "new-0"), ("logs-1", "old-1")], 1),
        (&[("logs-0", "new-0"), ("logs-0", "other"), ("logs-1", "old-1")], 1),
        (&[("logs-0", "new-0"), ("logs-1", "new-1")], 0),
        (&[("logs-0", "old-0"), ("logs-0", "new-0"), ("logs-1", "new-1")], 0),
    ] {
        let nodes = listed.iter().copied();
        assert_eq!(not_back(members.iter(), nodes), expected, "{listed:?}");
    }
}

fn nodes(process: &str) -> [Node; 1] {
    [Node {
        id: "id".into(),
        name: "logs-0".into(),
        ephemeral_id: process.into(),
        transport_address: "10.0.0.7:9300".into(),
        attributes: BTreeMap::new(),
        roles: None,
        version: None,
        jvm_start_ms: None,
        heap_max: None,
        data_paths: Vec::new(),
        snapshot: None,
    }]
}

/// Before a stop, the health is that of a cluster at rest.
#[test] // proves RESTART-87
fn the_health_is_waited_for_unless_the_last_nodes_are_back_and_nothing_follows() {
    let member = |step: &str| {
        json!({
            "podUid": step, "pod": "logs-0", "node": "logs-0", "step": step,
            "since": "2026-11-21T03:09:20Z", "ephemeralId": "old",
        })
    };
    let request = |id: &str| json!({ "id": id, "strategy": "rolling" });
    let ledger = |steps: &[&str], has_queued: bool| -> Ledger {
        let members: Vec<_> = steps.iter().map(|step| member(step)).collect();
        let restart = json!({
            "request": request("r1"), "started": "2026-11-21T03:09:20Z", "members": members,
        });
        let mut ledger = json!({ "restart": restart });
        if has_queued {
            ledger["queued"] = request("r2");
        }
        from_value(ledger).unwrap()
    };
    let (old, new) = (nodes("old"), nodes("new"));
    for (steps, has_queued, nodes, expected) in [
        (&["restarting"][..], false, &new, true),
        (&["restarting"], false, &old, false),
        (&["restarting"], true, &new, false),
        (&["restarting", "scheduled"], false, &new, false),
        (&["finished"], false, &new, false),
    ] {
        let is_so = nothing_waits_for_rest(&ledger(steps, has_queued), nodes);
        assert_eq!(is_so, expected, "{steps:?}, queued: {has_queued}");
    }
    assert!(!nothing_waits_for_rest(&Ledger::default(), &new), "no restart");
}

#[test] // proves RESTART-39
fn only_the_nodes_are_read_in_the_first_look_after_a_join() {
    let ledger = |limited: bool| -> Ledger {
        let debt = json!({ "restart": "r1", "before": {}, "holders": ["u"] });
        let members = json!([{
            "podUid": "u", "pod": "logs-0", "node": "logs-0", "step": "restarting",
            "since": "2026-11-21T03:09:20Z", "ephemeralId": "old",
        }]);
        let restart = json!({
            "request": { "id": "r1", "strategy": "rolling" },
            "started": "2026-11-21T03:09:20Z", "members": members,
        });
        let debts = if limited { json!({ "allocation": debt }) } else { json!({}) };
        from_value(json!({ "restart": restart, "debts": debts })).unwrap()
    };
    let (old, new) = (nodes("old"), nodes("new"));
    assert!(have_just_joined(&ledger(true), Some(&old), &new));
    assert!(!have_just_joined(&ledger(true), None, &new), "nothing is known of the others");
    assert!(!have_just_joined(&ledger(true), Some(&new), &new), "the look after it");
    assert!(!have_just_joined(&ledger(true), None, &old), "it has not joined");
    assert!(!have_just_joined(&ledger(false), Some(&old), &new), "nothing is limited");
    assert!(!have_just_joined(&Ledger::default(), Some(&old), &new), "no restart");
}
