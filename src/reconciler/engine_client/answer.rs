//! An engine's answer: what it says when it refuses, what it holds when it does not.

use std::fmt;

use hyper::body::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::EngineError;

/// Longer reasons are cut in sentences: some engines quote whole mappings.
const LONGEST_REASON: usize = 400;

/// A whole answer, and to what.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The header `Allow`.
    pub(super) allow: Option<String>,
    pub(super) body: Bytes,
    pub(super) asked: Asked,
}

/// What was asked, where, and as whom: the parts of every sentence about it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Such as `GET /_cluster/health`.
    pub(super) what: String,
    pub(super) endpoint: String,
    /// What was shown, such as `the API key`.
    pub(super) shown: &'static str,
}

impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the engine at {} to {}", self.endpoint, self.what)
    }
}

impl Answer {
    /// What the body of a 200 holds.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, EngineError> {
        if self.status == 200 { self.body() } else { Err(self.refusal()) }
    }

    /// What the body holds, whatever the status.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, EngineError> {
        serde_json::from_slice(&self.body).map_err(|error| self.strange(&error.to_string()))
    }

    /// A write that the engine took. `acknowledged: false` is one as well: what is written stands,
    /// and some node was late to say that it knows.
    pub(super) fn acknowledged(&self) -> Result<(), EngineError> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(rename = "acknowledged")]
            _acknowledged: bool,
        }
        self.read::<Body>().map(drop)
    }

    /// Whether the engine, alive and willing, knows no such route.
    pub(super) const fn is_unknown_route(&self) -> bool {
        matches!(self.status, 400 | 404 | 405)
    }

    /// An answer that cannot be made sense of.
    pub(super) fn strange(&self, why: &str) -> EngineError {
        EngineError::Protocol(format!(
            "not the answer of {} that was expected (HTTP {}): {why}; does an Elasticsearch or \
             OpenSearch listen there, with no proxy in between?",
            self.asked, self.status
        ))
    }

    /// The refusal that any status but the expected one is.
    pub(super) fn refusal(&self) -> EngineError {
        let Self { status, asked, .. } = self;
        let reason = self.reason();
        let advice = match status {
            200..=299 => return self.strange(&reason),
            401 => {
                return EngineError::Unauthorized(format!(
                    "{asked} was shown {} and did not accept it (HTTP 401): {reason}; check the \
                     credentials of this cluster",
                    asked.shown
                ));
            }
            403 => {
                return EngineError::Unauthorized(format!(
                    "{asked} was shown {}, which may not do this (HTTP 403): {reason}; give that \
                     user the cluster privileges `monitor` and `manage`, or on OpenSearch \
                     `cluster_monitor`, `cluster:admin/settings/update`, \
                     `cluster:admin/voting_config/*` and `indices:admin/flush*`",
                    asked.shown
                ));
            }
            429 => "; it has too much to do: this is asked again",
            503 => "; does the cluster have an elected master? its nodes' logs tell",
            _ => "",
        };
        EngineError::Refused {
            status: *status,
            message: format!("{asked} refused (HTTP {status}): {reason}{advice}"),
            reason,
        }
    }

    /// The engine's own reason, as both generations of error bodies give it.
    fn reason(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let error = &body["error"];
        let mut reason = match (error.as_str(), error["type"].as_str(), error["reason"].as_str()) {
            (Some(text), ..) => text.to_owned(),
            (None, Some(kind), Some(reason)) => format!("{reason} ({kind})"),
            (None, Some(kind), None) => kind.to_owned(),
            (None, None, _) => String::from_utf8_lossy(&self.body).trim().to_owned(),
        };
        if let Some((at, _)) = reason.char_indices().nth(LONGEST_REASON) {
            reason.truncate(at);
            reason.push('…');
        }
        if reason.is_empty() { "no reason given".to_owned() } else { reason }
    }
}
