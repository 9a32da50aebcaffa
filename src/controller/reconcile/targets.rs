//! The pods that a plan acts on. Pure.

use std::collections::BTreeSet;

use stayput_restart::{Action, Ledger, Plan};

/// Uids of the pods of these actions.
pub(super) fn pods_of(actions: &[&Action]) -> BTreeSet<String> {
    actions.iter().filter_map(|action| action.pod()).map(str::to_owned).collect()
}

/// Uids of the pods that the plan is about to act on although their managers were last asked before this
/// observation began; `is_old` is true for such a pod.
pub(super) fn read_before(
    plan: &Plan,
    ledger: &Ledger,
    is_old: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut uids: BTreeSet<&str> = BTreeSet::new();
    for action in &plan.actions {
        match action {
            Action::Stop { uid, .. }
            | Action::Start { uid, .. }
            | Action::PatchImages { uid, .. }
            | Action::Resize { uid, .. }
            | Action::DeletePod { uid } => drop(uids.insert(uid)),
            Action::WriteLedger(after) => uids.extend(given_sequences(ledger, after)),
            _ => {}
        }
    }
    uids.into_iter().filter(|uid| is_old(uid)).map(str::to_owned).collect()
}

/// Uids of the pods whose entries have sequences in `after` that they did not have before: these are counted
/// from the sequences that their managers have reported.
fn given_sequences<'a>(before: &Ledger, after: &'a Ledger) -> Vec<&'a str> {
    let known: BTreeSet<(&str, u64, u64)> = before
        .members()
        .map(|member| (member.pod_uid.as_str(), member.stop_sequence, member.start_sequence))
        .collect();
    let members = after.members().filter(|member| {
        !known.contains(&(member.pod_uid.as_str(), member.stop_sequence, member.start_sequence))
            && member.stop_sequence > 0
    });
    let kept = after.kept_stopped.iter().filter(|kept| !before.kept_stopped.contains(kept));
    members
        .map(|member| member.pod_uid.as_str())
        .chain(kept.map(|kept| kept.pod_uid.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(pods: &[(&str, u64)]) -> Ledger {
        let entry = |(uid, sequence): &(&str, u64)| json!({"podUid": uid, "node": uid, "sequence": sequence});
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
        let stop =
            Action::Stop { uid: "a".into(), sequence: 1, drain: 0, resume: None, exit: false };
        assert_eq!(pods_of(&[&stop]), BTreeSet::from(["a".to_owned()]));
        let plan = Plan { actions: vec![stop], ..Plan::default() };
        assert_eq!(old(&plan), BTreeSet::from(["a".to_owned()]));
    }
}
