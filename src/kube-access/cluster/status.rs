//! The status of a SearchCluster: report and ledger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stayput_restart::{Ledger, Report};

/// Written only by the reconciler: the report, for people, and the ledger that decisions are made
/// from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchClusterStatus {
    /// The generation of the spec this was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// For people.
    #[serde(flatten)]
    pub report: Report,
    /// For decisions.
    #[serde(flatten)]
    pub ledger: Ledger,
}
