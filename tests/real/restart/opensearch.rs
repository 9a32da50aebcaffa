//! OpenSearch: a rolling restart under load, one whose reconciler is killed again and again, and a
//! coordinated one that changes the name of the cluster.
//!
//! The long form: `STAYPUT_RECONCILER_KILLS=20 cargo test --test real -- under_load`.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stayput_restart::{MemberStep, Outcome, Strategy};

use super::fixture::{Fixture, NAMES, until};
use super::{load, lost_apiserver, on, rolling, step};
use crate::support::cluster::Flavor;

#[test] // proves RESTART-1, RESTART-30, RESTART-149
fn restarted_under_load_rolling_and_as_a_whole() {
    on("opensearch::restarted_under_load_rolling_and_as_a_whole", Flavor::OpenSearch, story);
}

fn story(mut fixture: Fixture) {
    load::create(fixture.nodes()[0]);
    fixture.until_formed();
    let before = json!({ "cluster.routing.allocation.enable": "all" });
    fixture.set(&before);

    step("rolling, under load");
    let began = Instant::now();
    let (seen, written) = rolling::restart(&mut fixture, "rolling-1", 0, |_| {});
    assert!(rolling::was_limited(&seen, "rolling-1"), "{seen:?}");
    let writes = fixture.reconciler.writes();
    let sum: u64 = writes.iter().map(|(_, number)| number).sum();
    println!("writes at the apiserver for three nodes: {writes:?}, {sum} in all");
    // On a slow machine there are also writes that only update the status, at most one in five seconds.
    let updates = began.elapsed().as_secs() / 5;
    assert!(sum > 0 && sum <= 3 * 20 + 10 + updates, "{writes:?}");

    step("a request that limits allocation arrives when the restart is over");
    let limited = seen.settings.iter().find(|settings| settings.contains("primaries"));
    let late = serde_json::from_str(limited.expect("it was limited")).expect("JSON");
    fixture.set(&late);
    until("it is set back", || (fixture.settings() == before).then_some(()));

    step("rolling, under load, by a reconciler that is killed again and again");
    let (_, written) = rolling::restart(&mut fixture, "rolling-2", written, kill_again_and_again);

    lost_apiserver::rolling(&fixture);

    step("as a whole, to another cluster name, which no half of it could share");
    coordinated(&fixture, written, lost_apiserver::while_all_are_stopped);
    assert_eq!(fixture.settings(), before);

    step("as a whole, by engines that read indices and settings from their disks late");
    recovered_late(&fixture, written);
    assert_eq!(fixture.settings(), before);
}

/// At random times from a seed, so that a failure can be repeated.
fn kill_again_and_again(fixture: &mut Fixture) {
    let kills: u64 = match std::env::var("STAYPUT_RECONCILER_KILLS") {
        Ok(number) => number.parse().expect("STAYPUT_RECONCILER_KILLS is a number"),
        Err(_) => 5,
    };
    let of_each = kills.div_ceil(3);
    let mut seed: u64 = 0x5eed;
    for kill in 0..kills {
        // The kills are spread over the nodes.
        fixture.until_status("the next node's turn", |status| {
            let members = status.ledger.restart.iter().flat_map(|restart| &restart.members);
            let (over, under_way) = members.fold((0, false), |(over, under_way), one| {
                (over + u64::from(one.step == MemberStep::Finished), under_way | one.is_under_way())
            });
            under_way && over >= kill / of_each
        });
        // xorshift64
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        // Short enough for the restart of a node on the fastest machine.
        let moment = Duration::from_millis(seed % (5000 / of_each));
        // The time itself is tested; nothing is waited for.
        thread::sleep(moment);
        fixture.reconciler.kill();
        let ledger = fixture.status().ledger;
        assert!(ledger.restart.is_some(), "over before kill {kill}: {:?}", ledger.history);
        let steps: Vec<_> =
            ledger.restart.iter().flat_map(|one| &one.members).map(|one| one.step).collect();
        println!("kill {kill} after {moment:?}: {steps:?}");
        fixture.reconciler.start_again();
    }
}

/// `meanwhile` runs at the same time.
fn coordinated(fixture: &Fixture, written: usize, meanwhile: impl FnOnce(&Fixture)) {
    let old_name = fixture.engine("/_cluster/health")["cluster_name"].clone();
    let rename = |text: &str| text.replace("cluster.name: test-", "cluster.name: renamed-");
    let expected = fixture.configure_all("node.attr.stayput: whole", rename);
    let before = fixture.facts();
    fixture.ask("whole", "coordinated", &[]);
    meanwhile(fixture);
    let entry = fixture.until_over("whole");
    println!("{entry:?}");
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    assert_eq!(entry.strategy, Strategy::Coordinated);
    fixture.until_formed();
    let after = fixture.facts();
    for name in NAMES {
        let (was, is) = (&before[name], &after[name]);
        assert_ne!(was.run, is.run, "{name}");
        assert!(is.ephemeral.is_some() && was.ephemeral != is.ephemeral, "{name}: {is:?}");
        assert_eq!(is.checksum.as_ref(), Some(&expected[name]), "{name}");
        let last = fixture.last_restart(name);
        assert_eq!((last.id.as_str(), last.outcome), ("whole", Outcome::Done), "{name}");
    }
    let names: BTreeSet<String> = fixture
        .nodes()
        .iter()
        .map(|node| node.send("GET", "/_cluster/health", None).expect("an answer").body)
        .map(|health: Value| health["cluster_name"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(names.len(), 1, "split: {names:?}");
    assert!(names.iter().all(|name| name.starts_with("renamed-")), "{names:?} of {old_name}");
    assert!(fixture.status().ledger.debts.is_empty());
    load::assert_found(fixture.nodes()[0], written);
}

/// Until the elected master has read the disks, the cluster seems to have no settings and no
/// indices. The settings that the restart has changed are there again afterwards.
fn recovered_late(fixture: &Fixture, written: usize) {
    // A fourth node does not exist, so the engine waits for the time to be over.
    let late = "gateway.expected_data_nodes: 4\ngateway.recover_after_time: 30s";
    fixture.configure_all(late, ToOwned::to_owned);
    let before = fixture.facts();
    fixture.ask("late", "coordinated", &[]);
    let unread = || fixture.engine("/_cluster/state/blocks")["blocks"]["global"]["1"].is_object();
    until("the engine reports that it has not read the disks", || unread().then_some(()));
    until("the engine has read the disks", || {
        let owed = fixture.status().ledger.debts.allocation.is_some();
        let still = unread();
        assert!(owed || !still, "nothing is known of the setting yet, and it is not owed any more");
        (!still).then_some(())
    });
    let entry = fixture.until_over("late");
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    fixture.until_formed();
    let after = fixture.facts();
    for name in NAMES {
        let (was, is) = (&before[name], &after[name]);
        assert_eq!((was.manager_pid, &was.boot), (is.manager_pid, &is.boot), "{name}");
    }
    assert!(fixture.status().ledger.debts.is_empty());
    load::assert_found(fixture.nodes()[0], written);
}
