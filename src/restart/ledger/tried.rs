//! Goal of the last restart that we requested ourselves: a config or template that was given up is not
//! tried again without a request.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Goal of our last restart of a kind: the configs or templates that nodes were to have. Each is the
/// beginning of a checksum, so that many fit into a ledger.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", default)]
pub struct Tried {
    /// Id of that request. If another one of its kind came later, an earlier version has made that.
    pub id: String,
    /// The wanted ones that nodes lacked, without those that were given up before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub wanted: BTreeSet<String>,
    /// The wanted ones that were given up before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub given_up: BTreeSet<String>,
    /// Nodes of which it was not known what they were to have.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<String>,
}

/// Kind of a restart that we request ourselves, by its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKind {
    Configs,
    Templates,
}

impl OwnKind {
    /// The beginning of the ids of such requests.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Configs => "config",
            Self::Templates => "update",
        }
    }
}
