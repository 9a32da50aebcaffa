//! The only reader of the clock: everything below a command takes the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use stayput_restart::Time;

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
