//! From an HTTP response to an answer or an error.

use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};

use super::{Answer, ClientError, ProtocolError, Refused};
use stayput_api::Problem;

/// A response whose body has not been parsed.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    content_type: String,
    body: Bytes,
    manager: String,
}

impl Reply {
    /// `manager` is its address, for messages.
    pub(super) fn new(response: Response<Bytes>, manager: String) -> Self {
        let (head, body) = response.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or("no content type").to_owned();
        Self { status: head.status, content_type, body, manager }
    }

    /// Returns the answer if it is a good one.
    pub(super) fn into_answer(self) -> Result<Answer, ClientError> {
        if self.status != StatusCode::OK && self.status != StatusCode::ACCEPTED {
            return Err(self.into_error());
        }
        match serde_json::from_slice(&self.body) {
            Ok(status) => {
                Ok(Answer { done: self.status == StatusCode::OK, status, body: self.body })
            }
            Err(error) => Err(self.unknown(format!("no status we know: {error}"), Some(error))),
        }
    }

    fn into_error(self) -> ClientError {
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => Refused { problem: Box::new(problem), body: self.body }.into(),
            Err(_) => {
                let answer = unknown_problem(&self.body).unwrap_or(self.content_type.clone());
                self.unknown(answer, None)
            }
        }
    }

    fn unknown(self, answer: String, source: Option<serde_json::Error>) -> ClientError {
        let (manager, status) = (self.manager, self.status.as_u16());
        ProtocolError::UnknownAnswer { manager, status, answer, source }.into()
    }
}

/// Code and detail of a problem whose code this version does not know.
fn unknown_problem(body: &[u8]) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(format!("{}: {}", problem.get("code")?.as_str()?, problem.get("detail")?.as_str()?))
}

/// Makes a text safe inside a query value. Colons stay: cursors have them, and a query may.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_would_change_the_query() {
        assert_eq!(escape("b7f1:17"), "b7f1:17");
        assert_eq!(escape("a&b=c d\n"), "a%26b%3Dc%20d%0A");
    }

    #[test]
    fn tells_a_problem_of_a_newer_manager() {
        let body = br#"{"code":"moon_phase","detail":"wait for the full moon","status":409}"#;
        assert_eq!(unknown_problem(body), Some("moon_phase: wait for the full moon".into()));
        assert_eq!(unknown_problem(b"<html>"), None);
    }
}
