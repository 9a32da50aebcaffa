//! Query parameters. Unknown ones are refused: a misspelt `wait` must not be ignored.

use std::time::Duration;

use stayput_api::Refusal;
use stayput_api::{Code, Span};

/// The parameters of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of the URL after the question mark.
    ///
    /// # Errors
    /// Names the parameter that is unknown, doubled or not readable.
    pub(super) fn parse(raw: Option<&str>, known: &[&str]) -> Result<Self, Refusal> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(name), decode(value)) else {
                return Err(refuse(format!("the query part {pair:?} is not percent-encoded text")));
            };
            if !known.contains(&name.as_str()) {
                return Err(refuse(if known.is_empty() {
                    format!("{name:?} is not known: this route takes no query parameters")
                } else {
                    format!("{name:?} is not known: use {}", known.join(", "))
                }));
            }
            if parameters.iter().any(|(own, _)| *own == name) {
                return Err(refuse(format!("{name:?} is given twice: give it once")));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that is a length of time.
    ///
    /// # Errors
    /// Names the parameter and what would be accepted.
    pub(super) fn span(&self, name: &str) -> Result<Option<Duration>, Refusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let span = Span::parse(text).map_err(|error| refuse(format!("{name}: {error}")))?;
        Ok(Some(span.to_duration()))
    }

    /// The `wait` of a request. A longer one than `limit` is refused before anything is done: it
    /// could only be cut short, and the answer would look as if its time were over.
    ///
    /// # Errors
    /// The errors of [`Query::span`].
    pub(super) fn wait(&self, limit: Duration) -> Result<Option<Duration>, Refusal> {
        match self.span("wait")? {
            Some(wait) if wait > limit => Err(refuse(format!(
                "wait: {:?} is longer than {}, the longest that one request may wait, and nothing \
                 was done: write at most that; to wait on after a 202, send the same request with \
                 the `sequence` of the answer",
                self.text("wait").unwrap_or_default(),
                humantime::format_duration(limit),
            ))),
            wait => Ok(wait),
        }
    }
}

fn refuse(message: String) -> Refusal {
    // It repeats what was sent, so its length is limited.
    Refusal::new(Code::InvalidQuery, message.chars().take(300).collect::<String>())
}

/// Undoes percent-encoding and `+`; `None` if the result is not text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_parameters_are_read() {
        let query =
            Query::parse(Some("after=b7f1%3A17&timeout=1m+30s"), &["after", "timeout"]).unwrap();
        assert_eq!(query.text("after"), Some("b7f1:17"));
        assert_eq!(query.span("timeout"), Ok(Some(Duration::from_secs(90))));
        assert_eq!(query.span("wait"), Ok(None));
        assert_eq!(Query::parse(None, &[]), Ok(Query::default()));
        assert_eq!(Query::parse(Some(""), &[]), Ok(Query::default()));
    }

    #[test]
    fn a_wait_that_would_be_cut_short_is_refused() {
        let wait = |raw| Query::parse(Some(raw), &["wait"]).unwrap().wait(Duration::from_secs(300));
        assert_eq!(wait("wait=300"), Ok(Some(Duration::from_secs(300))));
        assert_eq!(wait(""), Ok(None));
        let refusal = wait("wait=1h").unwrap_err();
        assert_eq!(refusal.code, Code::InvalidQuery);
        assert!(refusal.message.starts_with("wait: \"1h\" is longer than 5m"), "{refusal:?}");
    }

    #[test]
    fn every_refusal_names_the_parameter() {
        let refusal = |raw| Query::parse(Some(raw), &["wait"]).unwrap_err();
        for (raw, expected) in [
            ("wiat=1s", "wiat"),
            ("wait=1s&wait=2s", "twice"),
            ("wait=%zz", "%zz"),
            ("%ff=", "%ff"),
        ] {
            let refusal = refusal(raw);
            assert_eq!(refusal.code, Code::InvalidQuery);
            assert!(refusal.message.contains(expected), "{refusal:?}");
        }
        let query = Query::parse(Some("wait=soon"), &["wait"]).unwrap();
        assert!(query.span("wait").unwrap_err().message.starts_with("wait: \"soon\""));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn no_query_makes_it_panic(raw: String) {
            if let Ok(query) = Query::parse(Some(&raw), &["wait", "after"]) {
                let _ = query.span("wait");
            }
        }
    }
}
