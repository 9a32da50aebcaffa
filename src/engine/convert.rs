//! Converts the engine client's types to those that decisions are made from. Pure.

use std::sync::Arc;

use stayput_restart::{
    Allocation, AllocationBefore, Known, Node, Record, ShardCopies, ShardCopy, Unknown,
};

use crate::{EngineError, RecordKind, RecordStatus};

pub fn known<T>(result: Result<T, EngineError>) -> Known<T> {
    result.map_err(|error| Unknown { message: error.to_string() })
}

/// A number of an engine's answer; a larger one than fits is the largest that does.
pub(crate) fn many(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
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
        snapshot: node.snapshot.clone(),
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
        excluded: allocation.excluded,
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
