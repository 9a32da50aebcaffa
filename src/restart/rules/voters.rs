//! Counts the voters that are not in the cluster.

use crate::lookup::NameSet;
use crate::{Engine, Voting};

/// Number of voters that the engine does not list.
pub(super) fn missing_voters(engine: &Engine) -> usize {
    match &engine.voting {
        Ok(Voting::Configurations { committed, accepted, .. }) => {
            let listed: NameSet<'_> = engine.nodes.iter().map(|node| node.id.as_str()).collect();
            committed.union(accepted).filter(|id| !listed.contains(id.as_str())).count()
        }
        // The number of voters is unknown; `quorum` handles that case.
        Ok(Voting::MinimumMasterNodes(_)) | Err(_) => 0,
    }
}
