//! An engine's answer: the body, or the reason of a refusal; and the errors of requests.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use hyper::body::Bytes;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use stayput_http::shorten;
use stayput_restart::foreign_text;
use thiserror::Error;

/// Limit of the length of a reason; longer ones are cut, since some engines quote whole mappings.
const MAX_REASON_CHARS: usize = 400;

/// Advice: the privileges for all of our requests; docs/operators.md has the same.
const PRIVILEGES: &str = "give that user on Elasticsearch the cluster privileges `monitor` and \
     `manage`, and on all indices `maintenance` and `view_index_metadata`; on OpenSearch the cluster \
     permissions `cluster_monitor`, `cluster:admin/settings/update` and \
     `cluster:admin/voting_config/*`, and on all indices `indices:admin/flush*` and \
     `indices:monitor/settings/get`";
/// Advice for `xpack.security.operator_privileges.enabled`, with which even a superuser lacks privileges.
const OPERATORS: &str = "this cluster reserves it for operators: list this user in \
     operator_users.yml of every node";

/// A whole answer, and its request.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Value of the header `Allow`.
    pub(super) allow: Option<String>,
    pub(super) body: Bytes,
    pub(super) asked: Asked,
}

/// The request, as messages about its answer name it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Method and path, such as `GET /_cluster/health`.
    pub(super) what: String,
    pub(super) endpoint: String,
    /// Name of the credentials that were sent, such as `the API key`.
    pub(super) shown: &'static str,
}

impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the engine at {} to {}", self.endpoint, self.what)
    }
}

impl Answer {
    /// The decoded body of a 200.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, EngineError> {
        if self.status == 200 { self.body() } else { Err(self.refusal()) }
    }

    /// The decoded body, whatever the status.
    pub(super) fn body<'a, T: Deserialize<'a>>(&'a self) -> Result<T, EngineError> {
        serde_json::from_slice(&self.body).map_err(|error| self.unexpected(error))
    }

    /// Checks that the engine accepted a write. `acknowledged: false` counts as accepted as well:
    /// the change is in force, and a node was late to confirm it.
    pub(super) fn acknowledged(&self) -> Result<(), EngineError> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(rename = "acknowledged")]
            _acknowledged: bool,
        }
        self.read::<Body>().map(drop)
    }

    /// True if the engine works but has no such route.
    pub(super) const fn is_unknown_route(&self) -> bool {
        matches!(self.status, 400 | 404 | 405)
    }

    /// The error for a cluster state without an elected master; `None` for every other answer.
    pub(super) fn without_master(&self) -> Option<EngineError> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(alias = "cluster_manager_node")]
            master_node: Option<IgnoredAny>,
        }
        let Self { status, asked, .. } = self;
        if *status != 200 || self.body::<Body>().map_or(true, |body| body.master_node.is_some()) {
            return None;
        }
        let reason = "it has no elected master".to_owned();
        Some(EngineError::Refused {
            status: *status,
            message: format!(
                "{asked} answered with a stale cluster state: {reason}; see the logs of its nodes"
            ),
            reason,
        })
    }

    /// The error for an answer that no engine gives.
    pub(super) fn unexpected(
        &self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> EngineError {
        let error = error.into();
        let mut why = error.to_string();
        shorten(&mut why, MAX_REASON_CHARS);
        let message = format!(
            "unexpected answer of {} (HTTP {}): {}; does an Elasticsearch or OpenSearch \
             listen there, with no proxy in between?",
            self.asked,
            self.status,
            foreign_text(&why)
        );
        // The parser's own error may quote all of the body.
        EngineError::Protocol(if error.to_string() == why {
            Cause::new(message, error)
        } else {
            message.into()
        })
    }

    /// The error for any status but the expected one.
    pub(super) fn refusal(&self) -> EngineError {
        let Self { status, asked, .. } = self;
        let reason = self.reason();
        let advice = match status {
            200..=299 => return self.unexpected(reason),
            401 => {
                let message = format!(
                    "{asked} did not accept {} (HTTP 401): {reason}; check the credentials of this \
                     cluster. An Elasticsearch answers so as well while its index .security is not \
                     available yet",
                    asked.shown
                );
                return EngineError::Unauthorized(message.into());
            }
            403 if self.kind().as_deref() == Some("cluster_block_exception") => {
                "; a block forbids it, no privilege is missing: once the cause is known, take the \
                 setting away that made it, cluster.blocks.read_only or \
                 cluster.blocks.read_only_allow_delete of the cluster, or index.blocks.* of an index"
            }
            403 => {
                let what_to_do = if reason.contains("Operator privileges are required") {
                    OPERATORS
                } else {
                    PRIVILEGES
                };
                let message = format!(
                    "{asked}: {} may not do this (HTTP 403): {reason}; {what_to_do}",
                    asked.shown
                );
                return EngineError::Unauthorized(message.into());
            }
            429 if self.kind().as_deref() == Some("timeout_exception") => {
                "; it timed out: the request is repeated"
            }
            429 => "; it is overloaded: the request is repeated",
            503 if reason.contains("OpenSearch Security not initialized") => {
                "; its security plugin has no configuration yet: is the index that holds it \
                 available? see the logs of its nodes"
            }
            503 => "; does the cluster have an elected master? see the logs of its nodes",
            _ => "",
        };
        EngineError::Refused {
            status: *status,
            message: format!("{asked} refused (HTTP {status}): {reason}{advice}"),
            reason,
        }
    }

    /// The engine's name for the kind of the refusal.
    fn kind(&self) -> Option<String> {
        self.error().and_then(|error| error.kind)
    }

    fn error(&self) -> Option<ErrorOfEngine> {
        #[derive(Deserialize)]
        struct Body {
            error: ErrorOfEngine,
        }
        serde_json::from_slice::<Body>(&self.body).ok().map(|body| body.error)
    }

    /// The engine's own reason, from either format of error bodies.
    pub(super) fn reason(&self) -> String {
        let ErrorOfEngine { kind, reason } = self.error().unwrap_or_default();
        let mut reason = match (kind, reason) {
            (Some(kind), Some(reason)) => format!("{reason} ({kind})"),
            (Some(text), None) | (None, Some(text)) => text,
            (None, None) => {
                // A character has four bytes at most, and the last one may be cut.
                let start = &self.body[..self.body.len().min(4 * MAX_REASON_CHARS + 4)];
                String::from_utf8_lossy(start).trim().to_owned()
            }
        };
        shorten(&mut reason, MAX_REASON_CHARS);
        if reason.is_empty() { "no reason given".to_owned() } else { foreign_text(&reason) }
    }
}

/// The field `error` of an engine's answer: a text, or an object with much more in it than is read here.
#[derive(Debug, Default)]
struct ErrorOfEngine {
    /// The engine's name for the kind of the refusal.
    kind: Option<String>,
    reason: Option<String>,
}

impl<'de> Deserialize<'de> for ErrorOfEngine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ErrorVisitor)
    }
}

struct ErrorVisitor;

impl<'de> Visitor<'de> for ErrorVisitor {
    type Value = ErrorOfEngine;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, or an object with type and reason")
    }

    fn visit_str<E>(self, text: &str) -> Result<ErrorOfEngine, E> {
        Ok(ErrorOfEngine { kind: None, reason: Some(text.to_owned()) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ErrorOfEngine, A::Error> {
        let mut error = ErrorOfEngine::default();
        while let Some(key) = entries.next_key::<String>()? {
            match key.as_str() {
                "type" => error.kind = entries.next_value()?,
                "reason" => error.reason = entries.next_value()?,
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(error)
    }
}

/// Reason why there is no usable answer. The variant tells if the request can have had an effect; the message
/// says what is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// Our own side: an address, a name or a credential that cannot be used. Nothing was sent.
    #[error(transparent)]
    Unusable(Cause),
    /// No endpoint could be connected to. Nothing was sent.
    #[error(transparent)]
    NotReachable(Cause),
    /// The certificate of the other side is not accepted. Nothing was sent.
    #[error(transparent)]
    Untrusted(Cause),
    /// The request was sent and no whole answer came: it may have had its effect.
    #[error(transparent)]
    Unanswered(Cause),
    /// The credentials are not accepted (401) or may not do this (403).
    #[error(transparent)]
    Unauthorized(Cause),
    /// The engine refused; 5xx leaves open whether it acted.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The engine's own reason.
        reason: String,
        /// The whole message, for people.
        message: String,
    },
    /// An answer that no known engine gives: another program listens there, or the engine is too
    /// new.
    #[error(transparent)]
    Protocol(Cause),
    /// An engine that cannot be restarted safely.
    #[error(transparent)]
    Unsupported(Cause),
}

impl EngineError {
    /// True if an engine has answered that it has no elected master. With 200 only its outdated state is
    /// refused.
    pub const fn is_without_master(&self) -> bool {
        matches!(self, Self::Refused { status: 200 | 503, .. })
    }
}

/// A message for people, and the error that it is about, if there is one.
#[derive(Debug, Clone)]
pub struct Cause {
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Cause {
    /// A message about an error. It should contain the error's own message.
    pub(super) fn new(
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { message: message.into(), source: Some(Arc::from(source.into())) }
    }

    /// An error whose own message says enough.
    pub(super) fn of(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source: Arc<dyn StdError + Send + Sync> = Arc::from(source.into());
        Self { message: source.to_string(), source: Some(source) }
    }
}

/// Causes with the same message are equal.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.message == other.message
    }
}

impl Eq for Cause {}

impl From<String> for Cause {
    fn from(message: String) -> Self {
        Self { message, source: None }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| -> &(dyn StdError + 'static) { source.as_ref() })
    }
}

/// Dereferences to the message.
impl Deref for Cause {
    type Target = str;

    fn deref(&self) -> &str {
        &self.message
    }
}
