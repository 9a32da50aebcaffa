//! Scopes: the rights of a caller.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Rights of a caller. `control` includes `read`: the answer to a stop contains the status anyway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scopes {
    read: bool,
    control: bool,
}

impl Scopes {
    /// No rights.
    pub const NONE: Self = Self { read: false, control: false };
    /// Reading the status and the metrics.
    pub const READ: Self = Self { read: true, control: false };
    /// Reading, stopping and starting.
    pub const CONTROL: Self = Self { read: true, control: true };

    /// True if the status may be read.
    pub const fn may_read(self) -> bool {
        self.read
    }

    /// True if the engine may be stopped and started.
    pub const fn may_control(self) -> bool {
        self.control
    }

    const fn and(self, other: Self) -> Self {
        Self { read: self.read || other.read, control: self.control || other.control }
    }

    /// The scopes in a token's `scope` claim. Unknown scopes are ignored: they are for other
    /// services.
    pub fn of_claim<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        words.into_iter().fold(Self::NONE, |scopes, word| match word {
            "es:read" => scopes.and(Self::READ),
            "es:control" => scopes.and(Self::CONTROL),
            _ => scopes,
        })
    }
}

/// A text that is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a scope; use read or control")]
pub struct UnknownScope(String);

impl FromStr for Scopes {
    type Err = UnknownScope;

    /// Reads `read`, `control` or `read,control`; `es:`, as in the claim, is allowed before each.
    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        text.split([',', ' ']).try_fold(Self::NONE, |scopes, word| {
            match word.strip_prefix("es:").unwrap_or(word) {
                "read" => Ok(scopes.and(Self::READ)),
                "control" => Ok(scopes.and(Self::CONTROL)),
                _ => Err(UnknownScope(word.to_owned())),
            }
        })
    }
}

impl fmt::Display for Scopes {
    /// Text as in the `scope` claim of a token.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.read, self.control) {
            (_, true) => "es:read es:control",
            (true, false) => "es:read",
            (false, false) => "",
        })
    }
}
