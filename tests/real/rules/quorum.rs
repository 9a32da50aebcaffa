//! Masters that were stopped by hand block the restart of the others.

use serde_json::json;
use stayput_kube_access::cluster::SearchCluster;

use crate::restart::fixture::until;
use crate::restart::step;

use super::five_nodes::{FiveNodes, MASTERS};

/// With one of three stopped by hand no other one is restarted; with two stopped there is no master
/// and no answer. When both are back, the restart continues.
pub(super) fn masters_out(cluster: &FiveNodes) {
    let elected = cluster.elected();
    let others: Vec<&str> = MASTERS.into_iter().filter(|name| *name != elected).collect();
    let [out, asked] = others[..] else { panic!("{elected} is none of {MASTERS:?}") };
    step(&format!("{out} is stopped by hand, {asked} asked for"));
    let api = |name: &str| cluster.fixture.with(name, |member| member.manager().api.clone());
    let id = cluster.id("quorum");
    let before = cluster.fixture.facts();
    api(out).stop();
    cluster.stayput(&["restart", "logs", "--node", asked, "--id", &id]);
    let message = cluster.until_blocked(asked, "quorum");
    assert!(message.contains("2 are needed to elect a master"), "{message}");

    step(&format!("{elected}, which is elected, is stopped by hand as well"));
    api(&elected).stop();
    // At first, a request to the node that is stopped may have failed.
    until("the reason is that no master is elected", || {
        let message = cluster.until_blocked(asked, "engine_unreachable");
        message.contains("elected master").then_some(())
    });
    let now = cluster.fixture.with(asked, |member| member.manager().api.status());
    assert_eq!(now["run"]["id"], before[asked].run, "{now:#}");

    step("both are back");
    // After an election, some of the cluster's work may begin after a slot was taken; that is
    // another test.
    let pause = |is_paused: bool| {
        let change = json!({ "spec": { "paused": is_paused } });
        cluster.fixture.kube.merge::<SearchCluster>("logs", &change);
    };
    pause(true);
    for name in [out, &elected] {
        let answer = api(name).post("/es/start", &json!({}));
        assert!(matches!(answer.status, 200 | 202), "{}: {:#}", answer.status, answer.body);
    }
    cluster.until_whole_after_outage();
    pause(false);
    let entry = cluster.fixture.until_over(&id);
    assert_eq!((entry.outcome.as_str(), entry.nodes), ("done", 1), "{entry:?}");
    let after = cluster.fixture.facts();
    for (name, is) in &after {
        let stays = ["logs-d-0", "logs-d-1"].contains(&name.as_str());
        assert_eq!(stays, before[name].run == is.run, "{name}");
        assert_eq!(before[name].boot, is.boot, "{name}");
    }
    until("nothing is asked for any more", || {
        cluster.fixture.status().ledger.restart.is_none().then_some(())
    });
    cluster.until_whole();
}
