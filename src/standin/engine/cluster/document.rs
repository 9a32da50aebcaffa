//! What is stored and replicated: documents, and the shard they belong to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which shard, also after its index was deleted and made anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ShardId {
    pub(crate) uuid: String,
    pub(crate) number: usize,
}

/// A document as every copy has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) version: u64,
    pub(crate) seq_no: u64,
    pub(crate) primary_term: u64,
    pub(crate) source: Value,
}

/// Primary term and sequence number: of two documents with one id the greater is the newer.
pub(crate) type Age = (u64, u64);

impl Document {
    /// When it was written, in the primary's time.
    pub(super) fn age(&self) -> Age {
        (self.primary_term, self.seq_no)
    }
}
