//! What goes wrong in the middle does not keep a restart from its end, and nothing is done twice.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use stayput_reconciler::cluster::SearchCluster;
use stayput_restart::{Ledger, Outcome};
use tokio::time::timeout;

use super::ground::eventually;
use super::stage::{NODES, Reconciler, Stage};
use stayput_standin::apiserver::{Fault, How};

fn ledger(cluster: &SearchCluster) -> Ledger {
    cluster.status.as_ref().map(|status| status.ledger.clone()).unwrap_or_default()
}

/// Every node was restarted, once.
async fn once_each(stage: &Stage) {
    for name in NODES {
        assert_eq!(stage.starts(name).await, 2, "{name}");
    }
}

#[tokio::test]
async fn a_manager_that_gives_no_answer_is_named_and_waited_for() {
    let stage = Stage::new("").await;
    let reconciler = Reconciler::start(stage.client.clone());
    stage.until_seen().await;
    stage.with("logs-1", |manager| manager.signal(Signal::SIGSTOP));
    stage.ask("r1", "rolling").await;
    let sentence = stage.until_blocked("manager_unreachable").await;
    assert!(sentence.contains("logs-1"), "{sentence}");
    stage.with("logs-1", |manager| manager.signal(Signal::SIGCONT));
    let entry = stage.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    reconciler.end().await;
}

#[tokio::test]
async fn an_apiserver_that_comes_and_goes_only_delays() {
    let stage = Stage::new("").await;
    let reconciler = Reconciler::start(stage.client.clone());
    stage.until_seen().await;
    stage.ask("r1", "rolling").await;
    stage.until("it has begun", |cluster| ledger(cluster).restart.is_some()).await;
    for how in [How::Refuse(500), How::LoseAnswer, How::LoseRequest, How::Refuse(429)] {
        for verb in ["update", "patch", "get"] {
            stage.server.inject(Fault::new(how).verb(verb).times(1));
        }
    }
    stage.server.cut_watches();
    stage.server.compact();
    let entry = stage.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    reconciler.end().await;
}

#[tokio::test]
async fn watches_that_lag_behind_mislead_nobody() {
    let stage = Stage::new("").await;
    let reconciler = Reconciler::start(stage.client.clone());
    stage.until_seen().await;
    stage.ask("r1", "rolling").await;
    stage.until("it has begun", |cluster| ledger(cluster).restart.is_some()).await;
    stage.server.hold_watches(true);
    let entry = stage.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    stage.server.hold_watches(false);
    reconciler.end().await;
}

#[tokio::test]
async fn writes_of_others_cost_another_look_and_nothing_more() {
    let stage = Stage::new("").await;
    let reconciler = Reconciler::start(stage.client.clone());
    stage.until_seen().await;
    stage.ask("r1", "rolling").await;
    let over = stage.until_over("r1");
    let scribble = async {
        for round in 0_u32.. {
            stage.annotate("example.org/round", Some(&round.to_string())).await;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    let entry = tokio::select! { entry = over => entry, () = scribble => unreachable!() };
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    reconciler.end().await;
}

#[tokio::test]
async fn two_reconcilers_at_once_restart_every_node_once() {
    let stage = Stage::new("").await;
    let both = [0, 1].map(|_| Reconciler::start(stage.server.client()));
    stage.until_seen().await;
    let entry = stage.restart("r1", "rolling").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    for reconciler in both {
        reconciler.end().await;
    }
}

#[tokio::test]
async fn killed_after_every_step_it_goes_on_where_it_was() {
    let stage = Stage::new("").await;
    let mut reconciler = Reconciler::start(stage.server.client());
    stage.until_seen().await;
    stage.ask("r1", "rolling").await;
    let mut kills = 0;
    let mut known = ledger(&stage.cluster().await);
    loop {
        let change = eventually("the ledger changes", async || {
            let now = ledger(&stage.cluster().await);
            (now != known).then_some(now)
        });
        known = change.await;
        if !known.history.is_empty() {
            break;
        }
        reconciler.kill().await;
        kills += 1;
        reconciler = Reconciler::start(stage.server.client());
    }
    assert!(kills >= 3, "{kills}");
    let entry = stage.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    reconciler.end().await;
}

#[tokio::test]
async fn killed_at_any_moment_it_goes_on_where_it_was() {
    let stage = Stage::new("").await;
    let mut reconciler = Reconciler::start(stage.server.client());
    stage.until_seen().await;
    stage.ask("r1", "rolling").await;
    for round in 0..20 {
        // Long enough for a pass, and another moment of one each time.
        tokio::time::sleep(Duration::from_millis(90 + round * 7)).await;
        reconciler.kill().await;
        reconciler = Reconciler::start(stage.server.client());
    }
    let entry = stage.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    reconciler.end().await;
}

#[tokio::test]
async fn told_to_end_it_ends_and_the_next_one_goes_on() {
    let stage = Stage::new("standin.stop_delay_ms: 1000").await;
    let reconciler = Reconciler::start(stage.server.client());
    stage.until_seen().await;
    stage.ask("r1", "rolling").await;
    stage
        .until("a node is under way", |cluster| {
            let restart = ledger(cluster).restart;
            restart.is_some_and(|restart| restart.members.iter().any(|one| one.is_under_way()))
        })
        .await;
    timeout(Duration::from_secs(20), reconciler.end()).await.expect("it ends soon");
    let reconciler = Reconciler::start(stage.server.client());
    let entry = stage.until_over("r1").await;
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    once_each(&stage).await;
    reconciler.end().await;
}

#[tokio::test]
async fn a_config_that_does_not_start_is_rolled_back_and_asks_no_further_node() {
    let stage = Stage::new("").await;
    let reconciler = Reconciler::start(stage.client.clone());
    stage.until_seen().await;
    for name in NODES {
        stage.configure(name, "standin.refuse: no such thing").await;
    }
    let entry = stage.restart("r1", "rolling").await;
    assert_eq!(entry.outcome, Outcome::RolledBack, "{entry:?}");
    stage.engine_until("/_cluster/health?wait_for_nodes=3&wait_for_status=green").await;
    let settings = stage.engine_until("/_cluster/settings?flat_settings=true").await;
    assert_eq!(settings["persistent"], json!({}));
    let mut untouched = 0;
    for name in NODES {
        untouched += u32::from(stage.starts(name).await == 1);
    }
    assert_eq!(untouched, 2);
    reconciler.end().await;
}

#[tokio::test]
async fn at_rest_nobody_is_asked_anything() {
    let stage = Stage::new("").await;
    let reconciler = Reconciler::start(stage.client.clone());
    stage
        .until("it is in sync", |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.report.counts.ready == 3)
        })
        .await;
    let counts = stage.server.counts();
    tokio::time::sleep(Duration::from_secs(7)).await;
    let since = stage.server.counts().since(&counts);
    assert_eq!(since.total(), 0, "{since:?}");
    reconciler.end().await;
}
