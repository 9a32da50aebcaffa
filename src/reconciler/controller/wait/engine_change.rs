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
        snapshot.ledger.restart.as_ref()?;
        let engine = snapshot.engine.as_ref().ok();
        let nodes = engine.map_or(&[][..], |engine| &engine.nodes);
        if all_are_back(snapshot.ledger.under_way(), nodes) {
            return Some(Self::Health(engine.and_then(|engine| engine.health.clone().ok())));
        }
        Some(Self::Nodes(names_and_ids(nodes)))
    }
}

/// Whether each of these members has a new process in the list. Two nodes may have one name.
fn all_are_back<'a>(members: impl Iterator<Item = &'a Member>, nodes: &[Node]) -> bool {
    let by_name: BTreeMap<&str, &Member> =
        members.map(|member| (member.node.as_str(), member)).collect();
    let is_back = |node: &&Node| {
        by_name.get(node.name.as_str()).is_some_and(|member| member.is_new_process(node))
    };
    let back: BTreeSet<&str> =
        nodes.iter().filter(is_back).map(|node| node.name.as_str()).collect();
    back.len() == by_name.len()
}

fn names_and_ids(nodes: &[Node]) -> BTreeSet<(String, String)> {
    nodes.iter().map(|node| (node.name.clone(), node.ephemeral_id.clone())).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::{Value, from_value, json};

    /// Name and ephemeral id of each.
    fn nodes(listed: &[(&str, &str)]) -> Vec<Node> {
        let node = |(name, ephemeral_id): &(&str, &str)| -> Value {
            json!({
                "id": format!("id of {ephemeral_id}"), "name": name, "ephemeralId": ephemeral_id,
                "roles": [], "zone": null, "version": "2.19.3",
            })
        };
        from_value(listed.iter().map(node).collect()).unwrap()
    }

    #[test]
    fn a_member_is_back_once_a_new_process_of_its_name_is_listed() {
        let member = |node: &str, before: &str| Member {
            node: node.into(),
            ephemeral_id: Some(before.into()),
            ..Member::default()
        };
        let members = [member("logs-0", "old-0"), member("logs-1", "old-1")];
        for (listed, expected) in [
            (&[("logs-2", "old-2")][..], false),
            (&[("logs-0", "new-0"), ("logs-1", "old-1")], false),
            (&[("logs-0", "new-0"), ("logs-0", "other"), ("logs-1", "old-1")], false),
            (&[("logs-0", "new-0"), ("logs-1", "new-1")], true),
            (&[("logs-0", "old-0"), ("logs-0", "new-0"), ("logs-1", "new-1")], true),
        ] {
            assert_eq!(all_are_back(members.iter(), &nodes(listed)), expected, "{listed:?}");
        }
    }

    #[test]
    fn of_two_nodes_with_one_name_both_are_known() {
        let known = names_and_ids(&nodes(&[("logs-0", "old"), ("logs-0", "other")]));
        let pair = |id: &str| ("logs-0".to_owned(), id.to_owned());
        assert_eq!(known, BTreeSet::from([pair("old"), pair("other")]));
    }
}
