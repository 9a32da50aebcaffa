//! A changed template that was given up is not carried out again by itself.

use super::scenario::moment;
use crate::{
    Action, Change, Plan, Pod, PodPatch, PodUpdate, Policy, Snapshot, UpdateStep, annotation, plan,
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

#[test]
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
        patch: PodPatch { annotations, ..PodPatch::default() },
    }));
    let made = plan(&snapshot, &policy);
    assert!(!opens_a_restart(&made), "{made:#?}");
}
