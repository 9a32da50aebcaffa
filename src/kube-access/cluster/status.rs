//! The status of a SearchCluster: the report and the history for people, and the ledger for decisions.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use stayput_restart::{HistoryEntry, Ledger, Report};

/// The status, written only by the reconciler. Decisions are made from the ledger alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredStatus", into = "StoredStatus")]
pub struct SearchClusterStatus {
    /// The generation of the spec this was made from.
    pub observed_generation: Option<i64>,
    /// The report for people.
    pub report: Report,
    /// The ledger, with the history.
    pub ledger: Ledger,
}

/// Written only by the reconciler: what is known and done, and the ledger that decisions are made from.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StoredStatus {
    /// The generation of the spec this was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(flatten)]
    report: Report,
    /// Restarts that have ended, latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<HistoryEntry>,
    /// What is decided and under way, also the debts. It is for the reconciler alone: its form is no API.
    #[serde(default, skip_serializing_if = "is_empty")]
    #[schemars(schema_with = "opaque")]
    ledger: Ledger,
}

fn is_empty(ledger: &Ledger) -> bool {
    *ledger == Ledger::default()
}

/// An object with fields that the apiserver does not know.
fn opaque(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

impl From<StoredStatus> for SearchClusterStatus {
    fn from(stored: StoredStatus) -> Self {
        let StoredStatus { observed_generation, report, history, ledger } = stored;
        Self { observed_generation, report, ledger: Ledger { history, ..ledger } }
    }
}

impl From<SearchClusterStatus> for StoredStatus {
    fn from(status: SearchClusterStatus) -> Self {
        let SearchClusterStatus { observed_generation, report, mut ledger } = status;
        let history = std::mem::take(&mut ledger.history);
        Self { observed_generation, report, history, ledger }
    }
}

impl JsonSchema for SearchClusterStatus {
    fn schema_name() -> Cow<'static, str> {
        "SearchClusterStatus".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        StoredStatus::json_schema(generator)
    }
}
