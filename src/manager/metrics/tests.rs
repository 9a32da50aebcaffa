//! The text of a scrape.

use super::*;

fn sample() -> Status {
    serde_json::from_str(include_str!("../../../proto/samples/status-running.json")).unwrap()
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|own| own == line), "no {line:?} in\n{text}");
}

#[test]
fn a_scrape_shows_the_status_and_what_was_counted() {
    let metrics = Metrics::default();
    metrics.count_request("/es/stop", "POST", 409, "stale_sequence");
    metrics.count_exit(ExitReason::Oom);
    let status = sample();
    let text = metrics.scrape(&status, true, Some(1_767_225_600));
    has(&text, "stayput_engine_state{state=\"running\"} 1");
    has(&text, "stayput_engine_state{state=\"failed\"} 0");
    has(&text, "stayput_engine_desired_running 1");
    has(&text, "stayput_engine_ready 1");
    has(&text, "stayput_engine_archive_used 1");
    has(&text, &format!("stayput_engine_starts_total {}", status.starts));
    has(&text, "stayput_engine_exits_total{reason=\"oom\"} 1");
    has(&text, "stayput_config_drift 0");
    has(&text, "stayput_durable 1");
    has(&text, "stayput_manager_error{code=\"api\"} 0");
    has(&text, "stayput_log_lines_lost_total 0");
    has(&text, "stayput_key_reload_failed 1");
    has(&text, "stayput_certificate_expiry_timestamp_seconds 1767225600");
    has(
        &text,
        "stayput_http_requests_total{route=\"/es/stop\",method=\"POST\",status=\"409\",\
         code=\"stale_sequence\"} 1",
    );
    has(&text, "# TYPE stayput_engine_starts_total counter");
    has(&text, "# HELP stayput_engine_exits_total Ends of the engine, by reason.");
    has(&text, &format!("stayput_build_info{{version=\"{}\"}} 1", status.manager.version));
    // The text format allows nothing else: each sample has a type line with its own name.
    let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        assert!(types.contains(&format!("{name} {kind}").as_str()), "{name} in\n{text}");
    }
    assert!(!text.contains("EOF") && text.ends_with('\n'));
}

/// Alerts and dashboards are checked against this file.
#[test] // proves STOP-25, OPERATE-8
fn every_metric_is_written_down() {
    let metrics = Metrics::default();
    metrics.count_request("/es/stop", "POST", 409, "stale_sequence");
    metrics.count_exit(ExitReason::Oom);
    let text = metrics.scrape(&sample(), false, Some(1_767_225_600));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/metrics/manager.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let known = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(known, text, "run with UPDATE_DOCS=1");
}

#[test]
fn what_is_not_known_is_not_shown() {
    let status = Status { ready: None, config: None, ..sample() };
    let text = Metrics::default().scrape(&status, false, None);
    assert!(
        !text.contains("engine_ready")
            && !text.contains("expiry")
            && !text.contains("stayput_config_"),
        "{text}"
    );
}
