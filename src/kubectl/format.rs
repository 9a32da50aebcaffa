//! Times, durations and counts as people read them.

use std::time::Duration;

use stayput_api::Span;
use stayput_restart::Time;

/// A duration in its two largest units: `1h 6m`.
pub(super) fn rounded_duration(seconds: u64) -> String {
    let kept = match seconds {
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        86_400.. => seconds / 3_600 * 3_600,
    };
    humantime::format_duration(Duration::from_secs(kept)).to_string()
}

/// A duration in all its units, as a user gave it.
pub(super) fn duration_as_given(span: Span) -> String {
    humantime::format_duration(span.to_duration()).to_string()
}

/// A time, and how long ago it is.
pub(super) fn time_with_age(time: Time, now: Time) -> String {
    let shown = time_to_second(time);
    if now >= time {
        format!("{shown} ({} ago)", rounded_duration(now.since(time) / 1000))
    } else {
        // This machine's clock and the reconciler's may differ.
        format!("{shown} (in {})", rounded_duration(time.since(now) / 1000))
    }
}

/// A time without its fraction of a second.
pub(super) fn time_to_second(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// `1 node`, `2 nodes`.
pub(super) fn node_count(count: usize) -> String {
    if count == 1 { "1 node".into() } else { format!("{count} nodes") }
}

/// The text, or `-` where it is empty.
pub(super) const fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// `: message`, or nothing where the message is empty.
pub(super) fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// The innermost message of an error; those around it only say that something inside failed.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
