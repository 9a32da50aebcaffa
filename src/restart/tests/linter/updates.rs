//! Plans of updates, spoiled in one way at a time: for each step what must not happen.

use std::collections::{BTreeMap, BTreeSet};

use super::{has, is_start, is_stop, play_to};
use crate::annotation::ENVIRONMENT;
use crate::tests::lint::lint;
use crate::tests::scenario::play_line;
use crate::tests::{driver::Driver, world::World};
use crate::{
    Action, Change, ContainerWaiting, Ending, LivePod, Member, MemberStep, MemberUpdate, Outcome,
    Plan, Pod, Policy, Reason, Snapshot, UpdateStep,
};
use stayput_api::{Desired, State};

const REVISION: &str = "controller-revision-hash";

/// A correct plan of three nodes, of which the last one is updated.
#[derive(Clone)]
struct CorrectPlan {
    snapshot: Snapshot,
    policy: Policy,
    plan: Plan,
}

impl CorrectPlan {
    /// The first plan after these lines that matches.
    fn of(lines: &[&str], is_it: impl Fn(&Plan, &Snapshot) -> bool) -> Self {
        let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
        let mut driver = Driver::new(World::new(&nodes), Policy::default());
        play_line(&mut driver, "policy update relabel,restart,container,resize,replace");
        lines.iter().for_each(|line| play_line(&mut driver, line));
        let (snapshot, plan) = play_to(&mut driver, is_it);
        Self { snapshot, policy: driver.policy, plan }
    }

    /// The linter reports this fault once the moment is spoiled.
    #[track_caller]
    fn finds(&self, complaint: &str, spoil: impl FnOnce(&mut Self)) {
        let mut spoiled = self.clone();
        spoil(&mut spoiled);
        let found = lint(&spoiled.snapshot, &spoiled.policy, &spoiled.plan);
        let is_found = found.iter().any(|line| line.contains(complaint));
        assert!(is_found, "{complaint:?} not in {found:#?}");
    }

    fn pod(&mut self) -> &mut Pod {
        self.snapshot.pods.iter_mut().find(|pod| pod.name == "logs-2").unwrap()
    }

    fn live(&mut self) -> &mut LivePod {
        self.pod().live.as_mut().unwrap()
    }

    fn member(&mut self) -> &mut Member {
        let members = &mut self.snapshot.ledger.restart.as_mut().unwrap().members;
        members.iter_mut().find(|member| member.node == "logs-2").unwrap()
    }

    fn update(&mut self) -> &mut MemberUpdate {
        self.member().update.as_mut().unwrap()
    }

    fn engine_runs(&mut self) {
        let manager = self.pod().manager.as_mut().unwrap();
        (manager.state, manager.desired) = (State::Running, Desired::Running);
    }

    fn leaves_the_cluster(&mut self) {
        self.snapshot.engine.as_mut().unwrap().nodes.retain(|node| node.name != "logs-2");
    }

    /// The member is written down as done instead of what was planned.
    fn is_called_done(&mut self) {
        let mut ledger = self.snapshot.ledger.clone();
        let members = &mut ledger.restart.as_mut().unwrap().members;
        let member = members.iter_mut().find(|member| member.node == "logs-2").unwrap();
        *member = member.clone().done(Ending::done());
        self.plan.actions = vec![Action::WriteLedger(Box::new(ledger))];
    }
}

fn is_metadata(action: &Action) -> bool {
    matches!(action, Action::PatchMetadata { .. })
}

fn is_delete(action: &Action) -> bool {
    matches!(action, Action::DeletePod { .. })
}

/// The changes that the plan makes of the pod.
fn changes<'p>(
    plan: &'p mut Plan,
    what: &str,
) -> &'p mut std::collections::BTreeMap<String, Change> {
    let found = plan.actions.iter_mut().find_map(|action| match action {
        Action::PatchMetadata { labels, .. } if what == "labels" => Some(labels),
        Action::PatchImages { images, .. } if what == "images" => Some(images),
        Action::Resize { resources, .. } if what == "resources" => Some(resources),
        _ => None,
    });
    found.expect("the plan has such a change")
}

fn exit(plan: &mut Plan) -> &mut bool {
    let found = plan.actions.iter_mut().find_map(|action| match action {
        Action::Stop { exit, .. } => Some(exit),
        _ => None,
    });
    found.expect("the plan has a stop")
}

#[test]
fn a_label_without_what_it_says_is_found() {
    let lines = ["template logs-2 label=b"];
    let moment = CorrectPlan::of(&lines, |made, _| has(made, is_metadata));
    moment.finds("nothing asks for it", |one| {
        one.policy.update.remove(&UpdateStep::Relabel);
    });
    moment.finds("S12: logs-2 is labelled \"x\"", |one| {
        changes(&mut one.plan, "labels").get_mut(REVISION).unwrap().wanted = Some("x".into());
    });
    moment.finds("labelled without its revision", |one| {
        changes(&mut one.plan, "labels").remove(REVISION);
    });
    moment.finds("its revision was not seen as", |one| one.live().revision = "other".into());
    moment.finds("has other images", |one| {
        let lacked = Change { seen: None, wanted: Some("c".into()) };
        let update = one.pod().update.as_mut().unwrap().as_mut().unwrap();
        update.patch.images.insert("sidecar".into(), lacked);
    });
    moment.finds("is changed and was not seen", |one| one.pod().live = None);
    moment.finds("S9: logs-2 is labelled while paused", |one| {
        one.snapshot.cluster.paused = true;
    });
    moment.finds("another SearchCluster selects", |one| {
        one.snapshot.cluster.overlaps.push("b".into());
    });
}

#[test]
fn a_restart_for_a_template_that_is_not_proven_is_found() {
    let stops = CorrectPlan::of(&["template logs-2 asked=b"], |made, _| has(made, is_stop));
    stops.finds("is told to end: true, not false", |one| *exit(&mut one.plan) = true);
    let labels = CorrectPlan::of(&["template logs-2 asked=b"], |made, _| has(made, is_metadata));
    labels.finds("S3: logs-2 is labelled before the proof", CorrectPlan::leaves_the_cluster);
    labels.finds("S3: logs-2 is done and labelled", CorrectPlan::is_called_done);
    labels.finds("S12: logs-2 is labelled \"rev-asked-b\", not other", |one| {
        one.update().update.to = "other".into()
    });
}

#[test] // proves UPDATE-105
fn a_label_of_an_operators_pod_in_the_wrong_moment_is_found() {
    let lines = ["eck makes the pods", "template logs-2 asked=b"];
    let ahead = CorrectPlan::of(&lines, |made, _| has(made, is_metadata));
    let nothing = "S14: logs-2 is labelled ahead, and nothing brings it there";
    ahead.finds(nothing, |one| one.pod().operator = None);
    ahead.finds(nothing, |one| {
        one.policy.update.remove(&UpdateStep::Restart);
    });
    ahead.finds(nothing, |one| {
        one.pod().update.as_mut().unwrap().as_mut().unwrap().step = UpdateStep::Replace;
    });
    ahead.finds("and nobody sets that back", |one| one.snapshot.cluster.finalizer = false);
    ahead.finds("its revision was not seen as", |one| one.live().revision = "other".into());
    let stops = CorrectPlan::of(&lines, |made, _| has(made, is_stop));
    stops.finds("S14: logs-2 is stopped, and its label is old", |one| one.pod().ahead = None);
    let proven = CorrectPlan::of(&lines, |made, snapshot| {
        has(made, is_metadata) && snapshot.ledger.under_way().next().is_some()
    });
    proven.finds("S3: logs-2 is labelled before the proof", CorrectPlan::leaves_the_cluster);
    let lines = ["eck makes the pods", "pause", "template logs-2 asked=b"];
    let mut back =
        CorrectPlan::of(&lines, |_, snapshot| snapshot.pods.iter().any(|pod| pod.ahead.is_some()));
    back.policy.update.clear();
    back.plan = crate::plan(&back.snapshot, &back.policy);
    back.finds("S14: the label of logs-2 goes back, and its update is to come", |one| {
        one.policy.update.insert(UpdateStep::Restart);
    });
}

#[test]
fn a_step_that_is_not_allowed_is_found() {
    let takes_slot = |made: &Plan, _: &Snapshot| {
        made.actions.iter().any(|action| match action {
            Action::WriteLedger(ledger) => ledger.under_way().next().is_some(),
            _ => false,
        })
    };
    for (template, step) in [
        ("template logs-2 asked=b", UpdateStep::Restart),
        ("template logs-2 env=b", UpdateStep::Container),
        ("template logs-2 memory=2Gi", UpdateStep::Resize),
        ("template logs-2 affinity=b", UpdateStep::Replace),
    ] {
        let moment = CorrectPlan::of(&[template], takes_slot);
        let complaint = format!("S12: logs-2 takes a slot for the step {}", step.name());
        moment.finds(&complaint, |one| {
            one.policy.update.remove(&step);
        });
    }
}

#[test]
fn an_image_in_the_wrong_moment_is_found() {
    let is_image = |action: &Action| matches!(action, Action::PatchImages { .. });
    let moment = CorrectPlan::of(&["template logs-2 image=b"], |made, _| has(made, is_image));
    let engine = |one: &mut CorrectPlan, change: &dyn Fn(&mut Change)| {
        change(changes(&mut one.plan, "images").get_mut("engine").unwrap());
    };
    moment.finds("S12: logs-2 is changed before it is stopped", CorrectPlan::engine_runs);
    moment.finds("changed to what its entry does not have", |one| {
        engine(one, &|change| change.wanted = Some("z".into()));
    });
    moment.finds("engine was not seen as", |one| {
        one.live().images.insert("engine".into(), "y".into());
    });
    moment.finds("is changed to nothing else", |one| {
        engine(one, &|change| change.wanted.clone_from(&change.seen));
    });
    moment.finds("its engine may run", |one| one.snapshot.ledger.restart = None);
    moment.finds("S12: logs-2 is GivingBack and is changed", |one| {
        one.member().step = MemberStep::GivingBack;
    });
    moment.finds("S3: logs-2 is done and its pod", CorrectPlan::is_called_done);
}

#[test] // proves UPDATE-112
fn variables_in_the_wrong_moment_are_found() {
    let lines = ["template logs-2 variable=b"];
    let is_variable = |action: &Action| matches!(action, Action::PatchMetadata { annotations, .. } if annotations.contains_key(ENVIRONMENT));
    let moment = CorrectPlan::of(&lines, |made, _| has(made, is_variable));
    moment.finds("S12: logs-2 gets variables before it is stopped", CorrectPlan::engine_runs);
    moment.finds("variables that its entry does not have", |one| {
        one.update().update.patch.variables = None;
    });
    moment.finds("its variables are changed from", |one| {
        one.pod().annotations.insert(ENVIRONMENT.to_owned(), "{}".to_owned());
    });
    moment.finds("its engine may run", |one| {
        one.member().step = MemberStep::Aborting;
        one.engine_runs();
    });
    let starts = CorrectPlan::of(&lines, |made, _| has(made, is_start));
    starts.finds("before its pod is as it is wanted: its variables are not mounted", |one| {
        one.pod().manager.as_mut().unwrap().variables = Some("other".into());
    });
    let labels =
        CorrectPlan::of(&lines, |made, _| has(made, is_metadata) && !has(made, is_variable));
    labels.finds("S3: logs-2 is done and runs with other variables", |one| {
        let manager = one.pod().manager.as_mut().unwrap();
        manager.run.as_mut().unwrap().variables = None;
        one.is_called_done();
    });
}

#[test] // proves RESTART-77
fn a_container_beside_the_managers_that_is_not_made_anew_or_not_ready_is_found() {
    let lines = ["template logs-2 sidecar=b"];
    let is_image = |action: &Action| matches!(action, Action::PatchImages { .. });
    let image = CorrectPlan::of(&lines, |made, _| has(made, is_image));
    image.finds("S12: logs-2 is changed before it is stopped", CorrectPlan::engine_runs);
    image.finds("its engine may run", |one| one.snapshot.ledger.restart = None);
    let starts = CorrectPlan::of(&lines, |made, _| has(made, is_start));
    starts.finds("before its pod is as it is wanted: another container is the old one", |one| {
        let old = one.live().others["sidecar"].id.clone().unwrap();
        one.update().others.insert("sidecar".into(), old);
    });
    let labels = CorrectPlan::of(&lines, |made, _| has(made, is_metadata));
    labels.finds("S3: logs-2 is labelled and its sidecar is not ready", |one| {
        one.live().others.get_mut("sidecar").unwrap().ready = false;
    });
}

#[test]
fn a_container_that_is_not_made_anew_is_found() {
    let stops = CorrectPlan::of(&["template logs-2 env=b"], |made, _| has(made, is_stop));
    stops.finds("is told to end: false, not true", |one| *exit(&mut one.plan) = false);
    let starts = CorrectPlan::of(&["template logs-2 env=b"], |made, _| has(made, is_start));
    starts.finds("before its pod is as it is wanted: its container is the old one", |one| {
        let old = one.update().container_id.clone();
        one.live().container_id = old;
    });
}

#[test] // proves RESTART-65
fn an_image_that_can_never_be_pulled_is_given_up_at_once() {
    let lines = ["image b cannot be pulled", "template logs-2 image=b"];
    let is_waited_for = |_: &Plan, snapshot: &Snapshot| {
        let mut live = snapshot.pods.iter().filter_map(|pod| pod.live.as_ref()?.waiting.as_ref());
        live.any(|waiting| waiting.reason == "ImagePullBackOff")
    };
    let moment = CorrectPlan::of(&lines, is_waited_for);
    let gives_up = |reason: &str| {
        let mut moment = moment.clone();
        moment.live().waiting.as_mut().unwrap().reason = reason.into();
        let made = crate::plan(&moment.snapshot, &moment.policy);
        ended(&made).is_some_and(|(outcome, _)| outcome == Outcome::Aborted)
    };
    assert!(gives_up("InvalidImageName") && gives_up("ErrImageNeverPull"));
    assert!(!gives_up("ImagePullBackOff") && !gives_up("CreateContainerConfigError"));
}

#[test]
fn a_way_back_that_is_none_is_found() {
    let lines = ["image b cannot be pulled", "template logs-2 image=b"];
    let is_back = |made: &Plan, snapshot: &Snapshot| {
        let is_image = |action: &Action| matches!(action, Action::PatchImages { .. });
        let mut members = snapshot.ledger.members();
        has(made, is_image) && members.any(|member| member.step == MemberStep::Aborting)
    };
    let moment = CorrectPlan::of(&lines, is_back);
    moment.finds("S12: logs-2 is not set back to what it was", |one| {
        changes(&mut one.plan, "images").get_mut("engine").unwrap().wanted = Some("z".into());
    });
    moment.finds("S12: logs-2 is set back, and its engine may run", |one| {
        one.live().waiting = None::<ContainerWaiting>;
    });
}

#[test]
fn a_size_in_the_wrong_moment_is_found() {
    let is_resize = |action: &Action| matches!(action, Action::Resize { .. });
    let lines = ["template logs-2 memory=2Gi"];
    let moment = CorrectPlan::of(&lines, |made, _| has(made, is_resize));
    moment.finds("S12: logs-2 is changed before it is stopped", CorrectPlan::engine_runs);
    moment.finds("S12: logs-2 is resized on the step Container", |one| {
        one.update().update.step = UpdateStep::Container;
    });
    moment.finds("changed to what its entry does not have", |one| {
        changes(&mut one.plan, "resources").get_mut("engine").unwrap().wanted = Some("{}".into());
    });
    let stops = CorrectPlan::of(&lines, |made, _| has(made, is_stop));
    stops.finds("is to be resized, and there is no room", |one| {
        one.pod().room = Ok(Some("the node is full".into()));
    });
    let starts = CorrectPlan::of(&lines, |made, _| has(made, is_start));
    starts.finds("wanted: its size is not in effect", |one| one.live().resized.clear());
    let labels = CorrectPlan::of(&lines, |made, _| has(made, is_metadata));
    labels.finds("S3: logs-2 is labelled before the proof", |one| one.live().resized.clear());
}

#[test]
fn a_pod_that_is_deleted_in_the_wrong_moment_is_found() {
    let lines = ["template logs-2 affinity=b"];
    let moment = CorrectPlan::of(&lines, |made, _| has(made, is_delete));
    moment.finds("S12: logs-2 is deleted before it is stopped", CorrectPlan::engine_runs);
    moment.finds("S12: logs-2 is deleted while the cluster lists it", |one| {
        let other = one.snapshot.engine.as_ref().unwrap().nodes[0].clone();
        let ephemeral_id = one.member().ephemeral_id.clone().unwrap();
        let listed = crate::Node { name: "logs-2".into(), ephemeral_id, ..other };
        one.snapshot.engine.as_mut().unwrap().nodes.push(listed);
    });
    moment.finds("is deleted and is not to be replaced", |one| {
        one.update().update.step = UpdateStep::Container;
    });
    moment.finds("logs-2 is deleted twice", |one| one.pod().terminating = true);
    let stops = CorrectPlan::of(&lines, |made, _| has(made, is_stop));
    for moment in [&moment, &stops] {
        moment.finds("is to be replaced, and cannot be deleted", |one| {
            one.pod().undeletable = Some("pods are forbidden to be deleted".into());
        });
        moment.finds("is to be replaced, and would not fit", |one| {
            one.pod().room = Ok(Some("the node is full".into()));
        });
        moment.finds("is to be replaced, and would not fit", |one| {
            one.pod().room = Err(crate::Unknown { message: "forbidden".into() });
        });
    }
}

#[test]
fn a_pod_in_its_place_that_is_another_one_than_wanted_is_found() {
    // Nothing of the pod that is gone is left to show: the restart ends with its only node.
    let is_done = |made: &Plan, snapshot: &Snapshot| {
        let ends = made.actions.iter().any(|action| match action {
            Action::WriteLedger(ledger) => ledger.restart.is_none(),
            _ => false,
        });
        ends && snapshot.ledger.under_way().any(|member| member.node == "logs-2")
    };
    let moment = CorrectPlan::of(&["template logs-2 affinity=b"], is_done);
    moment.finds("S3: logs-2 is done and mounts other volume claims", |one| {
        one.live().claims = BTreeSet::from(["other".to_owned()]);
    });
    moment.finds("S3: logs-2 is done and a volume claim was made again", |one| {
        one.pod().claim_uids = Ok(BTreeMap::from([("data".to_owned(), "another".to_owned())]));
    });
    moment.finds("S3: logs-2 is done and its new pod lacks", |one| {
        let lacks = one.update().update.clone();
        one.pod().update = Ok(Some(lacks));
    });
}

/// Outcome and message of the restart's only node, if it ends in this plan.
fn ended(made: &Plan) -> Option<(Outcome, String)> {
    made.actions.iter().find_map(|action| match action {
        Action::RecordEvent(event) if event.reason == Reason::NodeRestarted => {
            Some((Outcome::Done, event.message.clone()))
        }
        Action::RecordEvent(event) if event.reason == Reason::NodeRestartAborted => {
            Some((Outcome::Aborted, event.message.clone()))
        }
        _ => None,
    })
}

#[test] // proves UPDATE-10
fn claims_that_cannot_be_read_are_compared_by_name_and_that_is_said() {
    let is_done = |made: &Plan, _: &Snapshot| ended(made).is_some();
    let moment = CorrectPlan::of(&["template logs-2 affinity=b"], is_done);
    let after = |change: &dyn Fn(&mut CorrectPlan)| {
        let mut moment = moment.clone();
        change(&mut moment);
        ended(&crate::plan(&moment.snapshot, &moment.policy))
    };
    let done = |message: &str| Some((Outcome::Done, message.to_owned()));
    assert_eq!(after(&|_| {}), done("logs-2 is back"));
    // The right is missing.
    let by_name = "logs-2 is done: its volume claims were compared by their names alone: ";
    let forbidden = format!("{by_name}the reconciler may not read them");
    assert_eq!(after(&|one| one.pod().claim_uids = Ok([].into())), done(&forbidden));
    // It is asked again, as long as there is time.
    let unread = |one: &mut CorrectPlan| {
        let message = "the apiserver does not answer".to_owned();
        one.pod().claim_uids = Err(crate::Unknown { message });
    };
    assert_eq!(after(&unread), None);
    let late = after(&|one| {
        unread(one);
        one.snapshot.now.0 += 3 * one.policy.phase_timeout;
    });
    assert_eq!(late, done(&format!("{by_name}the apiserver does not answer")));
    // An earlier version has not written the uids down.
    assert_eq!(after(&|one| one.update().claim_uids.clear()), done("logs-2 is back"));
}

#[test] // proves UPDATE-67
fn a_pod_that_has_the_wanted_template_is_done_whatever_its_note_lacks() {
    let is_done = |made: &Plan, _: &Snapshot| ended(made).is_some();
    let mut moment = CorrectPlan::of(&["template logs-2 affinity=b"], is_done);
    let to = moment.update().update.to.clone();
    for step in [UpdateStep::Relabel, UpdateStep::Replace] {
        let lacks = crate::PodUpdate { from: to.clone(), step, ..moment.update().update.clone() };
        moment.pod().update = Ok(Some(lacks));
        let made = crate::plan(&moment.snapshot, &moment.policy);
        assert_eq!(ended(&made), Some((Outcome::Done, "logs-2 is back".to_owned())), "{step:?}");
    }
}

#[test] // proves RESTART-82
fn a_start_that_is_owed_and_that_nothing_is_up_to_is_found() {
    let lines = [
        "template logs-2 image=b memory=2Gi",
        "run until logs-2 is stopped",
        "run 100ms",
        "delay stop 20s",
        "annotate pod logs-2 stopped true",
    ];
    let pays = |made: &Plan, seen: &Snapshot| {
        has(made, |action| matches!(action, Action::WriteLedger(new) if new.debts.start.is_empty()))
            && !seen.ledger.debts.start.is_empty()
    };
    let moment = CorrectPlan::of(&lines, pays);
    moment.finds("S8: the start owed to logs-2 is forgotten", |one| {
        let Some(Action::WriteLedger(new)) = one.plan.actions.first_mut() else { panic!() };
        new.kept_stopped.clear();
    });
    moment.finds("S8: the start owed to logs-2 is forgotten", |one| {
        let fixed = one.snapshot.ledger.debts.start[0].update.clone().unwrap();
        for (container, change) in fixed.update.patch.resources {
            one.live().resources.insert(container, change.wanted.unwrap());
        }
    });
}
