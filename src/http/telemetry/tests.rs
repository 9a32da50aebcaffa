//! The form of log lines.

use std::sync::{Arc, Mutex};

use super::*;

fn logged(format: LogFormat, log: impl FnOnce()) -> String {
    let text = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&text);
    let write = Box::new(move |line: &str| sink.lock().unwrap().push_str(line));
    let subscriber = tracing_subscriber::registry().with(Lines { format, write });
    tracing::subscriber::with_default(subscriber, log);
    text.lock().unwrap().clone()
}

#[test]
fn ecs_lines_are_json_with_the_schema_s_names() {
    let lines = logged(LogFormat::Ecs, || {
        tracing::info!(by = "uid:0", sequence = 7_u64, "accepted");
        tracing::warn!("two\nlines");
    });
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["message"], "accepted");
    assert_eq!(lines[0]["log.level"], "info");
    assert_eq!(lines[0]["service.name"], "stayput");
    assert_eq!(lines[0]["stayput"]["by"], "uid:0");
    assert_eq!(lines[0]["stayput"]["sequence"], 7);
    assert!(humantime::parse_rfc3339(lines[0]["@timestamp"].as_str().unwrap()).is_ok());
    assert_eq!(lines[1]["message"], "two\nlines");
}

#[test]
fn text_lines_are_one_line_each_whatever_is_in_them() {
    let lines = logged(LogFormat::Text, || {
        tracing::info!(by = "jwt:a\n2026 INFO forged", sequence = 7_u64, "acc\nepted");
    });
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(lines.contains(" INFO  acc epted"), "{lines}");
    assert!(lines.contains(r#"by="jwt:a\n2026 INFO forged""#), "{lines}");
    assert!(lines.contains("sequence=7"), "{lines}");
}

#[test]
fn formats_are_read_by_name() {
    assert_eq!("ecs".parse(), Ok(LogFormat::Ecs));
    assert_eq!("text".parse(), Ok(LogFormat::Text));
    assert!("xml".parse::<LogFormat>().unwrap_err().to_string().contains("ecs or text"));
}

#[test]
fn lines_carry_what_their_span_does_and_nothing_that_is_empty() {
    let lines = logged(LogFormat::Ecs, || {
        let span = tracing::error_span!("cluster", cluster = "default/logs", restart = "");
        span.in_scope(|| tracing::info!("before"));
        span.record("restart", "r1");
        span.in_scope(|| tracing::info!(cluster = "another", "during"));
        span.record("restart", "");
        span.in_scope(|| tracing::info!("after"));
        tracing::info!("outside");
    });
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ours: Vec<Value> = lines.iter().map(|line| line["stayput"].clone()).collect();
    let alone = serde_json::json!({"cluster": "default/logs"});
    assert_eq!(ours[0], alone);
    assert_eq!(ours[1], serde_json::json!({"cluster": "another", "restart": "r1"}));
    assert_eq!(ours[2], alone);
    assert_eq!(ours[3], Value::Null);
}
