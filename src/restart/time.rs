//! Points in time: a number in the program, RFC 3339 in documents.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A time in milliseconds since the Unix epoch; serialized as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The time that is this many milliseconds later.
    #[must_use]
    pub const fn plus(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// Milliseconds since `earlier`; zero if that is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads RFC 3339, in UTC or with an offset.
    ///
    /// # Errors
    /// The text is not RFC 3339, or the time is before 1970.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        let invalid = || InvalidTime(text.to_owned());
        let (utc, offset) = match offset(text) {
            Some((local, offset)) => (format!("{local}Z"), offset),
            None => (text.to_owned(), 0),
        };
        let time = humantime::parse_rfc3339(&utc).map_err(|_| invalid())?;
        let since_epoch = time.duration_since(UNIX_EPOCH).map_err(|_| invalid())?;
        let local = u64::try_from(since_epoch.as_millis()).map_err(|_| invalid())?;
        local.checked_add_signed(-offset).map(Self).ok_or_else(invalid)
    }
}

/// The local time, and its offset from UTC in milliseconds, if the text ends with one such as `+02:00`.
fn offset(text: &str) -> Option<(&str, i64)> {
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (sign, hours, minutes) = (offset.get(..1)?, offset.get(1..3)?, offset.get(4..)?);
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let number = |digits: &str, most: i64| -> Option<i64> {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse().ok().filter(|number| is_number && *number <= most)
    };
    let (hours, minutes) = (number(hours, 23)?, number(minutes, 59)?);
    let is_time = local.contains('T') && local.ends_with(|last: char| last.is_ascii_digit());
    let is_offset = is_time && offset.get(3..4) == Some(":");
    is_offset.then_some((local, sign * (hours * 60 + minutes) * 60_000))
}

/// A text that is not a [`Time`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a time such as \"2026-11-21T03:00:00Z\" or, with an offset, \"2026-11-21T05:00:00+02:00\" (RFC 3339)"
)]
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

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}
