//! The estimate from made-up ledgers: its value, its limits, and how often its text changes.

use super::*;
use crate::Strategy;
use crate::{Ending, Member, Outcome, Request};

/// Ten nodes, the first of which began at 1,000 s; those done ended at these seconds.
fn restart(ends: &[u64]) -> Restart {
    let member = |at: usize| match ends.get(at) {
        Some(end) => Member {
            step: MemberStep::Finished,
            since: Time(end * 1000),
            stop_sequence: 1,
            ..Member::default()
        },
        None => Member::default(),
    };
    Restart {
        request: Request { strategy: Strategy::Rolling, ..Request::default() },
        started: Time(0),
        began: Some(Time(1_000_000)),
        stuck_since: None,
        direction: Direction::default(),
        ending: None,
        once: Default::default(),
        frozen: None,
        members: (0..10).map(member).collect(),
    }
}

fn estimate_at(restart: &Restart, seconds: u64) -> Option<String> {
    Estimate::of(restart, Time(seconds * 1000)).map(|estimate| estimate.to_string())
}

#[test]
fn the_pace_so_far_is_the_pace_to_come() {
    let three = restart(&[1_120, 1_240, 1_360]);
    let shows =
        |seconds, text: &str| assert_eq!(estimate_at(&three, seconds).as_deref(), Some(text));
    shows(1_360, "about 15 minutes left, estimated from 3 of 10 nodes");
    shows(1_420, "about 15 minutes left, estimated from 3 of 10 nodes");
    // The node under way takes longer than others did: not less than what the others will take.
    shows(1_480, "about 15 minutes left, estimated from 3 of 10 nodes");
    shows(1_700, "about 15 minutes left, estimated from 3 of 10 nodes");
    assert_eq!(estimate_at(&three, 1_721), None, "it is stuck: like nothing before");
    let one = restart(&[1_090]);
    assert_eq!(
        estimate_at(&one, 1_090).unwrap(),
        "about 15 minutes left, estimated from 1 of 10 nodes"
    );
    let nine = restart(&[1_100, 1_200, 1_300, 1_400, 1_500, 1_600, 1_700, 1_800, 1_900]);
    assert_eq!(
        estimate_at(&nine, 1_900).unwrap(),
        "about 2 minutes left, estimated from 9 of 10 nodes"
    );
    assert_eq!(
        estimate_at(&nine, 1_950).unwrap(),
        "less than a minute left, estimated from 9 of 10 nodes"
    );
}

#[test]
fn nodes_that_go_together_count_by_what_they_achieve() {
    let batches = restart(&[1_300, 1_300, 1_300, 1_600, 1_600, 1_600]);
    let text = "about 7 minutes left, estimated from 6 of 10 nodes";
    assert_eq!(estimate_at(&batches, 1_600).as_deref(), Some(text));
}

#[test]
fn nothing_is_said_where_nothing_can_be() {
    assert_eq!(estimate_at(&restart(&[]), 1_100), None, "nobody is done");
    assert_eq!(estimate_at(&restart(&[1_100; 10]), 1_100), None, "everybody is");
    let with = |change: fn(&mut Restart)| {
        let mut restart = restart(&[1_100]);
        change(&mut restart);
        estimate_at(&restart, 1_100)
    };
    assert!(with(|_| ()).is_some());
    assert_eq!(with(|one| one.request.strategy = Strategy::Coordinated), None);
    assert_eq!(with(|one| one.direction = Direction::Back), None);
    assert_eq!(with(|one| one.began = None), None, "from a ledger of before");
    assert_eq!(with(|one| one.members[0].stop_sequence = 0), None, "it was withdrawn");
    assert_eq!(
        with(|one| {
            one.ending = Some(Ending { outcome: Outcome::Aborted, reason: String::new() });
        }),
        None
    );
}

#[test]
fn clocks_that_jump_do_no_harm() {
    let back = restart(&[500, 900]);
    assert_eq!(
        estimate_at(&back, 10).as_deref(),
        Some("less than a minute left, estimated from 2 of 10 nodes")
    );
    assert_eq!(
        estimate_at(&restart(&[u64::MAX / 1000]), u64::MAX / 1000).unwrap().split(' ').nth(2),
        Some("days")
    );
}

#[test]
fn it_changes_in_steps_however_often_one_looks() {
    let (mut changes, mut before) = (0, None);
    for done in 1..10 {
        let ends: Vec<u64> = (1..=done).map(|n| 1_000 + n * 180).collect();
        let restart = restart(&ends);
        let mut least = u64::MAX;
        for second in 0..180 {
            let now = Time((1_000 + done * 180 + second) * 1000);
            let estimate = Estimate::of(&restart, now).unwrap();
            assert!(estimate.left <= least, "it goes down while a node is under way");
            least = estimate.left;
            let text = Some(estimate.to_string());
            changes += usize::from(text != before);
            before = text;
        }
    }
    // 27 minutes, observed 1,620 times; the end of each node is a write of the ledger anyway.
    assert!((9..=27).contains(&changes), "{changes}");
}

#[test]
fn the_longer_the_coarser() {
    let left = |left| Estimate { left, done: 1, nodes: 2 }.left();
    for (milliseconds, text) in [
        (0, "less than a minute left"),
        (MINUTE, "less than a minute left"),
        (MINUTE + 1, "about 2 minutes left"),
        (10 * MINUTE, "about 10 minutes left"),
        (10 * MINUTE + 1, "about 15 minutes left"),
        (HOUR, "about 60 minutes left"),
        (HOUR + 1, "about 75 minutes left"),
        (3 * HOUR, "about 180 minutes left"),
        (3 * HOUR + 1, "about 4 hours left"),
        (2 * DAY, "about 48 hours left"),
        (2 * DAY + 1, "about 3 days left"),
    ] {
        assert_eq!(left(milliseconds), text, "{milliseconds}");
    }
}
