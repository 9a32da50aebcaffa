//! A pod that keeps its template, and whose restart is blocked by something else.

use super::scenario::moment;
use crate::{Code, Unknown, plan, report};

#[test]
fn what_blocks_a_requested_restart_is_said_and_not_why_templates_stay() {
    let script = [
        "three nodes",
        "policy update restart",
        "owner will replace logs-0",
        "owner will replace logs-1",
        "owner will replace logs-2",
        "request rolling r1",
        "run 10s",
    ];
    let (mut snapshot, policy) = moment(&script);
    for pod in &mut snapshot.pods {
        let message = "spec.update.mode inPlace needs the update strategy OnDelete".to_owned();
        pod.update = Err(Unknown { message });
    }
    assert!(snapshot.ledger.restart.is_some());
    let made = plan(&snapshot, &policy);
    let mut codes = made.waiting.iter().filter(|one| one.pod.is_some()).map(|one| one.code);
    assert!(codes.all(|code| code == Code::OwnerWillReplace), "{:#?}", made.waiting);
    let shown = report(&snapshot, &policy, &made);
    assert_eq!(shown.blocked.as_deref(), Some("owner_will_replace"));
    let blocked = shown.conditions.iter().find(|condition| condition.kind == "Blocked");
    assert_eq!(blocked.map(|condition| condition.status.as_str()), Some("True"));
}
