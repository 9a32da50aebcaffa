//! The facts that are compared before and after a restart.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::engine::Network;
use super::kubernetes::Kubernetes;
use crate::error::Result;
use crate::http::ask_engine;
use crate::pod::expect;

/// Pause between two observations.
const PAUSE: Duration = Duration::from_millis(50);

/// What a restart may change, and what it must not change.
pub(super) struct Facts {
    /// Uid of each pod.
    uids: BTreeMap<String, String>,
    /// Ephemeral id of each engine process, by node.
    processes: BTreeMap<String, String>,
    /// `node.attr.round` of each node.
    rounds: BTreeMap<String, String>,
    /// The transport address of each node.
    transports: BTreeMap<String, String>,
    /// `cluster.routing.allocation.enable`.
    pub(super) allocation: Option<Value>,
}

impl Facts {
    /// Asks apiserver and engine for the facts.
    pub(super) fn observe(kubernetes: &Kubernetes, network: &Network) -> Result<Self> {
        let nodes = ask(network, "/_nodes")?;
        let nodes = nodes["nodes"].as_object().ok_or("/_nodes lists no nodes")?;
        let of = |pointer: &str| -> Result<BTreeMap<String, String>> {
            let field = |node: &Value| {
                let name = node["name"].as_str()?.to_owned();
                Some((name, node.pointer(pointer)?.as_str()?.to_owned()))
            };
            let fields: Option<_> = nodes.values().map(field).collect();
            fields.ok_or_else(|| format!("/_nodes lacks {pointer}").into())
        };
        let settings = ask(network, "/_cluster/settings?flat_settings=true")?;
        let allocation = ["persistent", "transient"]
            .iter()
            .find_map(|kind| settings[kind].get("cluster.routing.allocation.enable"));
        Ok(Self {
            uids: kubernetes.pod_uids()?,
            processes: of("/ephemeral_id").or_else(|_| ephemeral(network))?,
            rounds: of("/attributes/round")?,
            transports: of("/transport_address")?,
            allocation: allocation.cloned(),
        })
    }

    /// Checks that nothing was restarted.
    pub(super) fn expect_same_processes(&self, before: &Self) -> Result<()> {
        expect(&self.processes, &before.processes, "the engine processes")
    }

    /// Checks the promises about a restart.
    pub(super) fn expect_restarted(
        &self,
        before: &Self,
        round: &str,
        transport: u16,
    ) -> Result<()> {
        expect(&self.uids, &before.uids, "the uids of the pods")?;
        expect(self.processes.len(), 3, "the number of nodes")?;
        for (node, process) in &self.processes {
            if before.processes.get(node) == Some(process) {
                return Err(format!("{node} is the process that it was before the restart").into());
            }
            expect(self.rounds[node].as_str(), round, "node.attr.round")?;
            let port = self.transports[node].rsplit(':').next().map(str::to_owned);
            expect(port, Some(transport.to_string()), "the port of transport_address")?;
        }
        Ok(())
    }
}

/// From the cluster state, because `/_nodes` of OpenSearch does not contain them.
fn ephemeral(network: &Network) -> Result<BTreeMap<String, String>> {
    let state = ask(network, "/_cluster/state/nodes")?;
    let nodes = state["nodes"].as_object().ok_or("/_cluster/state/nodes lists no nodes")?;
    let pair = |node: &Value| {
        Some((node["name"].as_str()?.to_owned(), node["ephemeral_id"].as_str()?.to_owned()))
    };
    let pairs: Option<_> = nodes.values().map(pair).collect();
    pairs.ok_or_else(|| "/_cluster/state/nodes lacks ephemeral ids".into())
}

/// `GET` at the first node that answers.
fn ask(network: &Network, target: &str) -> Result<Value> {
    let mut last = "no node was asked".into();
    for (host, port) in network.addresses() {
        match ask_engine((&host, port), "GET", target, None) {
            Ok(answer) if answer.status == 200 => return Ok(answer.body),
            Ok(answer) => last = format!("{target}: {} {}", answer.status, answer.body).into(),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Waits until all three nodes are one green cluster.
pub(super) fn until_formed(network: &Network, timeout: Duration) -> Result<()> {
    let target = "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=1s";
    until("three nodes, green", timeout, || {
        let health = ask(network, target);
        health.is_ok_and(|health| health["timed_out"] == false).then_some(())
    })
}

/// Calls `poll` until it returns something.
pub(super) fn until<T>(
    what: &str,
    timeout: Duration,
    mut poll: impl FnMut() -> Option<T>,
) -> Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = poll() {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("{timeout:?} passed without {what}").into());
        }
        thread::sleep(PAUSE);
    }
}
