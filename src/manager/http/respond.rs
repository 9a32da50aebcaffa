//! Makes answers: JSON, problem documents, plain text.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};

use stayput_api::{Code, Problem, Refusal, SEQUENCE_HEADER, Status, TIMES_AHEAD_HEADER};

/// An answer, and its problem code for the metrics.
pub(super) struct Answer {
    pub(super) response: Response<Full<Bytes>>,
    pub(super) code: Option<Code>,
}

impl Answer {
    fn new(status: StatusCode, media_type: &'static str, body: Bytes) -> Self {
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let answer = Self { response, code: None };
        let answer = answer.with(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if media_type.is_empty() {
            return answer;
        }
        answer.with(CONTENT_TYPE, HeaderValue::from_static(media_type))
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.response.headers_mut().insert(name, value);
        self
    }

    /// An answer with serialized JSON.
    pub(super) fn json(status: StatusCode, body: Bytes) -> Self {
        Self::new(status, "application/json", body)
    }

    pub(super) fn text(status: StatusCode, media_type: &'static str, body: String) -> Self {
        Self::new(status, media_type, Bytes::from(body))
    }

    /// The answer to a probe. No details, because the route needs no credentials.
    pub(super) fn probe(holds: bool) -> Self {
        let (status, word) = if holds {
            (StatusCode::OK, &b"ok\n"[..])
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, &b"no\n"[..])
        };
        Self::new(status, "text/plain; charset=utf-8", Bytes::from_static(word))
    }

    /// The answer that hyper gives to something that is not a request. The connection is closed.
    pub(super) fn bad_request() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "", Bytes::new())
            .with(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT, "", Bytes::new())
    }

    /// A problem document; `current` only for callers who may read the status.
    pub(super) fn problem(refusal: Refusal, current: Option<&Status>) -> Self {
        let mut problem = Problem::new(refusal.code, refusal.message);
        problem.current = current.cloned().map(Box::new);
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Strings, numbers and bools only: serializing them does not fail.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut answer = Self::new(status, "application/problem+json", Bytes::from(body));
        answer.code = Some(refusal.code);
        match refusal.code {
            Code::Unauthenticated => {
                answer.with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            // The rest of the body will not be read.
            Code::RequestTimeout | Code::BodyTooLarge => {
                answer.with(CONNECTION, HeaderValue::from_static("close"))
            }
            Code::TooManyWaiting => answer.with(RETRY_AFTER, HeaderValue::from_static("1")),
            _ => answer,
        }
    }

    /// Notes in headers that the caller waited for less than it asked for: 202 alone would mean
    /// that its time is over.
    pub(super) fn cut_short(self, why: &'static str) -> Self {
        self.with(HeaderName::from_static("stayput-wait-cut-short"), HeaderValue::from_static(why))
            .with(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Names the request of this answer in a header: the status may be about a later one.
    pub(super) fn of_request(self, sequence: u64) -> Self {
        self.with(HeaderName::from_static(SEQUENCE_HEADER), HeaderValue::from(sequence))
    }

    /// Adds the difference of clocks by which the times in a status are to be read, in milliseconds.
    pub(super) fn with_times_ahead(self, milliseconds: i64) -> Self {
        self.with(HeaderName::from_static(TIMES_AHEAD_HEADER), HeaderValue::from(milliseconds))
    }

    /// 405, with the methods of the route.
    pub(super) fn method_not_allowed(allow: &'static str) -> Self {
        let message = format!("this route takes {allow}");
        Self::problem(Refusal::new(Code::MethodNotAllowed, message), None)
            .with(ALLOW, HeaderValue::from_static(allow))
    }
}
