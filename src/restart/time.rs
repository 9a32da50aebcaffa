//! Points in time: a number in the program, RFC 3339 in documents.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A time in milliseconds since the Unix epoch; serialized as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The time that is this much later.
    #[must_use]
    pub const fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// Milliseconds since `earlier`; zero if that is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads RFC 3339.
    ///
    /// # Errors
    /// The text is not RFC 3339 in UTC, or the time is before 1970.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        let invalid = || InvalidTime(text.to_owned());
        let time = humantime::parse_rfc3339(text).map_err(|_| invalid())?;
        let since_epoch = time.duration_since(UNIX_EPOCH).map_err(|_| invalid())?;
        u64::try_from(since_epoch.as_millis()).map(Self).map_err(|_| invalid())
    }
}

/// A text that is not a [`Time`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a time such as \"2026-11-21T03:00:00Z\" (UTC, RFC 3339)")]
pub struct InvalidTime(pub String);

impl std::fmt::Display for Time {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // RFC 3339 ends with the year 9999.
        let time = UNIX_EPOCH + Duration::from_millis(self.0.min(253_402_300_799_999));
        humantime::format_rfc3339_millis(time).fmt(formatter)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}
