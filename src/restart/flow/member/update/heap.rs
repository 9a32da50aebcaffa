//! The heap of an engine, which a process gets when it is started: does it follow the memory of its
//! container?

use serde_json::Value;

use super::frozen_update::is_managers;
use crate::context::Context;
use crate::{Change, Member, Pod, PodUpdate, UpdateStep};

/// Maximum heap of the engine, in bytes, before its container gets another amount of memory, if it gets one
/// and the heap is known.
pub(super) fn heap_before(context: &Context<'_>, pod: &Pod, update: &PodUpdate) -> Option<u64> {
    let changes = &update.patch.resources;
    let is_changed = changes
        .iter()
        .any(|(container, change)| is_managers(pod, container) && changes_memory(change));
    let is_resized = update.step == UpdateStep::Resize && is_changed;
    is_resized.then(|| context.index.node(&pod.node)?.heap_max).flatten()
}

fn changes_memory(change: &Change) -> bool {
    let memory = |resources: &Option<String>| -> Option<Value> {
        let resources: Value = serde_json::from_str(resources.as_ref()?).ok()?;
        Some(resources["limits"]["memory"].clone())
    };
    memory(&change.seen) != memory(&change.wanted)
}

/// Message about a node that is back with another amount of memory and with the heap that it had.
pub(crate) fn kept_heap(context: &Context<'_>, member: &Member) -> Option<String> {
    let before = member.update.as_ref()?.heap?;
    let now = context.index.node(&member.node)?.heap_max?;
    (now == before).then(|| {
        format!(
            "The heap of {} stayed at {} MiB, although its container has another amount of memory: a fixed \
             -Xmx does not follow",
            member.node,
            now >> 20
        )
    })
}
