//! Masters that somebody else has stopped keep those that are left.

use serde_json::json;
use stayput_reconciler::cluster::SearchCluster;

use crate::restart::ground::until;
use crate::restart::step;

use super::field::{Field, MASTERS};

/// With one of three out by hand no other one goes, and with two out nothing does: there is nobody
/// to say what may. As soon as both are back it does.
pub(super) fn masters_out(field: &Field) {
    let elected = field.elected();
    let others: Vec<&str> = MASTERS.into_iter().filter(|name| *name != elected).collect();
    let [out, asked] = others[..] else { panic!("{elected} is none of {MASTERS:?}") };
    step(&format!("{out} is stopped by hand, {asked} asked for"));
    let api = |name: &str| field.ground.with(name, |member| member.manager().api.clone());
    let before = field.ground.facts();
    api(out).stop();
    field.stayput(&["restart", "logs", "--node", asked, "--id", "quorum"]);
    let message = field.until_blocked(asked, "quorum");
    assert!(message.contains("2 are needed to elect a master"), "{message}");

    step(&format!("{elected}, which is elected, is stopped by hand as well"));
    api(&elected).stop();
    let message = field.until_blocked(asked, "engine_unreachable");
    assert!(message.contains("master"), "{message}");
    let now = field.ground.with(asked, |member| member.manager().api.status());
    assert_eq!(now["run"]["id"], before[asked].run, "{now:#}");

    step("both are back");
    // What a cluster has still to build after an election may begin after a slot was given; that is
    // another story.
    let pause = |is_paused: bool| {
        let change = json!({ "spec": { "paused": is_paused } });
        field.ground.kube.merge::<SearchCluster>("logs", &change);
    };
    pause(true);
    for name in [out, &elected] {
        let answer = api(name).post("/es/start", &json!({}));
        assert!(matches!(answer.code, 200 | 202), "{}: {:#}", answer.code, answer.body);
    }
    field.until_whole();
    pause(false);
    let entry = field.ground.until_over("quorum");
    assert_eq!((entry.outcome.as_str(), entry.nodes), ("done", 1), "{entry:?}");
    let after = field.ground.facts();
    for (name, is) in &after {
        let stays = ["logs-d-0", "logs-d-1"].contains(&name.as_str());
        assert_eq!(stays, before[name].run == is.run, "{name}");
        assert_eq!(before[name].boot, is.boot, "{name}");
    }
    until("nothing is asked for any more", || {
        field.ground.status().ledger.restart.is_none().then_some(())
    });
    field.until_whole();
}
