//! The engine delays its answer until its cluster is green, and for no other change: while one is
//! awaited it is asked again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::controller::metrics::{Metrics, Side};
use crate::controller::observe::health;
use crate::engine_client::EngineClient;
use stayput_restart::{Color, Health, Member, Node, Snapshot};

/// The first pause between two requests; each is half as long again as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause while a node is to join: its shards come back after that.
const MAX_PAUSE_OF_NODES: Duration = Duration::from_millis(250);
/// The longest pause otherwise.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The pause is at least so many times as long as the engine has worked for the answer.
const REST: u32 = 4;

/// The state that has to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The list of nodes: name and ephemeral id of each.
    Nodes(BTreeSet<(String, String)>),
    /// The health; none if it is not known.
    Health(Option<Health>),
}

impl Awaited {
    /// While a member is away or about to go it is the list of nodes, otherwise the health.
    pub(super) fn of(snapshot: &Snapshot) -> Option<Self> {
        let restart = snapshot.ledger.restart.as_ref()?;
        let engine = snapshot.engine.as_ref().ok();
        let nodes = engine.map(|engine| &engine.nodes).into_iter().flatten();
        let nodes: BTreeMap<&str, &Node> = nodes.map(|node| (node.name.as_str(), node)).collect();
        let is_back = |member: &Member| {
            nodes.get(member.node.as_str()).is_some_and(|node| member.is_new_process(node))
        };
        if restart.members.iter().any(|member| member.is_under_way() && !is_back(member)) {
            let known = nodes.values().map(|node| (node.name.clone(), node.ephemeral_id.clone()));
            return Some(Self::Nodes(known.collect()));
        }
        Some(Self::Health(engine.and_then(|engine| engine.health.clone().ok())))
    }
}

/// Completes once the engine has changed. Requests that fail are no change.
pub(super) async fn wait_for_change(
    client: Arc<EngineClient>,
    awaited: Awaited,
    metrics: Arc<Metrics>,
) {
    let (mut pause, mut next) = (FIRST_PAUSE, Instant::now() + FIRST_PAUSE);
    loop {
        sleep_until(next).await;
        let began = Instant::now();
        let (has_changed, longest, waited) = match &awaited {
            Awaited::Nodes(known) => {
                let members = client.members().await;
                metrics.count_request(Side::Engine, "members", members.is_ok());
                let has_changed = members.is_ok_and(|members| {
                    let nodes = members.nodes.into_iter();
                    let now: BTreeSet<(String, String)> =
                        nodes.map(|node| (node.name, node.ephemeral_id)).collect();
                    now != *known
                });
                (has_changed, MAX_PAUSE_OF_NODES, false)
            }
            Awaited::Health(Some(known)) if known.color != Color::Green => {
                let now = client.health_once_green().await;
                metrics.count_request(Side::Engine, "health", now.is_ok());
                // That of this request only says that the cluster is not green.
                let now = now.map(|now| Health { timed_out: known.timed_out, ..health(&now) });
                (now.is_ok_and(|now| now != *known), MAX_PAUSE, true)
            }
            Awaited::Health(known) => {
                let now = client.health().await;
                metrics.count_request(Side::Engine, "health", now.is_ok());
                (now.is_ok_and(|now| known.as_ref() != Some(&health(&now))), MAX_PAUSE, false)
            }
        };
        if has_changed {
            return;
        }
        let rest = if waited { Duration::ZERO } else { began.elapsed() * REST };
        next = (began + pause).max(Instant::now() + rest);
        pause = (pause * 3 / 2).min(longest);
    }
}
