//! Indexes documents all the time, also during restarts, and checks that none is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::error::Result;
use crate::http::ask_engine;
use crate::pod::expect;

/// Pause between two documents.
const PAUSE: Duration = Duration::from_millis(10);

/// A thread that indexes documents.
pub(super) struct Traffic {
    shared: Arc<Mutex<Shared>>,
    addresses: Vec<(String, u16)>,
    thread: JoinHandle<()>,
}

struct Shared {
    /// Every document with a smaller number was acknowledged.
    acknowledged: usize,
    since: Instant,
    longest: Duration,
    end: bool,
}

/// The result of a check.
pub(super) struct Documents {
    pub(super) acknowledged: usize,
    /// The longest time between two acknowledgements.
    pub(super) longest: Duration,
}

impl Traffic {
    /// Creates the index, in which each shard has a replica, and begins.
    pub(super) fn start(addresses: Vec<(String, u16)>) -> Result<Self> {
        let settings = json!({"settings": {"number_of_shards": 3, "number_of_replicas": 1}});
        let (host, port) = &addresses[0];
        let made = ask_engine((host, *port), "PUT", "/journal", Some(&settings))?;
        expect(made.status, 200, "the answer to PUT /journal")?;
        let shared =
            Shared { acknowledged: 0, since: Instant::now(), longest: Duration::ZERO, end: false };
        let shared = Arc::new(Mutex::new(shared));
        let (written, nodes) = (Arc::clone(&shared), addresses.clone());
        let thread = thread::spawn(move || write(&written, &nodes));
        Ok(Self { shared, addresses, thread })
    }

    /// Resets the longest wait.
    pub(super) fn reset(&self) {
        let mut shared = lock(&self.shared);
        shared.since = Instant::now();
        shared.longest = Duration::ZERO;
    }

    /// Reads every acknowledged document.
    pub(super) fn check(&self) -> Result<Documents> {
        let (acknowledged, longest) = {
            let shared = lock(&self.shared);
            (shared.acknowledged, shared.longest)
        };
        if acknowledged == 0 {
            return Err("no document was acknowledged".into());
        }
        for number in 0..acknowledged {
            let (host, port) = &self.addresses[number % self.addresses.len()];
            let target = format!("/journal/_doc/{number}");
            let found = ask_engine((host, *port), "GET", &target, None)?;
            if found.status != 200 || found.body["_source"]["number"] != number {
                return Err(format!(
                    "document {number} was acknowledged and is lost: {} {}",
                    found.status, found.body
                )
                .into());
            }
        }
        Ok(Documents { acknowledged, longest })
    }

    /// Ends it; returns the number of documents.
    pub(super) fn end(self) -> Result<usize> {
        lock(&self.shared).end = true;
        self.thread.join().map_err(|_| "the thread that indexes has panicked")?;
        Ok(lock(&self.shared).acknowledged)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each document is sent to one node after the other until it is acknowledged.
fn write(shared: &Mutex<Shared>, addresses: &[(String, u16)]) {
    for attempt in 0.. {
        let number = {
            let shared = lock(shared);
            if shared.end {
                return;
            }
            shared.acknowledged
        };
        let (host, port) = &addresses[attempt % addresses.len()];
        let target = format!("/journal/_doc/{number}?timeout=1s");
        let body = json!({"number": number});
        let answer = ask_engine((host, *port), "PUT", &target, Some(&body));
        if answer.is_ok_and(|answer| matches!(answer.status, 200 | 201)) {
            let mut shared = lock(shared);
            shared.acknowledged += 1;
            let now = Instant::now();
            shared.longest = shared.longest.max(now - shared.since);
            shared.since = now;
        }
        thread::sleep(PAUSE);
    }
}
