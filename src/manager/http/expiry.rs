//! The problem to report about the end of the served certificate, and the time until it changes.

use std::time::{Duration, UNIX_EPOCH};

use stayput_http::validity::Validity;

/// Problem to report at `now`, and what to do; only shortly before the end and after it.
pub(super) fn problem(validity: Validity, now: u64) -> Option<String> {
    let end = validity.not_after;
    let date = || humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(end));
    if now > end {
        return Some(format!("the API's certificate has expired at {}: renew --tls-cert", date()));
    }
    (now >= validity.notice())
        .then(|| format!("the API's certificate expires at {}: renew --tls-cert", date()))
}

/// Time from `now` until [`problem`] changes, if it changes.
pub(super) fn until_change(validity: Validity, now: u64) -> Option<Duration> {
    let next =
        [validity.notice(), validity.not_after.saturating_add(1)].into_iter().find(|at| *at > now);
    next.map(|at| Duration::from_secs(at - now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3600;

    #[test]
    fn the_end_is_said_in_time() {
        // `date -d 2026-01-01T00:00:00Z +%s`, and 100 days later.
        let end = 1_767_225_600 + 100 * DAY;
        let validity = Validity { not_before: 1_767_225_600, not_after: end };
        assert_eq!(problem(validity, end - 10 * DAY - 1), None);
        assert_eq!(until_change(validity, end - 11 * DAY), Some(Duration::from_secs(DAY)));
        let soon = problem(validity, end - 10 * DAY).unwrap();
        assert!(soon.contains("expires at 2026-04-11T00:00:00Z"), "{soon}");
        assert_eq!(until_change(validity, end), Some(Duration::from_secs(1)));
        assert!(problem(validity, end + 1).unwrap().contains("has expired"));
        assert_eq!(until_change(validity, end + 1), None);
    }
}
