//! What it says, how much that is for 2,000 nodes, and that it is not taken for another form.

use json_patch::{PatchError, PatchOperation};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::difference;
use stayput_kube_access::cluster::SearchClusterStatus;
use stayput_kube_access::patch_operations::place;
use stayput_restart::{
    Direction, Ending, Ledger, Member, MemberStep, NodeReport, Once, Report, Request, Restart, Time,
};

fn apply(operations: &[PatchOperation], before: &Value) -> Result<Value, PatchError> {
    let mut object = json!({"status": before, "metadata": {}});
    json_patch::patch(&mut object, operations)?;
    Ok(object["status"].take())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_u8).prop_map(Value::from),
        "[ab<]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let keys = prop_oneof![Just("name"), Just("podUid"), Just("a/b~c"), Just("d"), Just("e")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(keys.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Long lists, so that their parts are shorter than the whole.
fn list() -> impl Strategy<Value = Value> {
    let item = |name: String, value| json!({"name": name, "value": value, "text": "x".repeat(99)});
    let item = ("[a-h]", value()).prop_map(move |(name, value)| item(name, value));
    prop::collection::vec(item, 0..8).prop_map(Value::from)
}

fn makes(before: &Value, after: &Value) -> Result<(), TestCaseError> {
    // Beside what does not change: otherwise the whole is shorter.
    let text = "x".repeat(20_000);
    let whole =
        |status: &Value| json!({"ledger": {"restart": {"x": status, "text": text}}, "y": status});
    let (before, after) = (whole(before), whole(after));
    let patch = difference(&before, &after).expect("a small change");
    prop_assert_eq!(apply(&patch, &before).expect("it fits"), after);
    Ok(())
}

proptest! {
    #[test] // proves RESTART-23
    fn what_it_says_makes_the_one_of_the_other(before in value(), after in value()) {
        makes(&before, &after)?;
    }

    #[test]
    fn so_it_does_for_items_that_come_go_change_and_move(before in list(), after in list()) {
        makes(&before, &after)?;
    }
}

#[test]
fn it_has_what_differs_and_nothing_else() {
    let text = "x".repeat(500);
    let before = json!({
        "ledger": {"restart": {"scheduled": [
            {"since": "1", "nodes": {"a": "1", "b/c": "2", "text": text}},
            {"since": "2", "nodes": {"c": "3", "text": text}},
        ]}},
        "nodes": [{"name": "a", "text": text}, {"name": "b", "text": text}],
        "same": [1, 2],
        "old": 1,
    });
    let after = json!({
        "ledger": {"restart": {"scheduled": [
            {"since": "1", "nodes": {"a": "1", "text": text}},
            {"since": "2", "nodes": {"c": "3", "text": text}},
        ]}},
        "nodes": [{"name": "b", "state": "y", "text": text}, {"name": "d"}],
        "same": [1, 2],
        "new": 1,
    });
    let patch = json!([
        {"op": "remove", "path": "/status/old"},
        {"op": "test", "path": "/status/ledger/restart/scheduled/0/since", "value": "1"},
        {"op": "test", "path": "/status/ledger/restart/scheduled/0/nodes/b~1c", "value": "2"},
        {"op": "remove", "path": "/status/ledger/restart/scheduled/0/nodes/b~1c"},
        {"op": "add", "path": "/status/new", "value": 1},
        {"op": "remove", "path": "/status/nodes/0"},
        {"op": "add", "path": "/status/nodes/0/state", "value": "y"},
        {"op": "add", "path": "/status/nodes/1", "value": {"name": "d"}},
    ]);
    assert_eq!(json!(difference(&before, &after)), patch);
    assert_eq!(difference(&before, &before), Some(vec![]));
}

/// The same members, written by somebody else: a line may be elsewhere, a list have another order.
#[test] // proves RESTART-23
fn what_was_written_in_another_form_is_not_changed() {
    let text = "x".repeat(9_999);
    let whole = |scheduled: Value, members: Value| {
        // With the text, the whole is longer than its parts.
        json!({"ledger": {"restart": {"text": text, "scheduled": scheduled, "members": members}}})
    };
    let group = |nodes: Value| json!([{"since": "1", "nodes": nodes}]);
    let member = |uid: &str, step: &str| json!({"podUid": uid, "step": step, "x": "x".repeat(99)});
    let ours = whole(
        group(json!({"a": "1", "b": "2"})),
        json!([member("c", "stop"), member("d", "stop")]),
    );
    let theirs = [
        whole(
            group(json!({"a": "1", "b": "2"})),
            json!([member("d", "stop"), member("c", "stop")]),
        ),
        whole(json!([]), json!([member("a", "scheduled"), member("b", "scheduled")])),
    ];
    let left = || group(json!({"b": "2"}));
    for after in [
        whole(left(), json!([member("c", "start"), member("d", "stop")])),
        whole(left(), json!([member("d", "stop")])),
        whole(json!([]), json!([member("c", "stop")])),
        whole(json!([]), json!([])),
    ] {
        let patch = difference(&ours, &after).unwrap();
        assert_eq!(apply(&patch, &ours).unwrap(), after);
        for theirs in &theirs {
            assert!(apply(&patch, theirs).is_err(), "{patch:?}");
        }
    }
}

/// The apiserver would find them to be others.
#[test]
fn texts_that_the_apiserver_writes_in_another_way_are_not_tested() {
    let whole = |reason: &str, members: Value| json!({"ledger": {"restart": {"text": "x".repeat(999), "request": {"reason": reason}, "members": members}}});
    let member = |uid: &str| json!({"podUid": uid, "zone": "z", "ending": ["done", "a < b & c"]});
    let before = whole("a -> b", json!([member("c"), member("d")]));
    let after = whole("other", json!([member("d")]));
    let patch = difference(&before, &after).unwrap();
    assert_eq!(
        json!(patch),
        json!([
            {"op": "test", "path": "/status/ledger/restart/members/0/ending/0", "value": "done"},
            {"op": "test", "path": "/status/ledger/restart/members/0/podUid", "value": "c"},
            {"op": "test", "path": "/status/ledger/restart/members/0/zone", "value": "z"},
            {"op": "remove", "path": "/status/ledger/restart/members/0"},
            {"op": "replace", "path": "/status/ledger/restart/request/reason", "value": "other"},
        ])
    );
    assert_eq!(apply(&patch, &before).unwrap(), after);
}

#[test]
fn a_change_of_everything_is_no_difference() {
    let map = |value: &str| -> Value {
        let text = format!("{value}{}", "x".repeat(99));
        (0..5_000)
            .map(|number| (number.to_string(), json!({"a": {"b": text, "c": value}})))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let (before, mut after) = (map("1"), map("1"));
    for number in 0..3_000 {
        after[number.to_string()]["a"]["c"] = json!("2");
    }
    assert_eq!(difference(&before, &after), None);
}

const NODES: u64 = stayput_restart::MAX_MEMBERS as u64;
const BEGAN: u64 = 1_795_000_000_000;

fn waits(number: u64) -> Member {
    let name = format!("logs-production-hot-{number:05}");
    Member {
        pod_uid: format!("5f0c9a3e-7d1b-4c52-9e0a-{number:012x}"),
        pod: name.clone(),
        node: name,
        since: Time(BEGAN),
        ..Member::default()
    }
}

fn has_a_slot(number: u64, since: u64) -> Member {
    Member {
        step: MemberStep::Restarting,
        since: Time(since),
        stop_sequence: 1_002,
        start_sequence: 1_004,
        expected: Some("3".repeat(64)),
        ephemeral_id: Some("q3nHcW8OQ1yJ0k5pC6Zb1g".into()),
        node_id: Some("Zt7vXk1hTkSg0aPq9cR2Lw".into()),
        roles: ["data_hot", "data_content", "ingest"].map(str::to_owned).into(),
        zone: Some(format!("zone-{}", number % 3)),
        ..waits(number)
    }
}

/// A status with these members, and rows for the first hundred of them that are not done.
fn status(members: Vec<Member>) -> Value {
    let under_way = members.iter().find(|member| member.is_under_way()).map(|one| one.node.clone());
    let done = members.iter().filter(|member| member.step == MemberStep::Finished).count();
    let left = members.iter().filter(|member| member.step != MemberStep::Finished).take(100);
    let row = |member: &Member| NodeReport {
        name: member.node.clone(),
        phase: Some("schedule-rolling".into()),
        state: Some("running".into()),
        checksum: Some("3".repeat(12)),
        manager_version: Some("0.1.0".into()),
        blocked_by: Some("another_in_progress".into()),
        message: under_way.as_ref().map(|node| format!("{node} is under way; one node at a time")),
        ..NodeReport::default()
    };
    let report = Report {
        phase: "Restarting".into(),
        progress: Some(format!("rolling {done}/{}", members.len())),
        nodes: left.map(row).collect(),
        ..Report::default()
    };
    let restart = Restart {
        request: Request { id: "r1".into(), ..Request::default() },
        started: Time(BEGAN),
        began: None,
        stuck_since: None,
        direction: Direction::Open,
        ending: None,
        once: Once::default(),
        frozen: None,
        members,
    };
    let ledger = Ledger { restart: Some(restart), ..Ledger::default() };
    let status = SearchClusterStatus { observed_generation: Some(1), report, ledger };
    serde_json::to_value(&status).unwrap()
}

/// Bytes of the change, and of them those that are not of the table of nodes.
fn bytes(before: &Value, after: &Value) -> (usize, usize) {
    let patch = difference(before, after).expect("a small change");
    assert_eq!(&apply(&patch, before).expect("it fits"), after);
    let table = place(["status", "nodes"]);
    let is_row = |part: &&PatchOperation| part.path().starts_with(&table);
    let rows: usize = patch.iter().filter(is_row).map(|part| part.to_string().len()).sum();
    let whole = serde_json::to_string(&patch).unwrap().len();
    (whole, whole - rows)
}

/// One is done, and the next has the slot.
#[test] // proves RESTART-23
fn a_slot_of_two_thousand_nodes_is_a_small_write() {
    for done in [0, NODES / 2, NODES - 200] {
        let turn = |at: u64| -> Vec<Member> {
            let is_done = |number| has_a_slot(number, BEGAN + number).done(Ending::done());
            let members = (0..at).map(is_done).chain([has_a_slot(at, BEGAN + 60_000 * at)]);
            members.chain((at + 1..NODES).map(waits)).collect()
        };
        let (whole, ledger) = bytes(&status(turn(done)), &status(turn(done + 1)));
        println!("{done} done: {whole} bytes, without the table of nodes {ledger}");
        assert!(ledger < 2_000 && whole < 14_000, "{whole} bytes, {ledger} without the table");
    }
}

/// Each node of a coordinated restart is done alone.
#[test] // proves RESTART-23
fn a_step_of_one_of_two_thousand_nodes_that_are_stopped_together_is_a_small_write() {
    for done in [0, 1, NODES / 2, NODES - 200] {
        let turn = |at: u64| -> Vec<Member> {
            let is_done = |number| has_a_slot(number, BEGAN).done(Ending::done());
            (0..at)
                .map(is_done)
                .chain((at..NODES).map(|number| has_a_slot(number, BEGAN)))
                .collect()
        };
        let (whole, ledger) = bytes(&status(turn(done)), &status(turn(done + 1)));
        println!("{done} done: {whole} bytes, without the table of nodes {ledger}");
        assert!(ledger < 2_000 && whole < 14_000, "{whole} bytes, {ledger} without the table");
    }
}
