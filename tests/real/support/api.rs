//! The manager's API at its unix socket.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::http::{Answer, exchange};
use super::wait::eventually;

/// Longer than anything here takes on a slow and busy machine: three Elasticsearch nodes that start at the same
/// time, or a node that is brought back after its new container could not be made.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The socket of a manager.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) socket: PathBuf,
}

impl Api {
    pub(crate) fn get(&self, target: &str) -> Answer {
        self.request("GET", target, None)
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Answer {
        self.request("POST", target, Some(body))
    }

    pub(crate) fn status(&self) -> Value {
        self.get("/es/status").expect(200)
    }

    fn request(&self, method: &str, target: &str, body: Option<&Value>) -> Answer {
        let stream = UnixStream::connect(&self.socket).expect("the manager listens");
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a setting");
        exchange(stream, (method, target), body).expect("the manager answers")
    }

    /// Whether a manager answers.
    pub(crate) fn is_up(&self) -> bool {
        UnixStream::connect(&self.socket).is_ok()
    }

    /// The first status from now on that meets the condition. Every status in between is checked.
    #[track_caller]
    pub(crate) fn status_when(&self, what: &str, wished: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let mut status = self.status();
        while !wished(&status) {
            assert!(Instant::now() < deadline, "never happened: {what}; now {status:#}");
            let cursor = status["cursor"].as_str().expect("a cursor");
            let answer = self.get(&format!("/es/status?after={cursor}&timeout=10s"));
            match answer.status {
                200 => status = answer.body,
                204 => {}
                code => panic!("waiting for {what}: {code} {:#}", answer.body),
            }
        }
        status
    }

    #[track_caller]
    pub(crate) fn until_state(&self, state: &str) -> Value {
        self.status_when(state, |status| status["state"] == state)
    }

    /// Waits until the engine is ready; fails at once if it ends.
    #[track_caller]
    pub(crate) fn until_ready(&self) -> Value {
        let status = self.status_when("ready", |status| {
            status["ready"] == true || matches!(status["state"].as_str(), Some("failed" | "stuck"))
        });
        assert_eq!(status["state"], "running", "{status:#}");
        status
    }

    /// Stops the engine and waits until none of its processes is left. While a test beside writes an image, the
    /// disk may be too slow for the journal; then the stop is refused.
    #[track_caller]
    pub(crate) fn stop(&self) -> Value {
        let stopped = || self.post("/es/stop?wait=5m", &serde_json::json!({}));
        let is_slow = |answer: &Answer| answer.body["code"] == "journal_unavailable";
        eventually("the journal is written", || Some(stopped()).filter(|one| !is_slow(one)))
            .expect(200)
    }

    /// Starts the engine and waits until it is ready.
    #[track_caller]
    pub(crate) fn start(&self, body: &Value) -> Value {
        let answer = self.post("/es/start", body);
        assert!(matches!(answer.status, 200 | 202), "{}: {:#}", answer.status, answer.body);
        self.until_ready()
    }
}
