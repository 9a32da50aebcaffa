//! Times, durations, counts, requests and outcomes as people read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stayput_api::Span;
use stayput_restart::{HistoryEntry, Request, Time};

/// A duration in its two largest units: `1h 6m`.
pub(crate) fn rounded_duration(seconds: u64) -> String {
    let kept = match seconds {
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        86_400.. => seconds / 3_600 * 3_600,
    };
    humantime::format_duration(Duration::from_secs(kept)).to_string()
}

/// A duration in all its units, as a user gave it.
pub(crate) fn duration_as_given(span: Span) -> String {
    humantime::format_duration(span.to_duration()).to_string()
}

/// A time, and how long ago it is.
pub(crate) fn time_with_age(time: Time, now: Time) -> String {
    let shown = time_to_second(time);
    if now >= time {
        format!("{shown} ({} ago)", rounded_duration(now.since(time) / 1000))
    } else {
        // This machine's clock and the reconciler's may differ.
        format!("{shown} (in {})", rounded_duration(time.since(now) / 1000))
    }
}

/// A time without its fraction of a second.
pub(crate) fn time_to_second(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// `1 node`, `2 nodes`.
pub(crate) fn node_count(count: usize) -> String {
    if count == 1 { "1 node".into() } else { format!("{count} nodes") }
}

/// `logs-0 is`, `logs-0, logs-1 are`.
pub(crate) fn names_are(nodes: &[String]) -> String {
    format!("{} {}", nodes.join(", "), if nodes.len() == 1 { "is" } else { "are" })
}

/// The text, or `-` where it is empty.
pub(crate) const fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// `: message`, or nothing where the message is empty.
pub(crate) fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// Why a SearchCluster has no status, and what to check.
pub(crate) const NOT_PROCESSED: &str = "stayput-reconciler has not processed this SearchCluster yet; check that it runs and watches this \
     namespace: `kubectl get pods -A -l app.kubernetes.io/name=stayput-reconciler`";

/// A request in one line.
pub(crate) fn request_summary(request: &Request) -> String {
    let mut text = format!("{} {}", request.strategy.as_str(), request.id);
    let target = &request.target;
    if !target.nodes.is_empty() {
        text = format!("{text} of {}", target.nodes.join(", "));
    }
    if let Some(role) = &target.role {
        text = format!("{text}, role {role}");
    }
    if let Some(zone) = &target.zone {
        text = format!("{text}, zone {zone}");
    }
    if let Some(time) = request.not_before {
        text = format!("{text}, not before {}", time_to_second(time));
    }
    if let Some(deadline) = request.deadline {
        text = format!("{text}, deadline {}", duration_as_given(deadline));
    }
    if request.allow_outage {
        text = format!("{text}, allowing an outage");
    }
    if request.outside_windows {
        text = format!("{text}, also outside of maintenance windows");
    }
    if !request.skip_rules.is_empty() {
        text = format!("{text}, without {}", request.skip_rules.join(", "));
    }
    match &request.by {
        Some(by) => format!("{text}, requested by {by}"),
        None => text,
    }
}

/// Why the restart ended so, the outages that it was allowed, and the rules that it skipped.
pub(crate) fn reason_in_history(entry: &HistoryEntry) -> String {
    let skipped = if entry.skipped_rules.is_empty() {
        String::new()
    } else {
        format!("without {}", entry.skipped_rules.join(", "))
    };
    let outage = if entry.allowed_outage { "an outage was allowed" } else { "" };
    let parts = [entry.reason.as_str(), outage, &skipped];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// Number of nodes, in total and by step.
pub(crate) fn nodes_by_step(entry: &HistoryEntry) -> String {
    let steps: Vec<String> =
        entry.steps.iter().map(|(step, count)| format!("{count} {step}")).collect();
    if steps.is_empty() {
        entry.nodes.to_string()
    } else {
        format!("{} ({})", entry.nodes, steps.join(", "))
    }
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
