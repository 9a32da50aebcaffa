//! Why the demo failed.

use std::error::Error as StdError;
use std::fmt::{self, Display};

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// The promise that was not kept, or the step that failed, with its cause.
#[derive(Debug)]
pub(crate) struct Error {
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(formatter, ": {source}"),
            None => Ok(()),
        }
    }
}

impl<S: Into<String>> From<S> for Error {
    fn from(message: S) -> Self {
        Self { message: message.into(), source: None }
    }
}

/// Says what failed when an error comes from outside of the demo.
pub(crate) trait Context<T> {
    fn context(self, what: impl Into<String>) -> Result<T>;
}

impl<T, E: StdError + Send + Sync + 'static> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|error| Error { message: what.into(), source: Some(Box::new(error)) })
    }
}
