//! The only result of a step that is refused is the reason to wait.

mod waits;

use std::collections::BTreeSet;

use super::scenario::moment;
use crate::changes::{Changes, Draft, PlanStep, Run};
use crate::context::Context;
use crate::flow::{each_step, names};
use crate::{
    AllocationBefore, AllocationDebt, Code, Direction, ExclusionDebt, Ledger, Marker, Outcome,
    PodPatch, PodUpdate, Reason, RecordDebt, Snapshot, StartDebt, UpdateStep,
};
use stayput_api::ConfigChoice;

/// A situation in which a step is refused.
struct Refused {
    step: &'static str,
    /// The script that leads there, after its cluster.
    script: &'static [&'static str],
    /// What else is different there.
    but: fn(&mut Snapshot),
    /// The reason to wait.
    code: Code,
    /// The event that reports the refusal itself, if it has one.
    reported: Option<Reason>,
}

const NOTHING_ELSE: fn(&mut Snapshot) = |_| {};

/// Every step that can be refused.
const REFUSED: &[Refused] = &[
    Refused {
        step: "claim_phase",
        script: &["one node", "annotate cluster restart-phase stop"],
        but: NOTHING_ELSE,
        code: Code::InvalidInput,
        reported: Some(Reason::InputIgnored),
    },
    Refused {
        step: "accept_request",
        script: &["one node", "annotate cluster restart-request nonsense"],
        but: NOTHING_ELSE,
        code: Code::InvalidInput,
        reported: Some(Reason::InputIgnored),
    },
    Refused {
        step: "accept_operator_phases",
        script: &[
            "one node",
            "eck makes the pods",
            "operator: its object is read",
            "run 1s",
            "operator: annotate restart-phase stop",
        ],
        but: NOTHING_ELSE,
        code: Code::InvalidInput,
        reported: Some(Reason::InputIgnored),
    },
    Refused {
        step: "request_for_drift",
        script: &["one node", "change config logs-0 v2"],
        but: NOTHING_ELSE,
        code: Code::PendingRestart,
        reported: None,
    },
    Refused {
        step: "request_for_update",
        script: &["one node", "policy update relabel,restart"],
        but: |snapshot| {
            snapshot.pods[0].update = Ok(Some(PodUpdate {
                from: "logs-1".into(),
                to: "logs-2".into(),
                step: UpdateStep::Replace,
                because: vec!["spec.affinity".into()],
                new_container: false,
                data_elsewhere: false,
                settings: None,
                patch: PodPatch::default(),
            }));
        },
        code: Code::UpdateNotAllowed,
        reported: None,
    },
    Refused {
        step: "open_queued",
        script: &["one node", "engine unreachable", "request rolling r1 role data", "run 1s"],
        but: NOTHING_ELSE,
        code: Code::EngineUnreachable,
        reported: None,
    },
    Refused {
        step: "apply_people_changes",
        script: &[
            "two nodes",
            "policy allowOutage",
            "request rolling r1 nodes logs-0",
            "run 1s",
            "annotate pod logs-1 restart-phase schedule-coordinated",
        ],
        but: NOTHING_ELSE,
        code: Code::NotItsTurn,
        reported: None,
    },
    Refused {
        step: "apply_people_changes",
        script: &["one node", "annotate pod logs-0 restart-phase nonsense"],
        but: NOTHING_ELSE,
        code: Code::InvalidInput,
        reported: Some(Reason::InputIgnored),
    },
    Refused {
        step: "pay_starts",
        script: &["one node", "disconnect manager logs-0"],
        but: |snapshot| {
            snapshot.ledger.debts.start.push(StartDebt {
                pod_uid: snapshot.pods[0].uid.clone(),
                node: "logs-0".into(),
                stop_sequence: None,
                sequence: 7,
                config: ConfigChoice::Mounted,
                checksum: None,
                absent_since: None,
                since: Some(snapshot.now),
                update: None,
            });
        },
        code: Code::ManagerUnreachable,
        reported: None,
    },
    Refused {
        step: "pay_allocation",
        script: &["one node", "engine unreachable"],
        but: |snapshot| {
            let before = AllocationBefore::default();
            let debt = AllocationDebt { restart: "r0".into(), before, holders: Vec::new() };
            snapshot.ledger.debts.allocation = Some(debt);
        },
        code: Code::Debts,
        reported: None,
    },
    Refused {
        step: "pay_records",
        script: &["one node", "engine unreachable"],
        but: |snapshot| {
            snapshot.ledger.debts.records.push(RecordDebt {
                node_id: "id".into(),
                node: "logs-0".into(),
                pod_uid: "gone".into(),
                restart: "r0".into(),
            });
        },
        code: Code::Debts,
        reported: None,
    },
    Refused {
        step: "pay_exclusion",
        script: &["one node", "engine unreachable"],
        but: |snapshot| {
            snapshot.ledger.debts.exclusion = Some(ExclusionDebt {
                node: "logs-0".into(),
                pod_uid: "gone".into(),
                restart: "r0".into(),
            });
        },
        code: Code::Debts,
        reported: None,
    },
    Refused {
        step: "advance_member",
        script: &[
            "three nodes",
            "config of logs-2 does not arrive",
            "change config logs-* v2",
            "request rolling r1",
            "run 1s",
        ],
        but: NOTHING_ELSE,
        code: Code::ConfigNotMounted,
        reported: None,
    },
    Refused {
        // Everything is prepared, and a copy is being moved, which ends by itself.
        step: "advance_member",
        script: &["three nodes", "request rolling r1", "run until logs-2 is stopping"],
        but: |snapshot| {
            back_to_its_stop(snapshot);
            let engine = snapshot.engine.as_mut().unwrap();
            engine.health.as_mut().unwrap().relocating = 1;
        },
        code: Code::Predicate(crate::Predicate::Yellow),
        reported: None,
    },
    Refused {
        step: "choose_next",
        script: &["one node", "request rolling r1", "pause", "run 200ms"],
        but: NOTHING_ELSE,
        code: Code::Paused,
        reported: None,
    },
    Refused {
        // The only master: the quorum would be lost.
        step: "choose_next",
        script: &["one node", "pause", "request rolling r1", "run 200ms", "resume"],
        but: NOTHING_ELSE,
        code: Code::Quorum,
        reported: Some(Reason::RestartSkipped),
    },
    Refused {
        // A zone of which one node may not be stopped.
        step: "choose_next",
        script: &[
            "logs-0:master+data@a logs-1:data@b logs-2:data@b",
            "pause",
            "request rolling r1 zone b",
            "run 200ms",
            "resume",
            "disconnect manager logs-2",
        ],
        but: NOTHING_ELSE,
        code: Code::ManagerUnreachable,
        reported: None,
    },
    Refused {
        // A zone whose nodes may all be stopped, until allocation turns out to be limited by
        // another client.
        step: "choose_next",
        script: &[
            "logs-0:master@a logs-1:data@b logs-2:data@a logs-3:data@a",
            "pause",
            "request rolling r1 zone b",
            "run 200ms",
            "resume",
        ],
        but: marked_by_another,
        code: Code::ForeignController,
        reported: None,
    },
    Refused {
        step: "begin_all",
        script: &["three nodes", "pause", "request coordinated r1", "run 200ms"],
        but: NOTHING_ELSE,
        code: Code::Paused,
        reported: None,
    },
    Refused {
        // All may begin, until allocation turns out to be limited by another client.
        step: "begin_all",
        script: &["three nodes", "pause", "request coordinated r1", "run 200ms", "resume"],
        but: marked_by_another,
        code: Code::ForeignController,
        reported: None,
    },
    Refused {
        step: "stop_all",
        script: &[
            "three nodes",
            "config of logs-2 does not arrive",
            "change config logs-* v2",
            "request coordinated r1",
            "run 1s",
        ],
        but: NOTHING_ELSE,
        code: Code::ConfigNotMounted,
        reported: None,
    },
    Refused {
        step: "start_all",
        script: &[
            "one node",
            "request coordinated r1",
            "run until logs-0 is starting",
            "disconnect manager logs-0",
        ],
        but: NOTHING_ELSE,
        code: Code::ManagerUnreachable,
        reported: None,
    },
    Refused {
        step: "keep_stopped",
        script: &["one node", "pause", "keep logs-0 stopped"],
        but: NOTHING_ELSE,
        code: Code::Paused,
        reported: None,
    },
];

/// Steps that are never refused: they report, repair what they can, or write down what is so.
const NEVER_REFUSED: [&str; 22] = [
    "accept_cancel",
    "adopt_phases",
    "correct_times",
    "delete_late_records",
    "end_at_deadline",
    "end_for_deletion",
    "end_one_by_one",
    "expect_late_requests",
    "finish_restart",
    "forget_replaced",
    // What it waits for is reported by `report_leaving`.
    "leave",
    "move_labels",
    "release_finalizer",
    "remember_configs",
    "remember_ignored_changes",
    "report_leaving",
    "report_progress",
    "report_queued",
    "report_unknown_names",
    "show_phases",
    // What it waits for is reported by `pay_starts`.
    "start_put_back",
    // What it waits for is reported by `start_all`.
    "supersede",
];

/// Another SearchCluster has limited allocation.
fn marked_by_another(snapshot: &mut Snapshot) {
    let allocation = snapshot.engine.as_mut().unwrap().allocation.as_mut().unwrap();
    allocation.marker = Some(Marker {
        cluster: "search/other".into(),
        restart: "r0".into(),
        before: AllocationBefore::default(),
    });
}

/// The member under way is prepared for its stop, which was not sent yet.
fn back_to_its_stop(snapshot: &mut Snapshot) {
    let uid = snapshot.ledger.under_way().next().unwrap().pod_uid.clone();
    let pod = snapshot.pods.iter_mut().find(|pod| pod.uid == uid).unwrap();
    let manager = pod.manager.as_mut().unwrap();
    manager.state = stayput_api::State::Running;
    manager.desired = stayput_api::Desired::Running;
    manager.sequence = 0;
    manager.last_request = None;
    pod.ready = true;
    snapshot.flushed.insert(pod.node.clone());
}

/// What a step returns, call by call; it is applied to the draft.
fn changes_of(draft: &mut Draft<'_, '_>, step: &PlanStep) -> Vec<Changes> {
    let context = draft.context();
    let mut all = Vec::new();
    let mut take = |draft: &mut Draft<'_, '_>, changes: Changes| {
        all.push(changes.clone());
        draft.apply(changes);
    };
    match step.run {
        Run::Once(step) => {
            let changes = step(context, draft.ledger());
            take(draft, changes);
        }
        Run::EachPod(step) => {
            for (pod, marks) in context.index.marked_pods() {
                let changes = step(context, draft.ledger(), pod, marks);
                take(draft, changes);
            }
        }
        Run::EachMember(step) => {
            let restart = draft.ledger().restart.clone();
            for (index, member) in restart.iter().flat_map(|one| one.members.iter().enumerate()) {
                let changes =
                    step(context, draft.ledger(), restart.as_ref().unwrap(), index, member);
                take(draft, changes);
            }
        }
    }
    all
}

/// What is wrong with a refusal.
fn complaints(refused: &Refused) -> Vec<String> {
    let Refused { step: name, script, but, code, reported } = refused;
    let (mut snapshot, policy) = moment(script);
    snapshot.cluster.finalizer = true;
    but(&mut snapshot);
    let context = Context::new(&snapshot, &policy);
    let mut found = vec!["it is not taken".to_owned()];
    each_step(&mut Draft::new(&context), |draft, step| {
        if step.name != *name {
            return draft.run(step);
        }
        found.clear();
        let before: Ledger = draft.ledger().clone();
        let all = changes_of(draft, step);
        if *draft.ledger() != before {
            found.push("the ledger is changed".to_owned());
        }
        let mut waits = all.iter().flat_map(|changes| &changes.waits);
        if !waits.any(|wait| wait.code == *code) {
            found.push("it does not wait".to_owned());
        }
        for changes in &all {
            let mut events = changes.events.iter();
            if !changes.actions.is_empty()
                || !changes.patches.is_empty()
                || events.any(|event| Some(event.reason) != *reported)
            {
                found.push("something is done or reported".to_owned());
            }
        }
        if !found.is_empty() {
            found.push(format!("{all:#?}"));
        }
    });
    found.into_iter().map(|one| format!("{name} after {script:?}: {one}")).collect()
}

#[test]
fn a_refused_step_leaves_only_a_reason_to_wait() {
    let found: Vec<String> = REFUSED.iter().flat_map(complaints).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_step_is_refused_here_or_never() {
    let mut covered: BTreeSet<&str> = REFUSED.iter().map(|refused| refused.step).collect();
    covered.extend(NEVER_REFUSED);
    assert_eq!(covered, names().collect());
}

/// A node that is not stopped in time turns all nodes back; the result of another node's turn
/// before it is dropped.
#[test]
fn of_a_coordinated_step_that_turns_back_nothing_else_is_left() {
    let (snapshot, policy) = moment(&[
        "three nodes",
        "config of logs-2 does not arrive",
        "change config logs-* v2",
        "request coordinated r1",
        "run 1s",
        "person stops logs-0",
        "cancel r1",
    ]);
    let context = Context::new(&snapshot, &policy);
    let mut taken = false;
    each_step(&mut Draft::new(&context), |draft, step| {
        let all = changes_of(draft, step);
        if step.name != "stop_all" {
            return;
        }
        taken = true;
        let events: Vec<Reason> = all[0].events.iter().map(|event| event.reason).collect();
        assert_eq!(events, [Reason::RestartAborted]);
        let restart = draft.ledger().restart.as_ref().unwrap();
        assert_eq!(restart.direction, Direction::Back);
        assert_eq!(restart.ending.as_ref().unwrap().outcome, Outcome::Aborted);
        assert!(restart.members.iter().all(|one| one.step == crate::MemberStep::Aborting));
        assert!(all[0].actions.is_empty() && all[0].patches.is_empty());
    });
    assert!(taken);
}
