//! The engine has no long poll: while a change is awaited it is asked again and again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::controller::metrics::{Metrics, Side};
use crate::controller::observe::health;
use crate::engine_client::EngineClient;
use stayput_restart::{Health, Member, Snapshot};

/// The first pause between two requests; each is half as long again as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// The state that has to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The list of nodes: name and ephemeral id of each.
    Nodes(BTreeSet<(String, String)>),
    /// The health; none if it is not known.
    Health(Option<Health>),
}

impl Awaited {
    /// While a member is under way it is the list of nodes, between two members the health.
    pub(super) fn of(snapshot: &Snapshot) -> Option<Self> {
        let restart = snapshot.ledger.restart.as_ref()?;
        let engine = snapshot.engine.as_ref().ok();
        if restart.members.iter().any(Member::is_under_way) {
            let nodes = engine.map(|engine| &engine.nodes).into_iter().flatten();
            let nodes = nodes.map(|node| (node.name.clone(), node.ephemeral_id.clone()));
            return Some(Self::Nodes(nodes.collect()));
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
    let mut pause = FIRST_PAUSE;
    loop {
        sleep(pause).await;
        pause = (pause * 3 / 2).min(MAX_PAUSE);
        let has_changed = match &awaited {
            Awaited::Nodes(known) => {
                let members = client.members().await;
                metrics.count_request(Side::Engine, "members", members.is_ok());
                members.is_ok_and(|members| {
                    let nodes = members.nodes.into_iter();
                    let now: BTreeSet<(String, String)> =
                        nodes.map(|node| (node.name, node.ephemeral_id)).collect();
                    now != *known
                })
            }
            Awaited::Health(known) => {
                let now = client.health().await;
                metrics.count_request(Side::Engine, "health", now.is_ok());
                now.is_ok_and(|now| known.as_ref() != Some(&health(&now)))
            }
        };
        if has_changed {
            return;
        }
    }
}
