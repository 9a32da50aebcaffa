//! The apiserver's clock, by the `Date` of an answer.

use std::time::UNIX_EPOCH;

/// By how many seconds this date, as HTTP writes it, differs from `now`; none if it cannot be read.
pub(super) fn differs(date: &str, now: u64) -> Option<u64> {
    let date = httpdate::parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(date.as_secs().abs_diff(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        // `date -ud '2026-11-23 05:00:00' +%s`
        let now = 1_795_410_000;
        assert_eq!(differs("Mon, 23 Nov 2026 05:00:07 GMT", now), Some(7));
        assert_eq!(differs("Mon, 23 Nov 2026 04:59:00 GMT", now), Some(60));
        assert_eq!(differs("yesterday", now), None);
    }
}
