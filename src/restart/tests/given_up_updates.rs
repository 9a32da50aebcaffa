//! A changed template that was given up is not carried out again by itself.

use super::scenario::moment;
use crate::{
    Action, Change, Code, Outcome, Plan, Pod, PodPatch, PodUpdate, Policy, Snapshot, UpdateStep,
    annotation, plan,
};

/// The new pod of logs-2 was not scheduled in time, and is up now; the other two were left as they are.
pub(super) fn given_up() -> (Snapshot, Policy) {
    moment(&[
        "three nodes",
        "policy phaseTimeout 5m",
        "policy update relabel,restart,container,resize,replace",
        "no room for new pods",
        "template logs-* affinity=b",
        "run until restart begins",
        "run until restart is over",
        "room for logs-2",
        "run 2m",
    ])
}

fn opens_a_restart(made: &Plan) -> bool {
    let mut actions = made.actions.iter();
    actions.any(|action| matches!(action, Action::WriteLedger(ledger) if ledger.restart.is_some()))
}

#[test] // proves RESTART-135
fn a_note_of_what_the_new_container_has_read_is_no_other_template() {
    let (mut snapshot, policy) = given_up();
    let outdated = |pod: &&Pod| matches!(&pod.update, Ok(Some(_)));
    assert_eq!(snapshot.pods.iter().filter(outdated).count(), 2, "{:#?}", snapshot.pods);
    assert!(!opens_a_restart(&plan(&snapshot, &policy)));

    let new = snapshot.pods.iter_mut().find(|pod| pod.node == "logs-2").expect("it is up");
    let revision = new.live.as_ref().expect("it is read").revision.clone();
    let note = r#"{"restarts":0,"content":{"Secret logs":{"key":"0123abcd"}}}"#;
    let noted = Change { seen: None, wanted: Some(note.to_owned()) };
    let annotations = [(annotation::CONTENT.to_owned(), noted)].into();
    new.update = Ok(Some(PodUpdate {
        from: revision.clone(),
        to: revision,
        step: UpdateStep::Relabel,
        because: vec![],
        new_container: false,
        data_elsewhere: false,
        settings: None,
        patch: PodPatch { annotations, ..PodPatch::default() },
    }));
    let made = plan(&snapshot, &policy);
    assert!(!opens_a_restart(&made), "{made:#?}");
}

#[test] // proves RESTART-135
fn a_pod_that_is_gone_or_whose_template_is_not_known_is_no_other_change() {
    let (snapshot, policy) = given_up();
    for node in ["logs-0", "logs-2"] {
        let mut gone = snapshot.clone();
        gone.pods.retain(|pod| pod.node != node);
        assert!(!opens_a_restart(&plan(&gone, &policy)), "{node} is gone");
        let mut unread = snapshot.clone();
        let pod = unread.pods.iter_mut().find(|pod| pod.node == node).expect("it is there");
        pod.update = Err(crate::Unknown { message: "no answer of the apiserver".into() });
        assert!(!opens_a_restart(&plan(&unread, &policy)), "{node} is not known");
    }
}

#[test] // proves RESTART-135
fn the_template_of_another_set_is_carried_out_without_the_one_that_was_given_up() {
    let (snapshot, policy) = moment(&[
        "logs-0:master+data logs-1:master+data hot-0:master+data",
        "policy update relabel,restart,container,resize,replace",
        "image b cannot be pulled",
        "template hot-* image=b",
        "run until restart begins",
        "run until restart is over",
        "template logs-* image=c",
        "run until restart begins",
        "run until restart is over",
        "run 5m",
    ]);
    assert!(!opens_a_restart(&plan(&snapshot, &policy)));
    let ended = snapshot.ledger.history.iter().map(|entry| (entry.outcome, entry.nodes));
    let ended: Vec<(Outcome, u32)> = ended.collect();
    assert_eq!(ended, [(Outcome::RolledBack, 0), (Outcome::Done, 2)]);
}

#[test]
fn it_says_whether_the_template_or_only_the_content_was_given_up() {
    let (mut snapshot, policy) = given_up();
    let said = |snapshot: &Snapshot| {
        let made = plan(snapshot, &policy);
        let waits = made.waiting.iter().find(|waiting| waiting.node.as_deref() == Some("logs-0"));
        let waits = waits.expect("it waits");
        assert_eq!(waits.code, Code::UpdateTried, "{waits:?}");
        waits.message.to_string()
    };
    assert!(said(&snapshot).starts_with("its new pod template was "), "{}", said(&snapshot));
    let pod = snapshot.pods.iter_mut().find(|pod| pod.node == "logs-0").expect("it is there");
    let Ok(Some(update)) = &mut pod.update else { panic!("it is to change: {pod:#?}") };
    update.from.clone_from(&update.to);
    pod.live.as_mut().expect("it is read").revision.clone_from(&update.to);
    let of_content = said(&snapshot);
    assert!(
        of_content.starts_with("the new content of its Secrets and ConfigMaps was "),
        "{of_content}"
    );
}
