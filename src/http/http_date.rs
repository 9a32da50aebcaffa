//! A server's clock, by the `Date` of its answer.

use std::time::UNIX_EPOCH;

use hyper::HeaderMap;
use hyper::header::DATE;

/// Time of a server's answer in seconds since 1970, if its `Date` can be read.
pub fn seconds(headers: &HeaderMap) -> Option<u64> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        let read =
            |date: &'static str| seconds(&[(DATE, date.parse().unwrap())].into_iter().collect());
        // `date -ud '2026-11-23 05:00:07' +%s`
        assert_eq!(read("Mon, 23 Nov 2026 05:00:07 GMT"), Some(1_795_410_007));
        assert_eq!(read("yesterday"), None);
        assert_eq!(seconds(&HeaderMap::new()), None);
    }
}
