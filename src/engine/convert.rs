//! Converts the engine client's types to those that decisions are made from. Pure.

use std::sync::Arc;

use stayput_restart::{
    Allocation, AllocationBefore, Color, Health, Known, Node, Record, RunningSnapshot, ShardCopies,
    ShardCopy, Time, Unknown, Voting,
};

use crate::{EngineError, RecordKind, RecordStatus};

pub fn known<T>(result: Result<T, EngineError>) -> Known<T> {
    result.map_err(|error| Unknown { message: error.to_string() })
}

fn many(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub fn health(health: &crate::Health) -> Health {
    Health {
        color: match health.status {
            crate::Color::Green => Color::Green,
            crate::Color::Yellow => Color::Yellow,
            crate::Color::Red => Color::Red,
            crate::Color::Unknown => Color::Unknown,
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

pub fn voting(voting: &crate::Voting) -> Voting {
    match voting {
        crate::Voting::Configurations { committed, accepted, exclusions } => {
            Voting::Configurations {
                committed: committed.clone(),
                accepted: accepted.clone(),
                excluded: exclusions.clone(),
            }
        }
        crate::Voting::MinimumMasterNodes(minimum) => Voting::MinimumMasterNodes(*minimum),
    }
}

pub fn node(node: &crate::Node, zone: &str) -> Node {
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

pub fn shards(shards: &[crate::Shard]) -> ShardCopies {
    let copy = |shard: &crate::Shard| ShardCopy {
        index: Arc::clone(&shard.index),
        shard: shard.number,
        primary: shard.primary,
        search_only: shard.search_only,
        started: shard.state.serves(),
        node: shard.node_name.clone(),
    };
    shards.iter().map(copy).collect()
}

pub fn allocation(allocation: crate::Allocation) -> Allocation {
    Allocation {
        marker: allocation.marker.and_then(|text| serde_json::from_str(&text).ok()),
        setting: AllocationBefore {
            persistent: allocation.persistent,
            transient: allocation.transient,
        },
    }
}

pub fn record(record: crate::Record) -> Record {
    Record {
        preparing: record.preparing().map(str::to_owned).collect(),
        node_id: record.node_id,
        is_restart: record.kind == RecordKind::Restart,
        reason: record.reason,
        complete: record.status == RecordStatus::Complete,
    }
}
