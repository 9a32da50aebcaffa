//! All metrics of the manager. Gauges are read from the status at each scrape, and named after its
//! fields; only facts that the status does not keep are counted here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::errors::ErrorCode;
use stayput_api::{Desired, ExitReason, State, Status};

/// The media type of [`Metrics::scrape`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counters that are kept longer than the request or the run that they count.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<Request, u64>>,
    exits: Mutex<BTreeMap<&'static str, u64>>,
    evictions: AtomicU64,
}

/// The labels of an answered request.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    route: &'static str,
    method: &'static str,
    status: u16,
    code: &'static str,
}

impl Metrics {
    /// Counts an answered request. `route` and `method` come from our own table, never from the
    /// request, so that callers cannot create series; `code` is the code of the problem, or empty.
    pub fn count_request(
        &self,
        route: &'static str,
        method: &'static str,
        status: u16,
        code: &'static str,
    ) {
        *lock(&self.requests).entry(Request { route, method, status, code }).or_default() += 1;
    }

    /// Counts the end of a run.
    pub fn count_exit(&self, reason: ExitReason) {
        *lock(&self.exits).entry(reason.as_str()).or_default() += 1;
    }

    /// Counts a connection of the API that was closed for the sake of another.
    pub fn count_eviction(&self) {
        self.evictions.fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics as text. `key_reload_failed`: a key or certificate on disk is not the one in
    /// force. `certificate_expiry`: end of the served certificate, in seconds since the epoch.
    pub fn scrape(
        &self,
        status: &Status,
        key_reload_failed: bool,
        certificate_expiry: Option<u64>,
    ) -> String {
        let mut page = Page::default();
        let version = labels(&[("version", &status.manager.version)]);
        page.add("gauge", "stayput_build_info", "Version of the manager", [(version, 1)]);
        self.add_engine(&mut page, status);
        add_config(&mut page, status);
        page.gauge(
            "stayput_durable",
            "1 if the last request would survive a crash of the manager",
            status.manager.durable,
        );
        page.gauge(
            "stayput_key_reload_failed",
            "1 if a new key or certificate on disk cannot be used",
            key_reload_failed,
        );
        if let Some(at) = certificate_expiry {
            page.gauge(
                "stayput_certificate_expiry_timestamp_seconds",
                "When the served certificate, or one of its chain, expires",
                at,
            );
        }
        let errors = ErrorCode::ALL.map(ErrorCode::as_str).map(|code| {
            let shown = status.manager.errors.iter().any(|error| error.code == code);
            (labels(&[("code", code)]), shown.into())
        });
        let help = "1 for each present error of the manager";
        page.add("gauge", "stayput_manager_error", help, errors);
        page.counter(
            "stayput_log_lines_lost_total",
            "Lines of the manager's log that were dropped",
            status.manager.log_lines_lost,
        );
        let counted = lock(&self.requests);
        let requests = counted.iter().map(|(Request { route, method, status, code }, count)| {
            let status = status.to_string();
            let labels =
                [("route", *route), ("method", method), ("status", &status), ("code", code)];
            (self::labels(&labels), *count)
        });
        let help = "Answered requests of the API";
        page.add("counter", "stayput_http_requests_total", help, requests);
        page.counter(
            "stayput_http_connections_evicted_total",
            "Connections of the API, mostly without credentials, that were closed for others",
            self.evictions.load(Ordering::Relaxed),
        );
        page.0
    }

    fn add_engine(&self, page: &mut Page, status: &Status) {
        let states = State::ALL
            .map(|state| (labels(&[("state", state.as_str())]), (state == status.state).into()));
        let help = "1 for the current state of the engine, 0 for all others";
        page.add("gauge", "stayput_engine_state", help, states);
        page.gauge(
            "stayput_engine_desired_running",
            "1 if the engine shall run, 0 if it shall be stopped",
            status.desired == Desired::Running,
        );
        if let Some(ready) = status.ready {
            page.gauge(
                "stayput_engine_ready",
                "1 if the last call of the readiness probe succeeded",
                ready,
            );
        }
        if let Some(archive) = &status.archive {
            page.gauge(
                "stayput_engine_archive_used",
                "1 if the server JVM uses the archive of classes that its options name",
                archive.used,
            );
        }
        page.counter(
            "stayput_engine_starts_total",
            "Starts of the engine since the manager started",
            status.starts,
        );
        let counted = lock(&self.exits);
        let exits = counted.iter().map(|(reason, count)| (labels(&[("reason", reason)]), *count));
        let help = "Ends of the engine, by reason";
        page.add("counter", "stayput_engine_exits_total", help, exits);
        page.gauge("stayput_sequence", "Highest sequence of a request", status.sequence);
    }
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add_config(page: &mut Page, status: &Status) {
    let Some(config) = &status.config else { return };
    if let Some(drift) = config.drift {
        page.gauge(
            "stayput_config_drift",
            "1 if the engine runs with another config than the mounted one",
            drift,
        );
    }
    let errors = config.errors.len() as u64;
    page.gauge("stayput_config_errors", "Errors of the mounted config", errors);
}

/// The text format of Prometheus, which every scraper reads.
#[derive(Default)]
struct Page(String);

impl Page {
    fn gauge(&mut self, name: &str, help: &str, value: impl Into<u64>) {
        self.add("gauge", name, help, [(String::new(), value.into())]);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.add("counter", name, help, [(String::new(), value)]);
    }

    /// Adds a metric with all its series, each with its [`labels`].
    fn add(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (String, u64)>,
    ) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}");
        for (labels, value) in series {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

/// Labels as they stand behind a name. Their values are words of the program: none needs an escape.
fn labels(all: &[(&str, &str)]) -> String {
    let all: Vec<String> = all.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
mod tests;
