//! The order of data tiers: nodes wait for others so that data can move on through the tiers while nodes run
//! on different configs.

use std::collections::BTreeSet;

use crate::snapshot::hold_data;

/// The tiers whose data a node may hold, and whether it is master-eligible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tiers {
    master: bool,
    hot: bool,
    warm: bool,
    cold: bool,
    frozen: bool,
}

impl Tiers {
    /// Tiers of a node with these roles, if it holds data. The role `data` means every tier.
    pub(super) fn of(roles: &BTreeSet<String>) -> Option<Self> {
        let mut tiers = Self::default();
        for role in roles {
            match role.as_str() {
                "master" | "cluster_manager" => tiers.master = true,
                "data" => {
                    tiers = Self { hot: true, warm: true, cold: true, frozen: true, ..tiers };
                }
                "data_hot" => tiers.hot = true,
                // OpenSearch 3 calls this role `warm`.
                "data_warm" | "warm" => tiers.warm = true,
                "data_cold" => tiers.cold = true,
                "data_frozen" => tiers.frozen = true,
                _ => {}
            }
        }
        hold_data(roles).then_some(tiers)
    }

    /// True if a node of these tiers waits for one of `other`. Two nodes never wait for each other.
    pub(super) const fn wait_for(self, other: Self) -> bool {
        self.depends_on(other) && !other.depends_on(self)
    }

    /// True if a node of `other` should go first: data moves from the hot tier to the frozen tier, so the
    /// tier that receives data goes first. A node that is not master-eligible does not wait for one that is.
    const fn depends_on(self, other: Self) -> bool {
        (self.master || !other.master)
            && (self.hot && (other.warm || other.cold || other.frozen)
                || self.warm && (other.cold || other.frozen)
                || self.cold && other.frozen)
    }
}
