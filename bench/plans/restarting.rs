//! The ledger of a restart, and how pods show it.

use std::collections::BTreeMap;

use stayput_restart::{
    Direction, Member, MemberStep, Once, Request, Restart, Snapshot, Strategy, annotation,
};

use crate::quiet::{ID, NOW, at_rest, by_name, checksum, name, node_id, uid};

pub(super) fn member(number: usize, step: MemberStep) -> Member {
    Member {
        pod_uid: uid(number),
        pod: name(number),
        node: name(number),
        step,
        since: NOW,
        stop_sequence: 3,
        start_sequence: 4,
        expected: Some(checksum(1)),
        ephemeral_id: Some(format!("before-{number}")),
        node_id: Some(node_id(number)),
        ..Member::default()
    }
}

/// A rolling restart of all nodes, of which this many are done.
pub(super) fn rolling(nodes: usize, done: usize) -> Snapshot {
    let members = by_name(nodes).map(|number| {
        if number < done {
            return member(number, MemberStep::Finished);
        }
        Member {
            pod_uid: uid(number),
            pod: name(number),
            node: name(number),
            since: NOW,
            ..Member::default()
        }
    });
    let mut snapshot = at_rest(nodes);
    snapshot.ledger.restart = Some(restart(Strategy::Rolling, members.collect()));
    snapshot
}

pub(super) fn restart(strategy: Strategy, members: Vec<Member>) -> Restart {
    Restart {
        request: Request { id: ID.into(), strategy, ..Request::default() },
        started: NOW,
        began: None,
        stuck_since: None,
        direction: Direction::Open,
        ending: None,
        once: Once::default(),
        frozen: None,
        members,
    }
}

/// The annotations of every pod agree with the ledger.
pub(super) fn shown(mut snapshot: Snapshot) -> Snapshot {
    let Some(restart) = &snapshot.ledger.restart else { return snapshot };
    let word = |step: MemberStep| match step {
        MemberStep::Scheduled => Some("schedule-rolling"),
        MemberStep::Restarting | MemberStep::GivingBack | MemberStep::Aborting => Some("stop"),
        MemberStep::Finished => None,
    };
    let words: BTreeMap<&str, Option<&str>> =
        restart.members.iter().map(|member| (member.pod_uid.as_str(), word(member.step))).collect();
    for pod in &mut snapshot.pods {
        if let Some(word) = words.get(pod.uid.as_str()).copied().flatten() {
            pod.annotations.insert(annotation::PHASE.into(), word.into());
            pod.annotations.insert(annotation::SHOWN.into(), format!("{ID} {word}"));
        }
    }
    snapshot
}
