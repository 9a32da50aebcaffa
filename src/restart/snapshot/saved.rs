//! A snapshot as a file, so that a decision can be examined later and elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Snapshot;
use crate::Policy;

/// Version of the format; any other version is refused.
const FORMAT: u32 = 1;

/// A snapshot and the policy that goes with it. Neither contains anything secret: no value of a Secret
/// and no credentials, and of the annotations of pods only our own. The Secrets and ConfigMaps that the
/// config is made from, and those whose change asks for a restart, are named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// Version of the format: 1.
    format: u32,
    /// Version of the program that took it.
    stayput: String,
    /// `spec.restart` of the SearchCluster, validated.
    pub policy: Policy,
    /// Input of the decision.
    pub snapshot: Snapshot,
}

/// The fields of every format.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(default)]
    stayput: String,
}

impl Saved {
    /// A snapshot taken by this program.
    pub fn new(snapshot: Snapshot, policy: Policy) -> Self {
        let stayput = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, stayput, policy, snapshot }
    }

    /// Version of the program that took the snapshot.
    pub fn version(&self) -> &str {
        &self.stayput
    }

    /// Reads a snapshot from JSON.
    ///
    /// # Errors
    /// The text is not a snapshot of this format.
    pub fn parse(text: &str) -> Result<Self, InvalidSnapshot> {
        let head: Head = serde_json::from_str(text).map_err(InvalidSnapshot::NotASnapshot)?;
        let Head { format, stayput } = head;
        if format != FORMAT {
            return Err(InvalidSnapshot::OtherFormat { format, stayput });
        }
        serde_json::from_str(text).map_err(|error| InvalidSnapshot::Damaged { stayput, error })
    }
}

/// Why a text is not a snapshot, and what to do.
#[derive(Debug, Error)]
pub enum InvalidSnapshot {
    /// The text is not JSON, or has no format.
    #[error(
        "this is not a snapshot: {0}; take one with `kubectl stayput snapshot CLUSTER --file FILE`"
    )]
    NotASnapshot(#[source] serde_json::Error),
    /// Another version has written the snapshot.
    #[error(
        "the snapshot has format {format}, taken by stayput {stayput:?}, and this is stayput {}, \
         which reads format {FORMAT}: use kubectl-stayput of that version",
        env!("CARGO_PKG_VERSION")
    )]
    OtherFormat {
        /// Format of the snapshot.
        format: u32,
        /// Version of the program that took the snapshot.
        stayput: String,
    },
    /// A field is missing or wrong.
    #[error("the snapshot, taken by stayput {stayput:?}, is damaged: {error}; take a new one")]
    Damaged {
        /// Version of the program that took the snapshot.
        stayput: String,
        /// The error of the parser.
        #[source]
        error: serde_json::Error,
    },
}

/// The JSON schema of the file.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Saved).to_value();
    schema["title"] = "A snapshot of kubectl stayput snapshot".into();
    schema
}
