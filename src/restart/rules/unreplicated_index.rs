//! An index without replicas: its shards are unavailable while their node is down.

use super::{copies::ShardName, evaluation::Evaluation, peer::Peer};
use crate::Code;
use crate::blocker::{Blocker, Check, refuse};
use crate::shell::shell_word;
use crate::snapshot::namespace_and_name;

/// Blocks a node that holds the only copy of a shard whose index has no replicas: waiting would not help. The
/// published rules allow such a stop. Here it needs the consent of the request, for this index; or an outage
/// must be allowed.
///
/// Searchable snapshots are exempt. They have no replicas by nature, their data is in a repository,
/// and a node that comes back, or another one, reads it from there again.
pub(super) fn check(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if evaluation.allows_outage(candidate) {
        return Ok(());
    }
    let may_be_unavailable = |shard: &ShardName<'_>| {
        evaluation.is_searchable_snapshot(shard.index)
            || (candidate.is_requested && evaluation.is_consented(shard.index))
    };
    let single = evaluation.copies().single(candidate.name());
    let single = single.map_err(Blocker::engine_unreachable)?;
    let mut blocking = single.filter(|shard| !may_be_unavailable(shard));
    let Some(shard) = blocking.next() else { return Ok(()) };
    let more = super::more_shards(1 + blocking.count());
    let snapshots = match &evaluation.engine.searchable_snapshots {
        Ok(_) => String::new(),
        Err(unknown) => format!(
            "; a searchable snapshot would not block, but which indices are is unknown: {}",
            unknown.message
        ),
    };
    let (namespace, cluster) = namespace_and_name(evaluation.cluster);
    refuse(
        Code::UnreplicatedIndex,
        format!(
            "{} holds the only copy of {shard}, which has no replica{more}: add a replica \
             (index.number_of_replicas), or cancel this restart and request one that accepts that \
             this index is unavailable until the node is back: `kubectl stayput -n {namespace} \
             restart {cluster} --allow-unreplicated {}`{snapshots}",
            candidate.name(),
            shell_word(shard.index)
        ),
    )
}

/// End of a message: the candidate's shards that have no other copy and are unavailable until it is back;
/// empty without such shards.
pub(super) fn unavailable(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> String {
    let Ok(mut single) = evaluation.copies().single(candidate.name()) else { return String::new() };
    let Some(first) = single.next() else { return String::new() };
    let (more, are) = match single.count() {
        0 => (String::new(), "is"),
        more => (format!(" and {more} more shards"), "are"),
    };
    format!("; {first}{more} {are} unavailable until it is back: there is no other copy")
}
