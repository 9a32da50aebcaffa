//! Converts the engine client's types to those that decisions are made from. Pure.

use std::sync::Arc;

use crate::engine_client::{self, EngineError, RecordKind, RecordStatus};
use stayput_restart::{
    Allocation, AllocationBefore, Color, Health, Known, Node, Record, RunningSnapshot, ShardCopies,
    ShardCopy, Time, Unknown, Voting,
};

pub(super) fn known<T>(result: Result<T, EngineError>) -> Known<T> {
    result.map_err(|error| Unknown { message: error.to_string() })
}

fn many(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(crate) fn health(health: &engine_client::Health) -> Health {
    Health {
        color: match health.status {
            engine_client::Color::Green => Color::Green,
            engine_client::Color::Yellow => Color::Yellow,
            engine_client::Color::Red => Color::Red,
            engine_client::Color::Unknown => Color::Unknown,
        },
        timed_out: health.timed_out,
        data_nodes: many(health.number_of_data_nodes),
        initializing: many(health.initializing_shards),
        relocating: many(health.relocating_shards),
        unassigned: many(health.unassigned_shards),
        delayed: many(health.delayed_unassigned_shards),
        in_flight_fetch: many(health.number_of_in_flight_fetch),
    }
}

pub(super) fn voting(voting: &engine_client::Voting) -> Voting {
    match voting {
        engine_client::Voting::Configurations { committed, accepted, exclusions } => {
            Voting::Configurations {
                committed: committed.clone(),
                accepted: accepted.clone(),
                excluded: exclusions.clone(),
            }
        }
        engine_client::Voting::MinimumMasterNodes(minimum) => Voting::MinimumMasterNodes(*minimum),
    }
}

pub(super) fn node(node: &engine_client::Node, zone: &str) -> Node {
    Node {
        id: node.id.clone(),
        name: node.name.clone(),
        ephemeral_id: node.ephemeral_id.clone(),
        roles: node.roles.clone().unwrap_or_default(),
        roles_unknown: node.roles.is_none(),
        zone: node.attributes.get(zone).cloned(),
        version: node.version.as_ref().map(ToString::to_string).unwrap_or_default(),
        heap_max: node.heap_max,
        snapshot: node.snapshot.as_ref().map(|running| RunningSnapshot {
            name: running.name.clone(),
            since: Time(running.since_ms),
            shards: many(running.shards),
        }),
    }
}

pub(super) fn shards(shards: &[engine_client::Shard]) -> ShardCopies {
    let copy = |shard: &engine_client::Shard| ShardCopy {
        index: Arc::clone(&shard.index),
        shard: shard.number,
        primary: shard.primary,
        search_only: shard.search_only,
        started: shard.state.serves(),
        node: shard.node_name.clone(),
    };
    shards.iter().map(copy).collect()
}

pub(super) fn allocation(allocation: engine_client::Allocation) -> Allocation {
    Allocation {
        marker: allocation.marker.and_then(|text| serde_json::from_str(&text).ok()),
        setting: AllocationBefore {
            persistent: allocation.persistent,
            transient: allocation.transient,
        },
    }
}

pub(super) fn record(record: engine_client::Record) -> Record {
    Record {
        preparing: record.preparing().map(str::to_owned).collect(),
        node_id: record.node_id,
        is_restart: record.kind == RecordKind::Restart,
        reason: record.reason,
        complete: record.status == RecordStatus::Complete,
    }
}
