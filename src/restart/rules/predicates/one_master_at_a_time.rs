//! One master-eligible node at a time.

use super::{Check, Evaluation, Peer, Predicate, no};

/// A master-eligible node is restarted only while no other one is, and, if it serves, while all
/// others serve. Those that are `voting_only` are some as well: a majority needs them.
///
/// In place a node keeps its roles. Masters that go together, as a zone does, count as one; that
/// enough of them stay is the matter of `quorum`.
pub(super) fn one_master_at_a_time(pass: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !candidate.is_master() {
        return Ok(());
    }
    let census = &pass.census;
    let (busy, missing) = (&census.masters_under_way, &census.missing_masters);
    if busy.count > 0 {
        return wait(candidate, &format!("{busy} {} being restarted", busy.or("is", "are")));
    }
    if !candidate.healthy {
        return Ok(());
    }
    if missing.count > 0 {
        return wait(candidate, &format!("{missing} {} not serve", missing.or("does", "do")));
    }
    // A voter that is not in the cluster may be one of the nodes whose roles nobody knows.
    let voters = pass.missing_voters().min(census.unlisted.count);
    if voters > 0 {
        let message = format!(
            "{voters} of the nodes that elect the master are not in the cluster, and {} may be \
             among them",
            census.unlisted
        );
        return wait(candidate, &message);
    }
    Ok(())
}

fn wait(candidate: &Peer<'_>, why: &str) -> Check {
    no(
        Predicate::OneMaster,
        format!(
            "{} is not stopped: one master-eligible node goes at a time, while all others serve, \
             and {why}: waits until all do; one that does not come back by itself has to be repaired",
            candidate.name()
        ),
    )
}
