//! In the middle of an upgrade nodes have different versions.

use stayput_pod_update::Settings;

use super::linter::moment;
use crate::{
    Action, Code, KnownConfigs, Ledger, OnConfigChange, Policy, Snapshot, Sources, Strategy, plan,
};

/// Three nodes that run on a config that says nothing of security, and are to be restarted on one that
/// turns it off.
fn security_is_turned_off(versions: [&str; 3]) -> Snapshot {
    let (mut snapshot, _) = moment(|_, snapshot| snapshot.engine.is_ok());
    snapshot.cluster.annotations.clear();
    snapshot.ledger = Ledger::default();
    for pod in &mut snapshot.pods {
        let manager = pod.manager.as_mut().expect("it answers");
        manager.run.as_mut().expect("a run").checksum = Some("a".to_owned());
        manager.mounted = Some("b".to_owned());
        pod.sources = Sources::Checksum("b".to_owned());
    }
    let off = [("xpack.security.enabled".to_owned(), "false".to_owned())];
    snapshot.configs = KnownConfigs::default();
    snapshot.configs.add("a", &Settings::new());
    snapshot.configs.add("b", &Settings::from(off));
    let engine = snapshot.engine.as_mut().expect("it answers");
    // The node that answers is the first one.
    engine.version = format!("elasticsearch {}", versions[0]);
    for (node, version) in engine.nodes.iter_mut().zip(versions) {
        node.version = version.to_owned();
    }
    snapshot
}

/// Strategy of the restart that the reconciler begins by itself, unless it waits for a person.
fn restarted(mut snapshot: Snapshot) -> Option<Strategy> {
    let policy = Policy { on_config_change: OnConfigChange::Auto, ..Policy::default() };
    for _ in 0..3 {
        let made = plan(&snapshot, &policy);
        let written = made.actions.into_iter().find_map(|action| match action {
            Action::WriteLedger(ledger) => Some(ledger),
            _ => None,
        });
        let Some(written) = written else {
            let waits = |code| made.waiting.iter().any(|wait| wait.code == code);
            assert!(waits(Code::NeedsCoordinated), "{:#?}", made.waiting);
            return None;
        };
        if let Some(restart) = &written.restart {
            return Some(restart.request.strategy);
        }
        snapshot.ledger = *written;
    }
    panic!("it never rests: {:?}", snapshot.ledger);
}

#[test] // proves UPDATE-73
fn a_change_of_config_is_judged_by_the_version_that_runs_before_it() {
    // Up to 7, nothing said is off.
    let before = security_is_turned_off(["7.17.29", "7.17.29", "7.17.29"]);
    assert_eq!(restarted(before), Some(Strategy::Rolling));
    // From 8 on it is on.
    assert_eq!(restarted(security_is_turned_off(["8.19.0", "8.19.0", "8.19.0"])), None);
}

#[test] // proves UPDATE-73
fn an_upgraded_node_that_answers_does_not_change_the_answer() {
    let midway = security_is_turned_off(["8.19.0", "7.17.29", "7.17.29"]);
    assert_eq!(restarted(midway), Some(Strategy::Rolling));
}
