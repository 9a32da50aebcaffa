//! What `docs/runbook/allocation.md` says to type once the reconciler is gone for good, as written there.

use std::fs;
use std::process::Command;
use std::time::Duration;

use stayput_engine::{Allocation, Engine, EngineClient, Members, Topology, Voting};

use super::three::MARK;
use super::wait;
use crate::support::cluster::Cluster;
use crate::support::wait::eventually;

/// Allocation is limited, a node has no vote, and another one has a record of a shutdown. Afterwards nothing of
/// this is left.
pub(super) fn undone_by_hand(
    cluster: &Cluster,
    client: &EngineClient,
    engine: &Engine,
    members: &Members,
) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/runbook/allocation.md");
    let page = fs::read_to_string(page).expect("the page");
    let member = &cluster.members[0];
    let url = format!("http://{}:{}", member.address, cluster.ports.http);
    let before = wait(client.allocation(engine)).expect("settings");
    // The harder case: a transient value comes before a persistent one.
    assert!(before.transient.is_some(), "{before:?}");
    wait(client.tighten(&before, "primaries", MARK)).expect("limited");
    // The master that answers may end before it has answered.
    let _ = wait(client.exclude_voter(engine, &members.nodes[2].name));
    eventually("the vote is taken away", || (excluded(client, engine)? == 1).then_some(()));
    run(&url, block(&page, "```curl\n"));
    assert_eq!(wait(client.allocation(engine)).expect("settings"), Allocation::default());
    eventually("all may vote", || (excluded(client, engine)? == 0).then_some(()));
    if engine.has_node_shutdown {
        let node = &members.nodes[1].id;
        wait(client.put_restart_record(node, "r-1", Duration::from_secs(1200))).expect("a record");
        let lines = block(&page, "```console\n").replace("$ curl", "curl");
        let printed = run(&url, &lines.replace("NODE_ID", node));
        assert!(printed.contains("\"reason\":\"r-1\""), "{printed}");
        assert_eq!(wait(client.shutdown_records()).expect("records"), []);
    }
}

/// The first block of the page that begins so.
fn block<'a>(page: &'a str, fence: &str) -> &'a str {
    let (_, rest) = page.split_once(fence).expect("a block");
    rest.split_once("```").expect("its end").0
}

/// How many nodes are excluded from voting.
fn excluded(client: &EngineClient, engine: &Engine) -> Option<usize> {
    let Ok(Topology { voting, .. }) = wait(client.topology(engine, None)) else { return None };
    match voting {
        Voting::Configurations { excluded, .. } => Some(excluded.len()),
        Voting::MinimumMasterNodes(_) => None,
    }
}

/// Runs the lines; an answer that is an error is one of the script.
#[track_caller]
fn run(engine: &str, lines: &str) -> String {
    let script = lines.replace("curl -sS", "curl -sS --fail-with-body");
    let output = Command::new("sh").args(["-ec", &script]).env("ENGINE", engine).output();
    let output = output.expect("a shell");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{printed}{errors}");
    printed
}
