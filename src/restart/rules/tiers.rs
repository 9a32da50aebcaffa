//! Data tiers: which node has to wait for which, so that data can move on through the tiers while
//! nodes of different configs are in the cluster.

use crate::Node;

/// The tiers whose data a node may hold, and whether it can be elected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tiers {
    master: bool,
    hot: bool,
    warm: bool,
    cold: bool,
    frozen: bool,
}

impl Tiers {
    /// Of a node; none if it holds no data of a tier. The role `data` stands for every tier.
    pub(super) fn of(node: &Node) -> Option<Self> {
        let has = |role: &str| node.roles.contains("data") || node.roles.contains(role);
        let tiers = Self {
            master: node.is_master_eligible(),
            hot: has("data_hot"),
            // The latter is what OpenSearch 3 calls it.
            warm: has("data_warm") || has("warm"),
            cold: has("data_cold"),
            frozen: has("data_frozen"),
        };
        node.holds_data().then_some(tiers)
    }

    /// Whether a node of these tiers waits for one of `other`, and not the other way round as well.
    pub(super) const fn wait_for(self, other: Self) -> bool {
        self.depends_on(other) && !other.depends_on(self)
    }

    /// Data moves from the hot tier towards the frozen one: a node takes from those before it, and
    /// so goes before them. A node that cannot be elected does not wait for one that can.
    const fn depends_on(self, other: Self) -> bool {
        (self.master || !other.master)
            && (self.hot && (other.warm || other.cold || other.frozen)
                || self.warm && (other.cold || other.frozen)
                || self.cold && other.frozen)
    }
}
