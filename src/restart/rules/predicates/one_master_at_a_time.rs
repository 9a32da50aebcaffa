//! One master-eligible node at a time.

use super::{Check, Evaluation, Peer, Predicate, block};

/// A master-eligible node is restarted only while no other one is, and, if it serves, only while all
/// others serve. This includes `voting_only` nodes: a majority needs them.
///
/// In place a node keeps its roles. Master-eligible nodes of one batch count as one; `quorum` checks
/// that enough of them stay.
pub(super) fn one_master_at_a_time(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !candidate.is_master {
        return Ok(());
    }
    let counts = &evaluation.counts;
    let (restarting, missing) = (&counts.masters_under_way, &counts.missing_masters);
    if restarting.count > 0 {
        return wait(
            candidate,
            &format!("{restarting} {} being restarted", restarting.or("is", "are")),
        );
    }
    if !candidate.is_healthy {
        return Ok(());
    }
    if missing.count > 0 {
        return wait(candidate, &format!("{missing} {} not serve", missing.or("does", "do")));
    }
    // A voter that is not in the cluster may be one of the nodes whose roles are unknown.
    let voters = evaluation.missing_voters().min(counts.unlisted.count);
    if voters > 0 {
        let message = format!(
            "{voters} voting nodes are not in the cluster, and {} may be one of them",
            counts.unlisted
        );
        return wait(candidate, &message);
    }
    Ok(())
}

fn wait(candidate: &Peer<'_>, reason: &str) -> Check {
    block(
        Predicate::OneMaster,
        format!(
            "{} is not stopped: one master-eligible node goes at a time, while all others serve, \
             and {reason}: waits until all serve; repair a node that does not come back by itself",
            candidate.name()
        ),
    )
}
