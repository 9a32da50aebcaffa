//! Voters that are missed, beside who keeps a majority.

use crate::lookup::Names;
use crate::{Engine, Voting};

/// How many voters the engine does not list.
pub(super) fn missing_voters(engine: &Engine) -> usize {
    match &engine.voting {
        Ok(Voting::Configurations { committed, accepted, .. }) => {
            let listed: Names<'_> = engine.nodes.iter().map(|node| node.id.as_str()).collect();
            committed.union(accepted).filter(|id| !listed.contains(id.as_str())).count()
        }
        // Nobody knows how many there are, or who; `quorum` sees to it.
        Ok(Voting::MinimumMasterNodes(_)) | Err(_) => 0,
    }
}
