//! What the SearchCluster's owner allows.

/// `spec.restart` of a SearchCluster, validated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Policy {
    /// How many nodes may be down at once because of us; at least 1.
    pub max_unavailable: u32,
    /// Name of the node attribute that holds the zone.
    pub zone_attribute: String,
    /// A stop may cost the quorum, or the last copy of a shard.
    pub allow_outage: bool,
    /// How long one phase of one node may take, in milliseconds.
    pub phase_timeout: u64,
    /// How long a node is unready before its stop signal, in milliseconds.
    pub drain: u64,
    /// What to do by ourselves about a node that runs on another config than its sources'.
    pub on_config_change: OnConfigChange,
    /// A node that does not come up on the new config is started on the last good one.
    pub rollback: bool,
    /// Whether the engine's config has declared sources; without them the mounted config is taken.
    pub has_sources: bool,
}

/// `spec.restart.onConfigChange`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnConfigChange {
    /// Show it, and wait to be asked.
    #[default]
    None,
    /// Restart the nodes concerned one by one.
    Rolling,
    /// Restart the nodes concerned together.
    Coordinated,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_unavailable: 1,
            zone_attribute: "zone".into(),
            allow_outage: false,
            phase_timeout: 15 * 60 * 1000,
            drain: 10_000,
            on_config_change: OnConfigChange::None,
            rollback: true,
            has_sources: true,
        }
    }
}
