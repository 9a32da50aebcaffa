//! What is written is read back, and a restart of the most nodes fits.

use std::collections::BTreeMap;

use crate::{
    AllocationBefore, AllocationDebt, Change, Compensation, Ending, Ledger, MAX_MEMBERS, Member,
    MemberStep, MemberUpdate, Outcome, PodPatch, PodUpdate, Request, Restart, Time,
};
use serde_json::json;
use stayput_api::ConfigChoice;
use stayput_pod_update::UpdateStep;

const NODES: u64 = MAX_MEMBERS as u64;
const MEBIBYTE: usize = 1 << 20;

fn uid(number: u64) -> String {
    format!("5f0c9a3e-7d1b-4c52-9e0a-{number:012x}")
}

fn waits(number: u64) -> Member {
    let name = format!("logs-production-hot-{number:05}");
    Member {
        pod_uid: uid(number),
        pod: name.clone(),
        node: name,
        since: Time(1_795_000_000_000),
        ..Member::default()
    }
}

fn under_way(number: u64) -> Member {
    Member {
        step: MemberStep::Restarting,
        since: Time(1_795_000_000_000 + number),
        stop_sequence: 1_002,
        start_sequence: 1_004,
        expected: Some("3".repeat(64)),
        ephemeral_id: Some("q3nHcW8OQ1yJ0k5pC6Zb1g".into()),
        node_id: Some("Zt7vXk1hTkSg0aPq9cR2Lw".into()),
        ..waits(number)
    }
}

fn is_done(number: u64) -> Member {
    under_way(number).done(Ending::done())
}

/// What changes of a pod that gets another image and another size.
fn changed(number: u64) -> Box<MemberUpdate> {
    let image =
        |tag: &str| format!("registry.example.com/search/opensearch:{tag}@sha256:{tag:0>64}");
    let size = |memory: &str| {
        let amounts = format!("{{\"cpu\":\"8\",\"memory\":\"{memory}\"}}");
        format!("{{\"limits\":{amounts},\"requests\":{amounts}}}")
    };
    let change = |seen, wanted| {
        let change = Change { seen: Some(seen), wanted: Some(wanted) };
        BTreeMap::from([("opensearch".to_owned(), change)])
    };
    let update = PodUpdate {
        new_container: true,
        data_elsewhere: false,
        settings: None,
        from: "logs-production-hot-5d8f7c9b4d".into(),
        to: "logs-production-hot-7c66b9f5b8".into(),
        step: UpdateStep::Resize,
        because: vec![format!(
            "spec.containers[opensearch].resources {} → {}",
            size("64Gi"),
            size("96Gi")
        )],
        patch: PodPatch {
            images: change(image("2.19.3"), image("2.19.4")),
            resources: change(size("64Gi"), size("96Gi")),
            ..PodPatch::default()
        },
    };
    Box::new(MemberUpdate {
        update,
        container_id: Some(format!("containerd://{number:064x}")),
        heap: Some(31 << 30),
        claims: [format!("data-logs-production-hot-{number:05}")].into(),
        claim_uids: [(
            format!("data-logs-production-hot-{number:05}"),
            format!("3f2504e0-4f89-11d3-9a0c-{number:012}"),
        )]
        .into(),
        others: Default::default(),
        given_up_id: None,
        given_up: Default::default(),
        stays: Default::default(),
        late_since: None,
        hindered_since: None,
    })
}

fn is_updated(number: u64) -> Member {
    Member { update: Some(changed(number)), ..under_way(number) }.done(Ending::done())
}

fn ledger(members: Vec<Member>) -> Ledger {
    let restart = Restart {
        request: Request { id: "r1".into(), ..Request::default() },
        started: Time(1_795_000_000_000),
        began: None,
        stuck_since: None,
        direction: crate::Direction::Open,
        ending: None,
        once: crate::Once::default(),
        frozen: None,
        members,
    };
    Ledger { restart: Some(restart), ..Ledger::default() }
}

fn text(ledger: &Ledger) -> String {
    serde_json::to_string(ledger).unwrap()
}

/// The ledger is read back from less than a mebibyte.
fn fits(ledger: &Ledger, state: &str) {
    let text = text(ledger);
    assert!(text.len() < MEBIBYTE, "{} bytes while {state}", text.len());
    assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), *ledger, "{state}");
}

/// Of a coordinated restart, whatever happens to all of its nodes at once.
fn all_at_once(number: u64) -> Member {
    Member {
        since: Time(1_795_000_000_000),
        roles: ["data_hot", "data_content", "ingest", "transform"].map(str::to_owned).into(),
        zone: Some(format!("zone-{}", number % 3)),
        ..under_way(number)
    }
}

#[test] // proves RESTART-22
fn the_most_nodes_of_a_restart_fit_into_a_mebibyte_in_every_state() {
    let reason = |number: u64| {
        let engine = "x".repeat(400);
        format!(
            "logs-production-hot-{number:05}: not started in time: its engine is failed: {engine}"
        )
    };
    let brought_back = |number: u64, reason: String| Member {
        step: MemberStep::Aborting,
        compensation: Some(Compensation {
            stop_sequence: Some(1_005),
            start_sequence: 1_006,
            config: ConfigChoice::LastGood,
        }),
        ending: Some(Ending { outcome: Outcome::RolledBack, reason }),
        ..all_at_once(number)
    };
    let states: [(&str, &dyn Fn(u64) -> Member); 8] = [
        ("they wait", &waits),
        ("they are stopped together", &all_at_once),
        ("they are turned back together", &|number| brought_back(number, reason(0))),
        ("they give their slots back together", &|number| Member {
            step: MemberStep::GivingBack,
            given_back: 3,
            ..brought_back(number, "paused (spec.paused): nothing is stopped".into())
        }),
        ("all have ended together", &|number| Member {
            step: MemberStep::Finished,
            compensation: None,
            ..brought_back(number, reason(0))
        }),
        ("all are done without a turn", &|number| {
            let reason = "its engine was started after the request".into();
            waits(number).done(Ending { outcome: Outcome::Done, reason })
        }),
        ("all are done", &is_done),
        ("all have gone through an update", &is_updated),
    ];
    for (state, member) in states {
        let mut ledger = ledger((0..NODES).map(member).collect());
        let holders = (0..NODES).map(uid).collect();
        let before = AllocationBefore::default();
        ledger.debts.allocation = Some(AllocationDebt { restart: "r1".into(), before, holders });
        fits(&ledger, state);
    }
}

/// The change of a pod is needed while it holds a slot; then only its step is kept.
#[test] // proves RESTART-22
fn so_do_those_of_which_a_thousand_are_updated_at_once() {
    for done in [0, NODES / 2] {
        let next = done + 1_000;
        let turns = (done..next)
            .map(|number| Member { update: Some(changed(number)), ..under_way(number) });
        let members = (0..done).map(is_updated).chain(turns).chain((next..NODES).map(waits));
        fits(&ledger(members.collect()), &format!("{done} are done"));
    }
}

#[test]
fn the_step_of_a_node_that_is_done_is_kept() {
    let steps = [
        (UpdateStep::Restart, None),
        (UpdateStep::Container, Some(UpdateStep::Container)),
        (UpdateStep::Resize, Some(UpdateStep::Resize)),
        (UpdateStep::Replace, Some(UpdateStep::Replace)),
    ];
    let (mut members, mut kept) = (Vec::new(), Vec::new());
    for (number, (step, left)) in (0..).zip(steps) {
        let mut update = changed(number);
        update.update.step = step;
        let member = Member { update: Some(update), ..under_way(number) };
        members.push(member.done(Ending::done()));
        kept.push(left);
    }
    let read = serde_json::from_str::<Ledger>(&text(&ledger(members))).unwrap().restart.unwrap();
    assert_eq!(read.members.iter().map(|one| one.done_by).collect::<Vec<_>>(), kept);
}

#[test]
fn a_reason_is_written_once() {
    let reason = "its engine is failed: java.lang.OutOfMemoryError";
    let aborts = |number: u64, reason: &str| Member {
        ending: Some(Ending { outcome: Outcome::Aborted, reason: reason.into() }),
        ..under_way(number)
    };
    let members = vec![aborts(0, reason), aborts(1, reason), aborts(2, "late"), waits(3)];
    let ledger = ledger(members);
    let written = text(&ledger);
    assert_eq!(written.matches(reason).count(), 1, "{written}");
    assert_eq!(serde_json::from_str::<Ledger>(&written).unwrap(), ledger);
}

/// A member that changes changes no other one.
#[test]
fn the_number_of_a_value_depends_on_nothing_else() {
    let value = |ledger: &Ledger| serde_json::to_value(ledger).unwrap()["restart"].take();
    let ending = Ending { outcome: Outcome::Aborted, reason: "late".into() };
    let before = value(&ledger(vec![under_way(0), under_way(1)]));
    let after = value(&ledger(vec![
        Member { ending: Some(ending), expected: Some("4".into()), ..under_way(0) },
        under_way(1),
    ]));
    assert_eq!(before["members"][1], after["members"][1]);
    assert_ne!(before["members"][0], after["members"][0]);
}

/// By hand, or by a program that knows no numbers.
#[test]
fn a_value_may_be_written_where_it_belongs() {
    let ledger = ledger(vec![is_done(0), under_way(1), waits(2)]);
    let mut whole = serde_json::to_value(&ledger).unwrap();
    let restart = whole["restart"].as_object_mut().unwrap();
    restart.remove("shared");
    let members = &ledger.restart.as_ref().unwrap().members;
    restart.insert("members".into(), serde_json::to_value(members).unwrap());
    assert_eq!(serde_json::from_value::<Ledger>(whole).unwrap(), ledger);
}

#[test]
fn a_number_without_a_value_is_refused() {
    let mut written = serde_json::to_value(ledger(vec![under_way(0)])).unwrap();
    written["restart"]["shared"] = json!({});
    let error = serde_json::from_value::<Ledger>(written).unwrap_err().to_string();
    assert!(error.contains("/expected of a member is"), "{error}");
}

/// A person can write anything into the ledger: the apiserver does not know its form.
#[test]
fn members_that_are_no_objects_are_refused() {
    for member in [json!("logs-0"), json!(7), json!(["logs-0"]), json!(null), json!({})] {
        let mut written = serde_json::to_value(ledger(vec![under_way(0)])).unwrap();
        written["restart"]["members"] = json!([member]);
        assert!(serde_json::from_value::<Ledger>(written).is_err(), "{member}");
    }
}

/// The numbers of these two checksums are the same.
#[test]
fn a_value_whose_number_another_one_has_is_written_whole() {
    let with =
        |number, expected: &str| Member { expected: Some(expected.into()), ..under_way(number) };
    let ledger = ledger(vec![with(0, "3d6566b5"), with(1, "b4b32596")]);
    let written = serde_json::to_value(&ledger).unwrap();
    assert_eq!(written["restart"]["members"][1]["expected"], "b4b32596");
    assert_eq!(serde_json::from_value::<Ledger>(written).unwrap(), ledger);
}
