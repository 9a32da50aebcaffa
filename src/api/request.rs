//! Bodies of `POST /es/stop`, `POST /es/start`, `POST /es/drain` and `POST /es/upgrade`.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::checksum::Checksum;
use crate::{Code, Refusal};

/// The largest sequence: integers up to here survive every JSON implementation (2^53 − 1).
pub const MAX_SEQUENCE: u64 = (1 << 53) - 1;
/// How far ahead of the highest accepted sequence a request may be.
pub const MAX_SEQUENCE_JUMP: u64 = 1_000_000;

/// Header of the answer to a stop or a start: the sequence under which it was accepted.
pub const SEQUENCE_HEADER: &str = "stayput-sequence";

/// Header of a status: by how many milliseconds the clock that its times are by is ahead of the
/// manager's time of day. That clock never jumps, so it differs if the time of day was set since the
/// manager started.
pub const TIMES_AHEAD_HEADER: &str = "stayput-times-ahead";

/// A length of time in a request, written as people write it: `"90s"`, `"2m 30s"`, `"500ms"`; a bare
/// number is seconds, as in kubectl and curl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(
    /// Length in milliseconds.
    pub u64,
);

impl Span {
    /// The longest accepted span: a day. Longer ones are typos.
    pub const MAX: Self = Self(24 * 60 * 60 * 1000);

    /// Reads `"90s"` and the like; `"90"` is seconds.
    ///
    /// # Errors
    /// The text is not a duration, or a longer one than [`Span::MAX`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let duration = if is_number {
            // Digits that are no u64 are a number that is too long.
            Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
        } else {
            humantime::parse_duration(text).ok()
        };
        match duration.map(|duration| u64::try_from(duration.as_millis()).map(Self)) {
            Some(Ok(span)) if span <= Self::MAX => Ok(span),
            Some(_) => Err(format!("{text:?} is longer than a day")),
            None => Err(format!(
                "{text:?} is not a duration: write \"90s\", \"2m 30s\" or \"500ms\", or 90 for seconds"
            )),
        }
    }

    /// The span as the standard library's duration.
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.to_duration()))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

/// Reads a span from JSON: a text, or a whole number of seconds.
struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a duration such as \"90s\", or whole seconds such as 90")
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Span, E> {
        Span::parse(&seconds.to_string()).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        Span::parse(text).map_err(E::custom)
    }
}

/// Reads a field that was given. Null is refused: a caller who lost the value must get an error.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The longest `pod` in characters: no name in Kubernetes is longer.
const MAX_POD: usize = 253;

fn resume_after<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let span = Span::deserialize(deserializer)?;
    if span < StopRequest::MIN_RESUME_AFTER {
        return Err(de::Error::custom("the engine is resumed after 1s at the earliest"));
    }
    Ok(Some(span))
}

fn pod<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() || text.len() > MAX_POD || !text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(de::Error::custom(format!(
            "a pod's uid has 1 to {MAX_POD} printable characters: send metadata.uid"
        )));
    }
    Ok(Some(text))
}

fn checksum<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    // The text is compared later, so another spelling of the same digits is refused.
    Checksum::parse(&text).map_err(de::Error::custom)?;
    Ok(Some(text))
}

/// Kind of a mutating request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// `POST /es/stop`.
    Stop,
    /// `POST /es/start`.
    Start,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

impl RequestKind {
    /// `stop` or `start`; `unknown` for a kind that only a newer version knows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Unknown => "unknown",
        }
    }
}

/// The config that the engine runs on.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ConfigChoice {
    /// The config that is mounted now.
    #[default]
    Mounted,
    /// The kept copy of the generation that was last ready and then up for a minute.
    LastGood,
}

impl ConfigChoice {
    /// `mounted` or `last_good`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mounted => "mounted",
            Self::LastGood => "last_good",
        }
    }
}

// Unknown fields are allowed in all bodies here, so that a journal of a newer manager, which has the
// last request, can be read. Whoever sends one to a manager is refused: `http/body.rs` there.

/// Body of `POST /es/stop`. Every field may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StopRequest {
    /// Fencing number; left out, the manager takes the next one itself.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Uid of the pod the request is meant for.
    #[serde(default, deserialize_with = "pod", skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// How long the engine may take after the stop signal before it is killed.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub grace: Option<Span>,
    /// How long to be unready before the stop signal is sent.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub drain: Option<Span>,
    /// Time after which the manager starts the engine by itself, counted from the acceptance,
    /// unless a later request is accepted before.
    #[serde(
        default,
        rename = "resumeAfter",
        deserialize_with = "resume_after",
        skip_serializing_if = "Option::is_none"
    )]
    pub resume_after: Option<Span>,
    /// Checksum of the config that the engine must then be started with, mounted or kept (`sha256:…`).
    #[serde(
        default,
        rename = "resumeChecksum",
        deserialize_with = "checksum",
        skip_serializing_if = "Option::is_none"
    )]
    pub resume_checksum: Option<String>,
    /// True if the manager is to end with code 0 when the engine is stopped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit: bool,
}

impl StopRequest {
    /// The shortest [`Self::resume_after`].
    pub const MIN_RESUME_AFTER: Span = Span(1000);

    /// Checks rules about more than one field.
    ///
    /// # Errors
    /// The fields that do not fit together.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.resume_checksum.is_some() && self.resume_after.is_none() {
            return Err(Refusal::new(
                Code::InvalidBody,
                "field \"resumeChecksum\" needs \"resumeAfter\", which says when to start",
            ));
        }
        Ok(())
    }
}

/// Body of `POST /es/start`. Every field may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StartRequest {
    /// Fencing number; left out, the manager takes the next one itself.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Uid of the pod the request is meant for.
    #[serde(default, deserialize_with = "pod", skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Checksum of the config the engine must be started with (`sha256:…`).
    #[serde(default, deserialize_with = "checksum", skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The config to start with.
    #[serde(default)]
    pub config: ConfigChoice,
}

/// Body of `POST /es/drain`. Every field may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DrainRequest {
    /// Sequence of the stop that is to follow: refused once the manager has accepted it, or a higher
    /// one, and it has an effect only once.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Uid of the pod the request is meant for.
    #[serde(default, deserialize_with = "pod", skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

/// Body of `POST /es/upgrade`: it has no fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeRequest {}
