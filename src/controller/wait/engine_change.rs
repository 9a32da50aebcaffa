//! Waits for changes of the engine. It delays its answer until its cluster is green, or until it has more
//! nodes, and for no other change: for any other it is asked again and again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::metrics::{Metrics, Side};
use crate::observe::not_back;
use stayput_engine::EngineClient;
use stayput_restart::{Color, Health, Ledger, Member, Node, Snapshot};

/// First pause between two requests; each is half as long again as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause while a node is to leave or to join.
const MAX_PAUSE_OF_NODES: Duration = Duration::from_millis(250);
/// Longest pause otherwise.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Least pause, as a multiple of the time that the engine worked for the answer.
const REST: u32 = 4;

/// Name and ephemeral id of each node.
pub(crate) type Processes = BTreeSet<(String, String)>;

/// The state that has to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The list of nodes.
    Nodes(Processes),
    /// The list of nodes; a node is to join, and its former process is off the list.
    Join(Processes),
    /// The health, if it is known.
    Health(Option<Health>),
}

impl Awaited {
    /// The list of nodes while a member is away or about to go, otherwise the health; `None` without a
    /// restart.
    pub(super) fn of(snapshot: &Snapshot) -> Option<Self> {
        snapshot.ledger.restart.as_ref()?;
        let engine = snapshot.engine.as_ref().ok();
        let nodes = Self::of_nodes(&snapshot.ledger, engine.map(|engine| &*engine.nodes));
        let health = || Self::Health(engine.and_then(|engine| engine.health.clone().ok()));
        Some(nodes.unwrap_or_else(health))
    }

    /// The list of nodes, unless all members under way are back.
    fn of_nodes(ledger: &Ledger, listed: Option<&[Node]>) -> Option<Self> {
        let nodes = listed.unwrap_or_default();
        let processes = nodes.iter().map(|node| (node.name.as_str(), node.ephemeral_id.as_str()));
        let not_back = not_back(ledger.under_way(), processes);
        let known = names_and_ids(nodes);
        if not_back == 0 {
            None
        } else if listed.is_none() || !one_is_absent(ledger.under_way(), nodes) {
            Some(Self::Nodes(known))
        } else {
            Some(Self::Join(known))
        }
    }

    /// The state to wait for after the engine reported a node that has joined `joined`. If a look has read
    /// that list all the same, the node that it asked lags behind, and the engine would report the same at
    /// once: then the list is read until it changes.
    pub(super) fn after_join(self, joined: Option<&Processes>) -> Self {
        match self {
            Self::Join(known) if joined == Some(&known) => Self::Nodes(known),
            other => other,
        }
    }

    /// The list of nodes that another node is to join.
    pub(super) fn to_be_joined(&self) -> Option<&Processes> {
        match self {
            Self::Join(known) => Some(known),
            Self::Nodes(_) | Self::Health(_) => None,
        }
    }

    /// True if the engine delays its answer until this state changes.
    fn is_waited_for_by_the_engine(&self) -> bool {
        match self {
            Self::Nodes(_) | Self::Health(None) => false,
            Self::Join(_) => true,
            Self::Health(Some(known)) => known.color != Color::Green,
        }
    }
}

/// True if one of these members has no process in the list: its next one makes the list longer.
fn one_is_absent<'a>(mut members: impl Iterator<Item = &'a Member>, nodes: &[Node]) -> bool {
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    members.any(|member| !names.contains(member.node.as_str()))
}

fn names_and_ids(nodes: &[Node]) -> Processes {
    nodes.iter().map(|node| (node.name.clone(), node.ephemeral_id.clone())).collect()
}

/// Completes once the engine has changed. Requests that fail are no change.
pub(super) async fn wait_for_change(
    client: Arc<EngineClient>,
    awaited: Awaited,
    metrics: Arc<Metrics>,
) {
    let mut pause = FIRST_PAUSE;
    // If the engine waits, we need no pause.
    let mut next = if awaited.is_waited_for_by_the_engine() {
        Instant::now()
    } else {
        Instant::now() + FIRST_PAUSE
    };
    loop {
        sleep_until(next).await;
        let began = Instant::now();
        let (has_changed, longest, waited) = match &awaited {
            Awaited::Nodes(known) => {
                (list_differs(&client, known, &metrics).await, MAX_PAUSE_OF_NODES, false)
            }
            Awaited::Join(known) => {
                let joined = client.health_once_nodes(known.len() + 1).await;
                metrics.count_request(Side::Engine, "health", joined.is_ok());
                let is_longer = joined.as_ref().is_ok_and(|joined| !joined.timed_out);
                // Also if there are no more nodes: one may have joined and another one left.
                let has_changed = is_longer || list_differs(&client, known, &metrics).await;
                (has_changed, MAX_PAUSE_OF_NODES, joined.is_ok())
            }
            Awaited::Health(Some(known)) if awaited.is_waited_for_by_the_engine() => {
                let now = client.health_once_green().await;
                metrics.count_request(Side::Engine, "health", now.is_ok());
                // `timed_out` of this request only says that the cluster is not green.
                let now = now.map(|now| Health { timed_out: known.timed_out, ..now });
                (now.is_ok_and(|now| now != *known), MAX_PAUSE, true)
            }
            Awaited::Health(known) => {
                let now = client.health().await;
                metrics.count_request(Side::Engine, "health", now.is_ok());
                (now.is_ok_and(|now| known.as_ref() != Some(&now)), MAX_PAUSE, false)
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

/// True if the list of nodes differs from this one.
async fn list_differs(client: &EngineClient, known: &Processes, metrics: &Metrics) -> bool {
    let members = client.members().await;
    metrics.count_request(Side::Engine, "members", members.is_ok());
    members.is_ok_and(|members| {
        let nodes = members.nodes.into_iter();
        let now: Processes = nodes.map(|node| (node.name, node.ephemeral_id)).collect();
        now != *known
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::atomic::{AtomicU32, Ordering};

    use serde_json::{Value, from_value, json};

    use crate::observe::engine::tests::served;
    use stayput_engine::Access;

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
    fn the_list_gets_longer_once_the_process_before_is_off_it() {
        let member = Member { node: "logs-0".into(), ..Member::default() };
        let is_absent = |listed| one_is_absent([&member].into_iter(), &nodes(listed));
        assert!(!is_absent(&[("logs-0", "old-0"), ("logs-1", "old-1")]));
        assert!(is_absent(&[("logs-1", "old-1")]));
        assert!(Awaited::Join(BTreeSet::new()).is_waited_for_by_the_engine());
        assert!(!Awaited::Nodes(BTreeSet::new()).is_waited_for_by_the_engine());
    }

    #[test] // proves RESTART-42
    fn a_list_that_a_node_has_joined_and_that_is_read_as_it_was_is_read_until_it_changes() {
        let list = |id: &str| Processes::from([("logs-0".to_owned(), id.to_owned())]);
        let next = |joined: Option<&Processes>| Awaited::Join(list("a")).after_join(joined);
        assert_eq!(next(None), Awaited::Join(list("a")));
        assert_eq!(next(Some(&list("b"))), Awaited::Join(list("a")));
        assert_eq!(next(Some(&list("a"))), Awaited::Nodes(list("a")));
        assert_eq!(next(None).to_be_joined(), Some(&list("a")));
        assert_eq!(next(Some(&list("a"))).to_be_joined(), None);
    }

    /// Waits for a change of an engine that says this of its health; returns how often its nodes were read,
    /// which are others than the awaited ones.
    async fn waited(awaited: Awaited, changes: &Value) -> u32 {
        let mut health = json!({
            "cluster_name": "logs", "status": "green", "timed_out": false,
            "number_of_nodes": 2, "number_of_data_nodes": 2, "initializing_shards": 0,
            "relocating_shards": 0, "unassigned_shards": 0, "delayed_unassigned_shards": 0,
            "number_of_pending_tasks": 0, "number_of_in_flight_fetch": 0,
        });
        for (key, value) in changes.as_object().expect("an object") {
            health[key] = value.clone();
        }
        let reads = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&reads);
        let endpoint = served(move |target| {
            if target.starts_with("/_cluster/health") {
                return Some(health.clone());
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let node = json!({
                "name": "logs-1", "ephemeral_id": "new", "transport_address": "10.0.0.7:9300",
            });
            let coordination =
                json!({ "last_committed_config": ["a"], "last_accepted_config": ["a"] });
            Some(json!({
                "cluster_uuid": "uuid", "version": 7, "master_node": "a", "nodes": { "a": node },
                "metadata": { "cluster_coordination": coordination },
            }))
        })
        .await;
        let client = EngineClient::new(&[endpoint], &Access::Plain, Duration::from_secs(10));
        let client = Arc::new(client.expect("a client"));
        wait_for_change(client, awaited, Arc::new(Metrics::new())).await;
        reads.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn a_list_that_got_longer_is_not_read_to_see_that_it_differs() {
        let known = || Awaited::Join([("logs-0".to_owned(), "old".to_owned())].into());
        assert_eq!(waited(known(), &json!({})).await, 0);
        assert_eq!(waited(known(), &json!({ "timed_out": true })).await, 1);
    }

    #[test]
    fn of_two_nodes_with_one_name_both_are_known() {
        let known = names_and_ids(&nodes(&[("logs-0", "old"), ("logs-0", "other")]));
        let pair = |id: &str| ("logs-0".to_owned(), id.to_owned());
        assert_eq!(known, BTreeSet::from([pair("old"), pair("other")]));
    }
}
