//! Faults during a restart do not prevent its end, and nothing is done twice.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::json;
use stayput_api::State;
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Ledger, Outcome, annotation};
use tokio::time::{sleep, timeout};

use super::fixture::{Fixture, NODES, Reconciler};
use super::lost_apiserver::lose_until_started_again;
use super::objects::eventually;
use stayput_standin::apiserver::{Asked, Counts, Fault, How};

fn ledger(cluster: &SearchCluster) -> Ledger {
    cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default()
}

/// Every node was restarted exactly once.
async fn once_each(fixture: &Fixture) {
    for name in NODES {
        assert_eq!(fixture.starts(name).await, 2, "{name}");
    }
}

#[tokio::test]
async fn a_manager_that_gives_no_answer_is_named_and_waited_for() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.with("logs-1", |manager| manager.signal(Signal::SIGSTOP));
    fixture.ask("r1", "rolling").await;
    let sentence = fixture.until_blocked("manager_unreachable").await;
    assert!(sentence.contains("logs-1"), "{sentence}");
    fixture.with("logs-1", |manager| manager.signal(Signal::SIGCONT));
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    reconciler.end().await;
}

/// The live read of the pod, right before the stop, takes so long that another node is lost meanwhile.
#[tokio::test] // proves RESTART-12
async fn a_stop_is_not_sent_on_what_the_engine_said_a_while_ago() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    let reads =
        || fixture.server.counts().matching(|one| one.verb == "get" && one.resource == "pods");
    let before = reads();
    fixture.server.inject(Fault::new(How::Hold).verb("get").resource("pods"));
    fixture.ask("r1", "rolling").await;
    let under_way = |cluster: &SearchCluster| {
        let members = ledger(cluster).restart?.members;
        members.into_iter().find(|member| member.is_under_way()).map(|member| member.node)
    };
    let cluster = fixture.until("a slot", |cluster| under_way(cluster).is_some()).await;
    let target = under_way(&cluster).expect("a slot");
    let is_read = async || fixture.server.is_faultless().then_some(());
    eventually("its stop is decided, and its pod is being read", is_read).await;
    let other = NODES.into_iter().find(|name| *name != target).expect("three nodes");
    fixture.with(other, |manager| manager.crash());
    fixture.engine_until("/_cluster/health?wait_for_nodes=2").await;
    // What was read of the engine is too old for a stop after two seconds.
    sleep(Duration::from_millis(2_100)).await;
    assert_eq!(reads(), before, "the pod is still being read");
    fixture.server.release();
    eventually("the pod was read", async || (reads() > before).then_some(())).await;
    fixture.until("its slot is given back", |cluster| under_way(cluster).is_none()).await;
    let status = fixture.status(&target).await;
    assert_eq!((status.state, status.starts), (State::Running, 1), "{status:?}");
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-30
async fn an_engine_that_was_stopped_is_started_while_the_apiserver_is_away() {
    let fixture = Fixture::new("").await;
    // Long enough for the apiserver to go away before the engine is stopped.
    fixture.respec(json!({"restart": {"drain": "3s"}})).await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    lose_until_started_again(&fixture).await;
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-20
async fn an_apiserver_that_comes_and_goes_only_delays() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    // Nobody else sends these. After a status that was not written, the whole of it is.
    let calls = [
        ("patch", "searchclusters/status"),
        ("update", "searchclusters/status"),
        ("patch", "pods"),
        ("get", "pods"),
    ];
    let faults = [[How::Refuse(500), How::LoseAnswer], [How::LoseRequest, How::Refuse(429)]];
    for (id, faults, starts) in [("r1", faults[0], 2), ("r2", faults[1], 3)] {
        fixture.ask(id, "rolling").await;
        fixture.until("it has begun", |cluster| ledger(cluster).restart.is_some()).await;
        for how in faults {
            for (verb, resource) in calls {
                fixture.server.inject(Fault::new(how).verb(verb).resource(resource));
            }
        }
        fixture.server.cut_watches();
        fixture.server.compact();
        let entry = fixture.until_over(id).await;
        assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
        for name in NODES {
            assert_eq!(fixture.starts(name).await, starts, "{name}");
        }
        assert!(fixture.server.is_faultless(), "{:#?}", fixture.server.counts());
    }
    reconciler.end().await;
}

#[tokio::test]
async fn watches_that_lag_behind_mislead_nobody() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    fixture.until("it has begun", |cluster| ledger(cluster).restart.is_some()).await;
    fixture.server.hold_watches(true);
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    fixture.server.hold_watches(false);
    reconciler.end().await;
}

#[tokio::test]
async fn writes_of_others_cost_another_look_and_nothing_more() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let over = fixture.until_over("r1");
    let scribble = async {
        for round in 0_u32.. {
            fixture.annotate("example.org/round", Some(&round.to_string())).await;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    let entry = tokio::select! { entry = over => entry, () = scribble => unreachable!() };
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    reconciler.end().await;
}

/// It says the same, so no decision is another. A small change of it would be one of other places.
#[tokio::test] // proves RESTART-23
async fn a_ledger_that_another_client_has_written_in_another_form_is_written_anew() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    fixture.respec(json!({"paused": true})).await;
    // So long that the parts that change are shorter than the whole.
    let request = json!({"id": "r1", "by": "x".repeat(9_999)}).to_string();
    fixture.annotate(annotation::REQUEST, Some(&request)).await;
    let waiting = |cluster: &SearchCluster| {
        let members = ledger(cluster).restart.map(|restart| restart.members).unwrap_or_default();
        (members.len() == NODES.len()).then_some(members)
    };
    let cluster = fixture.until("three nodes wait", |cluster| waiting(cluster).is_some()).await;
    let members = waiting(&cluster).expect("three nodes");
    let members: Vec<_> = members.iter().rev().collect();
    let whole = json!({"status": {"ledger": {"restart": {"members": members}}}});
    let api = fixture.api::<SearchCluster>();
    let written = api.patch_status("logs", &PatchParams::default(), &Patch::Merge(whole)).await;
    assert_eq!(ledger(&written.expect("it is taken")), ledger(&cluster));
    let counts = fixture.server.counts();
    fixture.respec(json!({"paused": false})).await;
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    let counts = fixture.server.counts().since(&counts);
    let whole = |one: &Asked| one.verb == "update" && one.resource == "searchclusters/status";
    assert_eq!(counts.matching(whole), 1, "{counts:?}");
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-20
async fn two_reconcilers_at_once_restart_every_node_once() {
    let fixture = Fixture::new("").await;
    let both = [0, 1].map(|_| Reconciler::start(fixture.server.client()));
    fixture.until_seen().await;
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    for reconciler in both {
        reconciler.end().await;
    }
}

#[tokio::test] // proves RESTART-20
async fn killed_after_every_step_it_goes_on_where_it_was() {
    let fixture = Fixture::new("").await;
    let mut reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    let mut kills = 0;
    let mut known = ledger(&fixture.cluster().await);
    loop {
        let change = eventually("the ledger changes", async || {
            let now = ledger(&fixture.cluster().await);
            (now != known).then_some(now)
        });
        known = change.await;
        if !known.history.is_empty() {
            break;
        }
        reconciler.kill().await;
        kills += 1;
        reconciler = Reconciler::start(fixture.server.client());
    }
    assert!(kills >= 3, "{kills}");
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    reconciler.end().await;
}

#[tokio::test] // proves RESTART-20
async fn killed_at_any_moment_it_goes_on_where_it_was() {
    let fixture = Fixture::new("").await;
    let mut reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    fixture.until("it has begun", |cluster| ledger(cluster).restart.is_some()).await;
    let mut kills = 0;
    for round in 0..20 {
        // The first ones are too short for a step, so the restart is still under way; the last ones are
        // long enough for some.
        tokio::time::sleep(Duration::from_millis(10 + round * 12)).await;
        reconciler.kill().await;
        kills += u32::from(ledger(&fixture.cluster().await).restart.is_some());
        reconciler = Reconciler::start(fixture.server.client());
    }
    assert!(kills >= 5, "only {kills} of the 20 were before its end");
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    reconciler.end().await;
}

#[tokio::test]
async fn told_to_end_it_ends_and_the_next_one_goes_on() {
    let fixture = Fixture::new("standin.stop_delay_ms: 1000").await;
    let reconciler = Reconciler::start(fixture.server.client());
    fixture.until_seen().await;
    fixture.ask("r1", "rolling").await;
    fixture
        .until("a node is under way", |cluster| {
            let restart = ledger(cluster).restart;
            restart.is_some_and(|restart| restart.members.iter().any(|one| one.is_under_way()))
        })
        .await;
    timeout(Duration::from_secs(20), reconciler.end()).await.expect("it ends soon");
    let reconciler = Reconciler::start(fixture.server.client());
    let entry = fixture.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&fixture).await;
    reconciler.end().await;
}

#[tokio::test]
async fn a_config_that_does_not_start_is_rolled_back_and_asks_no_further_node() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture.until_seen().await;
    for name in NODES {
        fixture.configure(name, "standin.refuse: no such thing").await;
    }
    let entry = fixture.restart("r1", "rolling").await;
    assert_eq!(entry.outcome, Outcome::RolledBack, "{entry:?}");
    fixture.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    let settings = fixture.engine_until("/_cluster/settings?flat_settings=true").await;
    assert_eq!(settings["persistent"], json!({}));
    let mut untouched = 0;
    for name in NODES {
        untouched += u32::from(fixture.starts(name).await == 1);
    }
    assert_eq!(untouched, 2);
    reconciler.end().await;
}

#[tokio::test]
async fn at_rest_nobody_is_asked_anything() {
    let fixture = Fixture::new("").await;
    let reconciler = Reconciler::start(fixture.client.clone());
    fixture
        .until("it is in sync", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.report.counts.ready == 3)
        })
        .await;
    // Another look follows the first status, and another report after five seconds if a manager was slow.
    let mut asked = Vec::new();
    for _ in 0..3 {
        let counts = fixture.server.counts();
        tokio::time::sleep(Duration::from_secs(7)).await;
        asked.push(fixture.server.counts().since(&counts));
        if asked.last().is_some_and(|since| since.total() == 0) {
            break;
        }
    }
    assert_eq!(asked.last().map(Counts::total), Some(0), "{asked:?}");
    reconciler.end().await;
}
