//! Moments, as plain numbers that people read as RFC 3339.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment in milliseconds since the Unix epoch; RFC 3339 in UTC wherever it is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// This much later.
    #[must_use]
    pub const fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// Milliseconds from `earlier` until this moment; zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads RFC 3339.
    ///
    /// # Errors
    /// A sentence that names the value and what would be accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a moment such as \"2026-11-21T03:00:00Z\" (UTC, RFC 3339)");
        let moment = humantime::parse_rfc3339(text).map_err(|_| wrong())?;
        let since = moment.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
        u64::try_from(since.as_millis()).map(Self).map_err(|_| wrong())
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Far beyond the year 9999 there is no RFC 3339; a clock that says so is broken anyway.
        let moment = UNIX_EPOCH + Duration::from_millis(self.0.min(253_402_300_799_999));
        humantime::format_rfc3339_millis(moment).fmt(formatter)
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
