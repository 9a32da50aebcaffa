//! A failure with the texts of the real engines, as REST answers it and as nodes send it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Why a request failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The status of the HTTP answer.
    pub(crate) status: u16,
    /// `…_exception`.
    pub(crate) kind: String,
    pub(crate) reason: Option<String>,
    /// The index it is about, if it is about one.
    pub(crate) index: Option<String>,
}

impl Failure {
    /// A failure of this kind.
    pub(crate) fn new(status: u16, kind: &str, reason: impl Into<String>) -> Self {
        Self { status, kind: kind.to_owned(), reason: Some(reason.into()), index: None }
    }

    /// The index does not exist.
    pub(crate) fn no_such_index(name: &str) -> Self {
        let failure =
            Self::new(404, "index_not_found_exception", format!("no such index [{name}]"));
        Self { index: Some(name.to_owned()), ..failure }
    }

    /// This node has no master. Each distribution has its own error type for that, which REST sets.
    pub(crate) fn no_master() -> Self {
        let kind = "cluster_manager_not_discovered_exception".to_owned();
        Self { status: 503, kind, reason: None, index: None }
    }

    /// The other node could not be reached, or did not answer.
    pub(crate) fn not_connected(node: &str, error: &impl ToString) -> Self {
        let reason = format!("[{node}] Node not connected: {}", error.to_string());
        Self::new(500, "node_not_connected_exception", reason)
    }

    /// The files on disk cannot be used.
    pub(crate) fn disk(error: &std::io::Error) -> Self {
        Self::new(500, "i_o_exception", error.to_string())
    }

    /// The body of the answer.
    pub(crate) fn body(&self) -> Value {
        let mut cause = json!({"type": self.kind, "reason": self.reason});
        if let Some(index) = &self.index {
            cause["index"] = json!(index);
            cause["resource.id"] = json!(index);
            cause["resource.type"] = json!("index_or_alias");
            cause["index_uuid"] = json!("_na_");
        }
        let mut error = cause.clone();
        error["root_cause"] = json!([cause]);
        json!({"error": error, "status": self.status})
    }
}
