//! The engine of a waiting node is killed while another node starts.

use crate::restart::fixture::until;
use crate::restart::step;

use super::five_nodes::FiveNodes;

const FIRST: &str = "logs-d-1";
const KILLED: &str = "logs-m-1";

/// Both nodes of a zone are out then, and only allocation brings the copies of the killed one back.
/// No rule waits for what our own setting forbids: the killed node is started in its slot, and the
/// others follow.
pub(super) fn while_another_starts(cluster: &FiveNodes) {
    step(&format!("{KILLED} is killed while {FIRST} starts"));
    let id = cluster.id("killed");
    let settings = cluster.fixture.settings();
    let before = cluster.fixture.facts();
    let asked = ["logs-d-0", FIRST, KILLED];
    let named = asked.iter().flat_map(|name| ["--node", name]);
    let args: Vec<&str> = ["restart", "logs", "--id", &id].into_iter().chain(named).collect();
    cluster.stayput(&args);
    until("the first node starts", || {
        let status = cluster.fixture.with(FIRST, |member| member.manager().api.status());
        let is_another = status["run"]["id"] != before[FIRST].run;
        (status["state"] == "starting" && is_another).then_some(())
    });
    cluster.fixture.with(KILLED, |member| member.kill_engine());
    // An outage is never advised to a person who only has to wait.
    cluster.fixture.until_status("it is over", |status| {
        let report = serde_json::to_string(&status.report).expect("JSON");
        assert!(!report.contains("--allow-outage"), "{report}");
        status.ledger.history.iter().any(|entry| entry.id == id)
    });
    let after = cluster.until_done(&id, &before, &asked);
    assert!(after[FIRST].started_at < after[KILLED].started_at, "{after:#?}");
    cluster.until_whole();
    assert_eq!(cluster.fixture.settings(), settings);
}
