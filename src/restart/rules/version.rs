//! Compares the versions of running nodes.

use super::{evaluation::Evaluation, peer::Peer};

impl Evaluation<'_> {
    /// True if another node in the cluster runs a newer version.
    pub(super) fn is_behind(&self, candidate: &Peer<'_>) -> bool {
        let newest = self.newest.get_or_init(|| {
            self.engine.nodes.iter().filter_map(|node| numbers(&node.version)).max()
        });
        let own = candidate.node.and_then(|node| numbers(&node.version));
        // A version that is not made of numbers is not compared.
        own.is_some_and(|own| newest.as_ref().is_some_and(|newest| own < *newest))
    }
}

/// Numbers of a version: 8, 19, 0 of `8.19.0-SNAPSHOT`. `None`: it is not made of numbers.
pub(crate) fn numbers(version: &str) -> Option<Vec<u64>> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map(|number| number.parse().ok()).collect()
}
