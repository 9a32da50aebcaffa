//! What a manager's answer means.

use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};

use super::{Answer, ClientError, Refused};
use stayput_api::Problem;

/// An answer that has not been looked into.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    content_type: String,
    body: Bytes,
    from: String,
}

impl Reply {
    /// `from` names the manager.
    pub(super) fn new(response: Response<Bytes>, from: String) -> Self {
        let (head, body) = response.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or("nothing said").to_owned();
        Self { status: head.status, content_type, body, from }
    }

    /// The answer, if it is a good one.
    pub(super) fn into_answer(self) -> Result<Answer, ClientError> {
        if self.status != StatusCode::OK && self.status != StatusCode::ACCEPTED {
            return Err(self.into_error());
        }
        match serde_json::from_slice(&self.body) {
            Ok(status) => {
                Ok(Answer { done: self.status == StatusCode::OK, status, body: self.body })
            }
            Err(error) => Err(self.foreign(&format!("no status we know: {error}"))),
        }
    }

    fn into_error(self) -> ClientError {
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => {
                ClientError::Refused(Refused { problem: Box::new(problem), body: self.body })
            }
            Err(_) => match told(&self.body) {
                Some(sentence) => self.foreign(&sentence),
                None => self.foreign(&self.content_type),
            },
        }
    }

    fn foreign(&self, what: &str) -> ClientError {
        ClientError::Protocol(format!(
            "{} answered HTTP {} with {what}: is it a stayput manager, and not a newer one \
             than this client?",
            self.from,
            self.status.as_u16()
        ))
    }
}

/// Code and sentence of a problem whose code this version does not know.
fn told(body: &[u8]) -> Option<String> {
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
        assert_eq!(told(body), Some("moon_phase: wait for the full moon".into()));
        assert_eq!(told(b"<html>"), None);
    }
}
