//! Why credentials were refused, for the log. The caller is not told: see `routes::authorize`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use stayput_http::terminal::plain;

/// How often one kind of refusal is logged: callers without credentials must not fill the log.
const LOG_PAUSE: Duration = Duration::from_secs(10);
/// Longest part of a token's header or claims in a message, in characters.
const MAX_SHOWN: usize = 200;

/// Why credentials were not accepted. It never holds the token or a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// The check that failed.
    pub(crate) check: &'static str,
    /// The value that was found and the one that was expected; empty if there is nothing to add.
    pub(crate) detail: String,
}

impl From<&'static str> for Rejection {
    fn from(check: &'static str) -> Self {
        Self { check, detail: String::new() }
    }
}

impl Rejection {
    pub(super) fn new(check: &'static str, detail: String) -> Self {
        Self { check, detail }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.check)?;
        if self.detail.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.detail) }
    }
}

/// A part of a token, quoted and shortened.
pub(super) fn shown(part: &str) -> String {
    // In single quotes: the log's own are double.
    short(&format!("'{part}'"))
}

/// A text that may hold parts of a token: on one line, and shortened.
pub(super) fn short(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Refusals that were logged lately.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<BTreeMap<&'static str, Logged>>);

#[derive(Debug)]
struct Logged {
    at: Instant,
    /// Refusals of this kind since the one that was logged.
    more: u64,
}

impl RefusalLog {
    /// If a refusal by this check is to be logged at `now`: the number of refusals of its kind that
    /// were not logged since the last one that was.
    pub(crate) fn admit(&self, check: &'static str, now: Instant) -> Option<u64> {
        // Keys are the names of our checks: callers cannot add any.
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Logged { at: now, more: 0 };
        match kinds.get_mut(check) {
            Some(last) if now.duration_since(last.at) < LOG_PAUSE => {
                last.more += 1;
                None
            }
            Some(last) => Some(std::mem::replace(last, fresh).more),
            None => {
                kinds.insert(check, fresh);
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_refusal_is_logged_once_in_a_while_and_counted() {
        let (log, begin) = (RefusalLog::default(), Instant::now());
        let admit = |check, after| log.admit(check, begin + Duration::from_millis(after));
        assert_eq!(admit("expired", 0), Some(0));
        for after in 0..1000 {
            assert_eq!(admit("expired", after), None);
        }
        assert_eq!(admit("wrong signature", 1), Some(0), "another kind");
        assert_eq!(admit("expired", 10_000), Some(1000));
        assert_eq!(admit("expired", 20_000), Some(0));
    }

    #[test]
    fn long_parts_are_shortened_and_stay_on_one_line() {
        assert_eq!(shown("a\nb"), r"'a\nb'");
        assert_eq!(shown(&"ä".repeat(5000)).chars().count(), MAX_SHOWN + 1);
    }
}
