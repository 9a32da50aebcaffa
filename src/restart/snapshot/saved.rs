//! A snapshot as a file: what one decision was made from, to be looked at later and elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::Policy;

/// Version of the format; another one is refused, never guessed at.
const FORMAT: u32 = 1;

/// A snapshot and the policy that goes with it. Nothing secret is in either: of Secrets and
/// credentials they hold neither values nor names, of pods our own annotations alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// Version of the format: 1.
    format: u32,
    /// Version of the program that took it.
    stayput: String,
    /// `spec.restart` of the SearchCluster, as it was understood.
    pub policy: Policy,
    /// What was seen.
    pub snapshot: Snapshot,
}

/// What every format has.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(default)]
    stayput: String,
}

impl Saved {
    /// Taken by this program.
    pub fn new(snapshot: Snapshot, policy: Policy) -> Self {
        let stayput = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, stayput, policy, snapshot }
    }

    /// Reads what was written as JSON.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what to do.
    pub fn parse(text: &str) -> Result<Self, String> {
        let head: Head = serde_json::from_str(text).map_err(|error| {
            format!(
                "this is no snapshot: {error}; take one with `kubectl stayput snapshot CLUSTER \
                 --file FILE`"
            )
        })?;
        let Head { format, stayput } = head;
        if format != FORMAT {
            return Err(format!(
                "the snapshot is of format {format}, taken by stayput {stayput:?}, and this is \
                 stayput {}, which reads format {FORMAT}: use that version's kubectl-stayput",
                env!("CARGO_PKG_VERSION")
            ));
        }
        serde_json::from_str(text).map_err(|error| {
            format!("the snapshot, taken by stayput {stayput:?}, is damaged: {error}; take it anew")
        })
    }
}

/// The JSON schema of the file.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Saved).to_value();
    schema["title"] = "A snapshot of kubectl stayput snapshot".into();
    schema
}
