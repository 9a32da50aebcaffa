//! What is written is read back, and 10,000 nodes fit.

use std::collections::BTreeMap;

use crate::{
    AllocationBefore, AllocationDebt, Change, Compensation, Ending, Ledger, MAX_MEMBERS, Member,
    MemberStep, MemberUpdate, Outcome, PodPatch, PodUpdate, Request, Restart, Time,
};
use stayput_api::ConfigChoice;
use stayput_pod_update::UpdateStep;

const NODES: u64 = 10_000;
/// The largest object that etcd takes is 1.5 MiB. The rest is for metadata, spec and report.
const MOST: usize = 1_200_000;

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

#[test]
fn ten_thousand_nodes_fit_wherever_the_restart_is() {
    for done in [0, 1, NODES / 2, NODES - 10, NODES] {
        let next = (done + 10).min(NODES);
        let members = (0..done).map(is_done).chain((done..next).map(under_way));
        let ledger = ledger(members.chain((next..NODES).map(waits)).collect());
        let text = text(&ledger);
        assert!(text.len() < MOST, "{} bytes with {done} done", text.len());
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
    }
}

/// What changes of a pod is needed while it holds a slot; then only its step is kept.
#[test]
fn ten_thousand_nodes_that_are_updated_a_hundred_at_a_time_fit() {
    for done in [0, NODES / 2, NODES - 100, NODES] {
        let next = (done + 100).min(NODES);
        let turns = (done..next)
            .map(|number| Member { update: Some(changed(number)), ..under_way(number) });
        let members = (0..done).map(is_updated).chain(turns).chain((next..NODES).map(waits));
        let ledger = ledger(members.collect());
        let text = text(&ledger);
        assert!(text.len() < 1_350_000, "{} bytes with {done} done", text.len());
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
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
        let pod = if number % 2 == 0 { waits(number).pod } else { "another-name".into() };
        let member = Member { pod, update: Some(update), ..under_way(number) };
        members.push(member.done(Ending::done()));
        kept.push(left);
    }
    let written = text(&ledger(members));
    let whole: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(whole["restart"]["members"], serde_json::json!([]), "each has a line of its own");
    let read = serde_json::from_str::<Ledger>(&written).unwrap().restart.unwrap();
    assert_eq!(read.members.iter().map(|one| one.done_by).collect::<Vec<_>>(), kept);
    let damaged = written.replace("+replace", "+repair");
    assert!(serde_json::from_str::<Ledger>(&damaged).is_err(), "a step that is none");
}

/// A coordinated restart has them all under way at once.
#[test] // proves RESTART-22
fn ten_thousand_nodes_that_are_stopped_together_fit() {
    let together = |number: u64| Member {
        since: Time(1_795_000_000_000),
        stop_sequence: 1_002 + 2 * (number % 7),
        start_sequence: 1_004 + 2 * (number % 7),
        master_eligible: number < 3,
        roles: ["data_hot", "data_content", "ingest"].map(str::to_owned).into(),
        zone: Some(format!("zone-{}", number % 3)),
        ..under_way(number)
    };
    let ledger = ledger((0..NODES).map(together).collect());
    let text = text(&ledger);
    assert!(text.len() < 1_350_000, "{} bytes", text.len());
    assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
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
    const MEBIBYTE: usize = 1 << 20;
    let nodes = MAX_MEMBERS as u64;
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
        let mut ledger = ledger((0..nodes).map(member).collect());
        let holders = (0..nodes).map(uid).collect();
        let before = AllocationBefore::default();
        ledger.debts.allocation = Some(AllocationDebt { restart: "r1".into(), before, holders });
        let text = text(&ledger);
        assert!(text.len() < MEBIBYTE, "{} bytes while {state}", text.len());
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger, "{state}");
    }
}

#[test]
fn a_member_with_more_to_say_is_written_whole() {
    let ending = Ending { outcome: Outcome::Aborted, reason: "late".into() };
    let members = vec![
        Member { given_back: 1, ..waits(0) },
        Member { absent_since: Some(Time(1)), ..waits(1) },
        Member { since: Time(7), ..waits(2) },
        Member { pod: "another-name".into(), ..waits(3) },
        Member { pod: "another-name".into(), ..is_done(4) },
        Member { ending: Some(ending.clone()), step: MemberStep::Finished, ..waits(5) },
        Member { ending: Some(ending), ..is_done(6) },
        Member { expected: Some("4".into()), ..is_done(7) },
        // The pod of a member was replaced after that was done.
        is_done(8),
        Member { pod_uid: uid(20), ..is_done(8) },
        waits(9),
        Member { pod_uid: uid(20), ..waits(9) },
        Member { given_back: 1, ..under_way(10) },
        Member { ephemeral_id: None, node_id: None, expected: None, ..under_way(11) },
        Member { pod: "another-name".into(), ..under_way(12) },
        Member { pod_uid: uid(30), ..under_way(12) },
        Member { silent_since: Some(Time(1)), ..under_way(13) },
    ];
    let ledger = ledger(members);
    assert_eq!(serde_json::from_str::<Ledger>(&text(&ledger)).unwrap(), ledger);
}

/// The version before wrote every member whole.
#[test] // proves RESTART-22
fn a_ledger_whose_members_are_all_whole_goes_on() {
    let ledger = ledger(vec![is_done(0), under_way(1), waits(2)]);
    let mut old = serde_json::to_value(&ledger).unwrap();
    let restart = old["restart"].as_object_mut().unwrap();
    for field in ["scheduled", "restarting", "done"] {
        restart.remove(field);
    }
    let members = &ledger.restart.as_ref().unwrap().members;
    restart.insert("members".into(), serde_json::to_value(members).unwrap());
    assert_eq!(serde_json::from_value::<Ledger>(old).unwrap(), ledger);
}

#[test]
fn a_damaged_line_is_refused() {
    let written = text(&ledger(vec![is_done(0)]));
    let damaged = written.replace(" 1002 1004", " 1002");
    let error = serde_json::from_str::<Ledger>(&damaged).unwrap_err().to_string();
    assert!(error.contains("the entry of logs-production-hot-00000 is damaged"), "{error}");
}
