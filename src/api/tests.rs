//! Contract of the messages.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    Code, ConfigChoice, Desired, ExitReason, Problem, RequestKind, Span, StartRequest, State,
    Status, StopRequest,
};

fn refusal<T: serde::de::DeserializeOwned + std::fmt::Debug>(body: serde_json::Value) -> String {
    serde_json::from_value::<T>(body).unwrap_err().to_string()
}

#[test]
fn every_field_of_a_request_may_be_left_out() {
    assert_eq!(serde_json::from_str::<StopRequest>("{}").unwrap(), StopRequest::default());
    let start = serde_json::from_str::<StartRequest>("{}").unwrap();
    assert_eq!(start.config, ConfigChoice::Mounted);
}

#[test]
fn a_request_is_read_as_it_is_documented() {
    let checksum = format!("sha256:{}", "ab".repeat(32));
    let stop = json!({
        "sequence": 42, "pod": "uid", "grace": "2m 30s", "drain": "500ms",
        "resumeAfter": "10m", "resumeChecksum": checksum, "exit": true,
    });
    assert_eq!(
        serde_json::from_value::<StopRequest>(stop).unwrap(),
        StopRequest {
            sequence: Some(42),
            pod: Some("uid".to_owned()),
            grace: Some(Span(150_000)),
            drain: Some(Span(500)),
            resume_after: Some(Span(600_000)),
            resume_checksum: Some(checksum.clone()),
            exit: true,
        }
    );
    let start = json!({"sequence": 43, "checksum": checksum, "config": "last_good"});
    assert_eq!(
        serde_json::from_value::<StartRequest>(start).unwrap(),
        StartRequest {
            sequence: Some(43),
            pod: None,
            checksum: Some(checksum),
            config: ConfigChoice::LastGood,
        }
    );
}

/// In a journal of a newer manager; whoever sends one is refused by the manager's server.
#[test]
fn an_unknown_field_of_a_request_is_left_out() {
    let stop = serde_json::from_value::<StopRequest>(json!({"force": true}));
    assert_eq!(stop.unwrap(), StopRequest::default());
    let start = serde_json::from_value::<StartRequest>(json!({"grace": "1s"}));
    assert_eq!(start.unwrap(), StartRequest::default());
}

#[test]
fn a_wrong_type_or_value_is_refused() {
    assert!(refusal::<StopRequest>(json!({"sequence": "7"})).contains("u64"));
    assert!(refusal::<StopRequest>(json!({"sequence": -1})).contains("u64"));
    assert!(refusal::<StopRequest>(json!({"sequence": 1.5})).contains("u64"));
    for wrong in [json!(-1), json!(1.5), json!(null), json!(true), json!([90])] {
        let message = refusal::<StopRequest>(json!({"grace": wrong}));
        assert!(message.contains("or whole seconds such as 90"), "{message}");
    }
    assert!(refusal::<StopRequest>(json!({"grace": 86_401})).contains("longer than a day"));
    assert!(refusal::<StopRequest>(json!({"grace": "NaN"})).contains("\"NaN\""));
    assert!(refusal::<StartRequest>(json!({"config": "newest"})).contains("`newest`"));
    assert!(refusal::<StopRequest>(json!({"resumeAfter": "999ms"})).contains("after 1s"));
    assert!(refusal::<StopRequest>(json!({"resumeAfter": "25h"})).contains("longer than a day"));
    assert!(refusal::<StopRequest>(json!({"exit": null})).contains("bool"));
}

#[test]
fn a_checksum_to_resume_on_needs_a_time() {
    let lonely = StopRequest { resume_checksum: Some("c".to_owned()), ..StopRequest::default() };
    assert_eq!(lonely.check().unwrap_err().code, Code::InvalidBody);
    let both = StopRequest { resume_after: Some(Span(1000)), ..lonely };
    assert_eq!(both.check(), Ok(()));
}

#[test]
fn a_span_is_written_as_people_write_it() {
    assert_eq!(Span::parse("90s"), Ok(Span(90_000)));
    assert_eq!(Span::parse("0s"), Ok(Span(0)));
    assert_eq!(Span::parse("24h"), Ok(Span::MAX));
    assert!(Span::parse("25h").unwrap_err().to_string().contains("longer than a day"));
    for wrong in ["", "-1s", "-1", "NaN", "soon", "1e3s", "1e3", "1.5", "99999999999999999999s"] {
        let message = Span::parse(wrong).unwrap_err().to_string();
        assert!(message.contains(&format!("{wrong:?}")), "{message}");
    }
}

#[test] // proves ACCESS-21
fn a_bare_number_is_seconds() {
    assert_eq!(Span::parse("60"), Ok(Span(60_000)));
    assert_eq!(Span::parse("0"), Ok(Span(0)));
    let stop = json!({"grace": 60, "drain": "10"});
    let stop = serde_json::from_value::<StopRequest>(stop).unwrap();
    assert_eq!((stop.grace, stop.drain), (Some(Span(60_000)), Some(Span(10_000))));
    for long in ["86401", "99999999999999999999"] {
        assert!(Span::parse(long).unwrap_err().to_string().contains("longer than a day"));
    }
}

#[test]
fn a_span_survives_its_own_spelling() {
    for millis in [0, 1, 999, 1000, 61_001, 3_600_000, Span::MAX.0] {
        let text = serde_json::to_string(&Span(millis)).unwrap();
        assert_eq!(serde_json::from_str::<Span>(&text).unwrap(), Span(millis), "{text}");
    }
}

#[test]
fn what_a_request_leaves_out_is_not_sent() {
    assert_eq!(serde_json::to_string(&StopRequest::default()).unwrap(), "{}");
}

fn named<T: serde::Serialize>(value: T) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn names_in_answers_logs_and_metrics_are_the_same() {
    for code in Code::ALL {
        assert_eq!(named(code), code.as_str());
    }
    for state in State::ALL {
        assert_eq!(named(state), state.as_str());
    }
    for desired in [Desired::Running, Desired::Stopped] {
        assert_eq!(named(desired), desired.as_str());
    }
    for kind in [RequestKind::Stop, RequestKind::Start, RequestKind::Unknown] {
        assert_eq!(named(kind), kind.as_str());
    }
    for config in [ConfigChoice::Mounted, ConfigChoice::LastGood] {
        assert_eq!(named(config), config.as_str());
    }
    for reason in [
        ExitReason::Stopped,
        ExitReason::Exited,
        ExitReason::Killed,
        ExitReason::Oom,
        ExitReason::EndedWithManager,
        ExitReason::Unknown,
    ] {
        assert_eq!(named(reason), reason.as_str());
    }
}

#[test]
fn the_lists_are_complete_and_in_order() {
    // `Code::UpgradeRefused` and `State::Stuck` are declared last. A list without duplicates that
    // is as long as the last discriminant is complete.
    assert_eq!(Code::ALL.len(), Code::UpgradeRefused as usize + 1);
    assert_eq!(State::ALL.len(), State::Stuck as usize + 1);
    assert!(Code::ALL.is_sorted() && State::ALL.is_sorted());
    assert_eq!(BTreeSet::from(Code::ALL).len(), Code::ALL.len());
    assert_eq!(BTreeSet::from(State::ALL).len(), State::ALL.len());
}

#[test]
fn every_code_has_an_error_status_and_a_title_of_its_own() {
    let titles: BTreeSet<&str> = Code::ALL.iter().map(|code| code.title()).collect();
    assert_eq!(titles.len(), Code::ALL.len());
    for code in Code::ALL {
        assert!((400..600).contains(&code.http_status()), "{code:?}");
    }
}

#[test]
fn a_problem_repeats_its_status_and_hides_what_is_absent() {
    let problem = serde_json::to_value(Problem::new(Code::StaleSequence, "7 < 8")).unwrap();
    assert_eq!(
        problem,
        json!({
            "title": "A later request was already accepted",
            "status": 409,
            "code": "stale_sequence",
            "detail": "7 < 8",
        })
    );
}

fn sample() -> serde_json::Value {
    json!({
        "manager": {
            "version": "0.1.0", "boot_id": "b", "pid": 1, "since": "2026-11-21T09:00:00Z",
            "durable": true, "pod": {"namespace": "search", "name": "logs-2", "uid": null},
            "log_lines_lost": 3,
            "errors": [{"code": "api", "message": "in use", "since": "2026-11-21T09:00:00Z"}],
        },
        "cursor": "b7f1:17", "desired": "running", "state": "running", "ready": null,
        "since": "2026-11-21T09:00:00Z", "sequence": 42,
        "run": {
            "id": "r", "pid": 23, "started_at": "2026-11-21T09:00:00Z", "checksum": null,
            "config": "mounted", "config_uncertain": true,
            "environment": "cd",
        },
        "archive": {"path": "/warm.jsa", "used": false},
        "starts": 4,
        "last_exit": {
            "run": "q", "code": null, "signal": 9, "reason": "killed", "took_ms": 812,
            "ran_ms": 9000, "at": "2026-11-21T09:00:00Z",
            "stragglers": [{"pid": 7, "command": "agent"}], "strangers": [],
        },
        "last_request": {
            "sequence": 42, "kind": "start", "accepted": true, "by": "x",
            "at": "2026-11-21T09:00:00Z",
        },
        "config": {
            "checksum": "sha256:ab", "drift": false,
            "files": [{"path": "elasticsearch.yml", "sha256": "ab", "live": false}],
            "run_files": [{"path": "elasticsearch.yml", "sha256": "aa", "live": false}],
            "last_good": null, "errors": [], "observed_at": "2026-11-21T09:00:00Z",
        },
        "environment": "ef",
        "reason": {"code": "starting", "message": "the engine was spawned"},
        "ready_error": "connection refused",
        "resume": {"at": "2026-11-21T09:10:00Z", "checksum": null},
    })
}

#[test]
fn a_status_survives_reading_and_writing() {
    let status: Status = serde_json::from_value(sample()).unwrap();
    assert_eq!(serde_json::to_value(&status).unwrap(), sample());
    assert_eq!(status.last_exit.unwrap().shell_code(), Some(137));
}

#[test]
fn a_reader_tolerates_what_a_newer_manager_tells() {
    let mut newer = sample();
    newer["weather"] = json!("fine");
    newer["manager"]["mood"] = json!({"deep": [1]});
    newer["run"]["colour"] = json!("blue");
    let status: Status = serde_json::from_value(newer).unwrap();
    assert_eq!(status, serde_json::from_value(sample()).unwrap());
}
