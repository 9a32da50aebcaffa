//! Version numbers of engines.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// Version of an engine, such as `8.19.0`, without a suffix after a dash, such as `-SNAPSHOT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    pub(super) const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }
}

/// A text that is not a version number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version such as 8.19.0")]
pub struct VersionError(String);

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.to_owned());
        let numbers = text.split('-').next().unwrap_or_default();
        let parts: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
        match parts.as_deref() {
            Ok(&[major, minor, patch]) => Ok(Self { major, minor, patch }),
            Ok(_) | Err(_) => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Version {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        text.parse()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_by_number() {
        let read = |text: &str| text.parse::<Version>();
        assert_eq!(read("8.19.0"), Ok(Version::new(8, 19, 0)));
        assert_eq!(read("9.0.0-beta1-SNAPSHOT"), Ok(Version::new(9, 0, 0)));
        assert!(read("7.9.3").unwrap() < read("7.15.2").unwrap());
        assert_eq!(read("3.2.0").unwrap().to_string(), "3.2.0");
        for text in ["", "8", "8.19", "8.19.x", "8.19.0.1", "v8.19.0"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
