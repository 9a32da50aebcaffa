//! The comparison: how long reading the snapshot once takes.

use stayput_restart::{Pod, ShardCopies, ShardCopy, Snapshot};

/// Reads every text of every pod, node and shard copy once.
pub(super) fn sum(snapshot: &Snapshot) -> u64 {
    let bytes = |text: &str| text.bytes().map(u64::from).sum::<u64>();
    let pod = |pod: &Pod| {
        let manager = pod.manager.as_ref().ok();
        let run = manager.and_then(|manager| manager.run.as_ref()?.checksum.as_deref());
        let uid = manager.and_then(|manager| manager.pod_uid.as_deref());
        [Some(&*pod.uid), Some(&*pod.name), Some(&*pod.node), uid, run]
            .into_iter()
            .flatten()
            .chain(pod.annotations.values().map(String::as_str))
            .map(bytes)
            .sum::<u64>()
    };
    let engine = snapshot.engine.iter();
    let nodes = engine.clone().flat_map(|engine| &engine.nodes);
    let copies = engine.flat_map(|engine| engine.shards.iter().flat_map(ShardCopies::iter));
    let copy = |copy: ShardCopy<&str>| bytes(copy.index) + copy.node.map_or(0, bytes);
    snapshot.pods.iter().map(pod).sum::<u64>()
        + nodes.map(|node| bytes(&node.id) + bytes(&node.name)).sum::<u64>()
        + copies.map(copy).sum::<u64>()
}
