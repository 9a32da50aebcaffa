//! The policy: what the owner of the SearchCluster allows.

#![warn(missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stayput_pod_update::UpdateStep;
use thiserror::Error;

use super::{Disabled, Request};

/// `spec.restart` of a SearchCluster, validated.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// How many nodes may be down at once.
    pub max_unavailable: Share,
    /// How many nodes of a role may be down at once; a limit besides `max_unavailable`.
    pub max_unavailable_of_role: BTreeMap<String, Share>,
    /// Predicates that are not evaluated.
    #[schemars(with = "Vec<String>")]
    pub disabled: Disabled,
    /// Name of the node attribute that holds the zone.
    pub zone_attribute: String,
    /// A stop may cost the quorum, or the last copy of a shard.
    pub allow_outage: bool,
    /// How long one phase of one node may take, in milliseconds.
    pub phase_timeout: u64,
    /// How long a node is unready before its stop signal.
    pub drain: Drain,
    /// The reaction, without a request, to a node that runs on another config than its sources have.
    pub on_config_change: OnConfigChange,
    /// A node that does not start on the new config is started on the last good one.
    pub rollback: bool,
    /// The steps that are carried out when the template of an owner has changed; empty for none.
    pub update: BTreeSet<UpdateStep>,
}

/// `spec.restart.drain`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Drain {
    /// Until Services send it no requests any more, but not longer than [`Drain::LONGEST`].
    Auto,
    /// So long, in milliseconds.
    Fixed(u64),
}

impl Drain {
    /// The longest drain of [`Drain::Auto`], in milliseconds. The manager ends it also if nobody
    /// tells it to.
    pub const LONGEST: u64 = 10_000;

    /// The longest possible drain, in milliseconds.
    pub const fn longest(self) -> u64 {
        match self {
            Self::Auto => Self::LONGEST,
            Self::Fixed(span) => span,
        }
    }
}

/// The reaction, without a request, to a changed config.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum OnConfigChange {
    /// Only show the nodes, and wait for a request.
    #[default]
    None,
    /// Restart the nodes concerned one by one.
    Rolling,
    /// Restart the nodes concerned together.
    Coordinated,
    /// One by one, or together where the change needs all nodes at once; that is an outage, and
    /// waits for allowOutage or for a request.
    Auto,
}

/// A number of nodes, or a percentage of them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Share {
    /// At least 1.
    Nodes(u32),
    /// 1 to 100; rounded down, but at least one node.
    Percent(u8),
}

impl Share {
    /// # Errors
    /// The number is 0, negative or too large.
    pub fn nodes(nodes: i64) -> Result<Self, InvalidShare> {
        match u32::try_from(nodes) {
            Ok(0) => Err(InvalidShare::Zero { written: "0".into(), least: "1" }),
            Ok(nodes) => Ok(Self::Nodes(nodes)),
            Err(_) => Err(InvalidShare::Nodes(nodes)),
        }
    }

    /// Reads `25%`.
    ///
    /// # Errors
    /// The text is not a percentage from 1% to 100%.
    pub fn percent(text: &str) -> Result<Self, InvalidShare> {
        let digits = text.strip_suffix('%').filter(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(0) => Err(InvalidShare::Zero { written: text.to_owned(), least: "1%" }),
            Some(percent @ 1..=100) => Ok(Self::Percent(percent)),
            Some(_) | None => Err(InvalidShare::Text(text.to_owned())),
        }
    }

    /// The number of nodes that this share of `total` is.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Nodes(nodes) => usize::try_from(nodes).unwrap_or(usize::MAX),
            Self::Percent(percent) => (total.saturating_mul(usize::from(percent)) / 100).max(1),
        }
    }
}

/// Why a value is not a [`Share`], and what to write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidShare {
    /// 0 or 0%.
    #[error("is {written}, so that no node could ever be restarted: write {least} or more")]
    Zero {
        /// The value in the spec.
        written: String,
        /// The least valid value.
        least: &'static str,
    },
    /// A number out of range.
    #[error("is {0}, which is not a number of nodes: write 1 or more")]
    Nodes(i64),
    /// Any other text.
    #[error(
        "{0:?} is neither a number of nodes nor a percentage: write for example 2 (without \
         quotes), or \"25%\" (1% to 100%)"
    )]
    Text(String),
}

/// As people write it: `2` or `25%`.
impl std::fmt::Display for Share {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(formatter, "{nodes}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_unavailable: Share::Nodes(1),
            max_unavailable_of_role: BTreeMap::new(),
            disabled: Disabled::default(),
            zone_attribute: "zone".into(),
            allow_outage: false,
            phase_timeout: 15 * 60 * 1000,
            drain: Drain::Auto,
            on_config_change: OnConfigChange::None,
            rollback: true,
            update: BTreeSet::new(),
        }
    }
}

impl Policy {
    /// True if a stop for this request may be an outage: by the policy, or by the request itself.
    pub(super) const fn allows_outage_for(&self, request: &Request) -> bool {
        self.allow_outage || request.allow_outage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_not_a_share_says_what_to_write() {
        for share in [Share::Percent(1), Share::Percent(25), Share::Percent(100)] {
            assert_eq!(Share::percent(&share.to_string()), Ok(share));
        }
        for (text, says) in [
            ("0%", "is 0%, so that no node could ever be restarted: write 1% or more"),
            ("00%", "is 00%, so that no node"),
            ("2", "\"2\" is neither"),
            ("999999999999%", "\"999999999999%\" is neither"),
            ("101%", "\"101%\" is neither"),
            ("300%", "\"300%\" is neither"),
            ("-1%", "\"-1%\" is neither"),
            ("+1%", "\"+1%\" is neither"),
            ("1.5%", "\"1.5%\" is neither"),
            ("25 %", "\"25 %\" is neither"),
            ("25%%", "\"25%%\" is neither"),
            ("%", "\"%\" is neither"),
            ("", "\"\" is neither"),
            ("all", "\"all\" is neither"),
        ] {
            let problem = Share::percent(text).unwrap_err().to_string();
            assert!(problem.starts_with(says) && problem.contains("write "), "{text}: {problem}");
        }
        assert!(Share::nodes(0).unwrap_err().to_string().starts_with("is 0, so that no node"));
        assert!(
            Share::nodes(-3).unwrap_err().to_string().starts_with("is -3, which is not a number")
        );
    }

    #[test]
    fn a_part_is_rounded_down_but_never_to_none() {
        let of = |percent, total| Share::Percent(percent).of(total);
        assert_eq!([of(25, 4), of(25, 7), of(25, 8), of(100, 7)], [1, 1, 2, 7]);
        assert_eq!([of(1, 3), of(10, 9), of(99, 1), of(50, 0)], [1, 1, 1, 1]);
        assert_eq!(Share::Nodes(3).of(2), 3);
    }
}
