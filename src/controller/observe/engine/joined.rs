//! Finds out if the nodes under way are in the cluster again.

use std::collections::{BTreeMap, BTreeSet};

use stayput_engine::Node;
use stayput_restart::{Ledger, Member};

/// Number of members without a new process among these nodes, by name and ephemeral id. Two nodes may have
/// one name.
pub(crate) fn not_back<'a>(
    members: impl Iterator<Item = &'a Member>,
    nodes: impl Iterator<Item = (&'a str, &'a str)>,
) -> usize {
    let by_name: BTreeMap<&str, &Member> =
        members.map(|member| (member.node.as_str(), member)).collect();
    let is_back = |(name, process): &(&str, &str)| {
        by_name.get(name).is_some_and(|member| member.ephemeral_id.as_deref() != Some(process))
    };
    let back: BTreeSet<&str> = nodes.filter(is_back).map(|(name, _)| name).collect();
    by_name.len() - back.len()
}

/// True in the first look that shows all nodes under way as joined, so that allocation, which we have
/// limited, is restored next. That needs nothing but the list of nodes. Not in the very first look: it has no
/// details of the other nodes.
pub(super) fn have_just_joined(ledger: &Ledger, before: Option<&[Node]>, now: &[Node]) -> bool {
    let joined = |nodes: &[Node]| are_back(ledger, nodes);
    let restores = ledger.debts.allocation.is_some() && ledger.under_way().next().is_some();
    restores && joined(now) && before.is_some_and(|before| !joined(before))
}

/// True if all nodes under way were back among these, and nothing waits for the cluster to come to rest after
/// that. Then only the report needs the health, and not at a time when the master has no tasks: it has many
/// while shards come back.
pub(super) fn nothing_waits_for_rest(ledger: &Ledger, nodes: &[Node]) -> bool {
    let restart = ledger.restart.as_ref().filter(|restart| !restart.has_scheduled());
    let is_last = restart.is_some() && ledger.queued.is_none();
    is_last && ledger.under_way().next().is_some() && are_back(ledger, nodes)
}

fn are_back(ledger: &Ledger, nodes: &[Node]) -> bool {
    let nodes = nodes.iter().map(|node| (node.name.as_str(), node.ephemeral_id.as_str()));
    not_back(ledger.under_way(), nodes) == 0
}

#[cfg(test)]
mod tests {
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
    #[test] // proves RESTART-88
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
}
