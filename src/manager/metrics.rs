//! All metrics of the manager. Gauges are read from the status at each scrape, and named after its
//! fields; only facts that the status does not keep are counted here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::errors::ErrorCode;
use stayput_api::{Desired, ExitReason, State, Status};

/// The media type of [`Metrics::scrape`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counters that are kept longer than the request or the run that they count.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Family<Request, Counter>,
    exits: Family<Reason, Counter>,
    evictions: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: &'static str,
    method: &'static str,
    status: u16,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabel {
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
        self.requests.get_or_create(&Request { route, method, status, code }).inc();
    }

    /// Counts the end of a run.
    pub fn count_exit(&self, reason: ExitReason) {
        self.exits.get_or_create(&Reason { reason: reason.as_str() }).inc();
    }

    /// Counts connections of the API that were closed for the sake of others.
    pub fn evictions(&self) -> Counter {
        self.evictions.clone()
    }

    /// All metrics as text. `key_reload_failed`: a key or certificate on disk is not the one in
    /// force. `certificate_expiry`: end of the served certificate, in seconds since the epoch.
    pub fn scrape(
        &self,
        status: &Status,
        key_reload_failed: bool,
        certificate_expiry: Option<u64>,
    ) -> String {
        let mut registry = Registry::with_prefix("stayput");
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: status.manager.version.clone() }).set(1);
        registry.register("build_info", "Version of the manager", build);
        self.register_engine(&mut registry, status);
        register_config(&mut registry, status);
        gauge(
            &mut registry,
            "durable",
            "1 if the last request would survive a crash of the manager",
            status.manager.durable,
        );
        gauge(
            &mut registry,
            "key_reload_failed",
            "1 if a new key or certificate on disk cannot be used",
            key_reload_failed,
        );
        if let Some(at) = certificate_expiry {
            let expiry = Gauge::<i64>::default();
            expiry.set(i64::try_from(at).unwrap_or(i64::MAX));
            registry.register(
                "certificate_expiry_timestamp_seconds",
                "When the served certificate, or one of its chain, expires",
                expiry,
            );
        }
        let errors = Family::<ErrorLabel, Gauge>::default();
        for code in ErrorCode::ALL.map(ErrorCode::as_str) {
            let shown = status.manager.errors.iter().any(|error| error.code == code);
            errors.get_or_create(&ErrorLabel { code }).set(i64::from(shown));
        }
        registry.register("manager_error", "1 for each present error of the manager", errors);
        let lost = Counter::<u64>::default();
        lost.inc_by(status.manager.log_lines_lost);
        registry.register("log_lines_lost", "Lines of the manager's log that were dropped", lost);
        registry.register("http_requests", "Answered requests of the API", self.requests.clone());
        registry.register(
            "http_connections_evicted",
            "Connections of the API, mostly without credentials, that were closed for others",
            self.evictions.clone(),
        );
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        to_prometheus(&text)
    }

    fn register_engine(&self, registry: &mut Registry, status: &Status) {
        let states = Family::<StateLabel, Gauge>::default();
        for state in State::ALL {
            let label = StateLabel { state: state.as_str() };
            states.get_or_create(&label).set(i64::from(state == status.state));
        }
        registry.register(
            "engine_state",
            "1 for the current state of the engine, 0 for all others",
            states,
        );
        gauge(
            registry,
            "engine_desired_running",
            "1 if the engine shall run, 0 if it shall be stopped",
            status.desired == Desired::Running,
        );
        if let Some(ready) = status.ready {
            gauge(
                registry,
                "engine_ready",
                "1 if the last call of the readiness probe succeeded",
                ready,
            );
        }
        if let Some(archive) = &status.archive {
            gauge(
                registry,
                "engine_archive_used",
                "1 if the server JVM uses the archive of classes that its options name",
                archive.used,
            );
        }
        let starts = Counter::<u64>::default();
        starts.inc_by(status.starts);
        registry.register(
            "engine_starts",
            "Starts of the engine since the manager started",
            starts,
        );
        registry.register("engine_exits", "Ends of the engine, by reason", self.exits.clone());
        let sequence = Gauge::<i64>::default();
        sequence.set(i64::try_from(status.sequence).unwrap_or(i64::MAX));
        registry.register("sequence", "Highest sequence of a request", sequence);
    }
}

/// Converts OpenMetrics to the text format of Prometheus, which every scraper reads: there the name
/// of a counter has its `_total` in the comments as well, and there is no end marker.
fn to_prometheus(open_metrics: &str) -> String {
    let counters: Vec<&str> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut text = String::with_capacity(open_metrics.len() + 64);
    for line in open_metrics.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(kind), Some(name), Some(rest)) if counters.contains(&name) => {
                text.extend(["# ", kind, " ", name, "_total ", rest]);
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

fn register_config(registry: &mut Registry, status: &Status) {
    let Some(config) = &status.config else { return };
    if let Some(drift) = config.drift {
        gauge(
            registry,
            "config_drift",
            "1 if the engine runs with another config than the mounted one",
            drift,
        );
    }
    let errors = Gauge::<i64>::default();
    errors.set(i64::try_from(config.errors.len()).unwrap_or(i64::MAX));
    registry.register("config_errors", "Errors of the mounted config", errors);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: bool) {
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::from(value));
    registry.register(name, help, gauge);
}

#[cfg(test)]
mod tests;
