use serde_json::json;

use crate::reconcile::live_reads::*;

fn kept(pods: &[(&str, u64)]) -> Ledger {
    let entry =
        |(uid, sequence): &(&str, u64)| json!({"podUid": uid, "node": uid, "sequence": sequence});
    let all: Vec<_> = pods.iter().map(entry).collect();
    serde_json::from_value(json!({ "keptStopped": all })).expect("a ledger")
}

#[test]
fn a_pod_that_is_given_a_sequence_must_have_been_read_now() {
    let before = kept(&[("a", 1), ("b", 1)]);
    let after = Action::WriteLedger(Box::new(kept(&[("a", 1), ("b", 2), ("c", 1)])));
    let plan = Plan { actions: vec![after], ..Plan::default() };
    let old = |plan: &Plan| read_before(plan, &before, |uid| uid != "c");
    assert_eq!(old(&plan), BTreeSet::from(["b".to_owned()]));
    let stop = Action::Stop { uid: "a".into(), sequence: 1, drain: 0, resume: None, exit: false };
    assert_eq!(pods_of(&[&stop]), BTreeSet::from(["a".to_owned()]));
    let plan = Plan { actions: vec![stop], ..Plan::default() };
    assert_eq!(old(&plan), BTreeSet::from(["a".to_owned()]));
}
