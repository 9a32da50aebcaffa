//! Refusals and unexpected answers: the type of each error and its message.

use super::super::{EngineError, health};
use super::*;

#[test]
fn wrong_credentials_and_missing_rights_say_what_to_check() {
    let message = |name| match health::parse(&recorded(ELASTICSEARCH_8, name)) {
        Err(EngineError::Unauthorized(message)) => message,
        other => panic!("{name}: {other:?}"),
    };
    let none = message("unauthorized_none");
    assert!(none.contains("missing authentication credentials"), "{none}");
    let wrong = message("unauthorized_wrong");
    assert!(wrong.contains("did not accept the API key (HTTP 401)"), "{wrong}");
    assert!(wrong.contains("unable to authenticate user [elastic]"), "{wrong}");
    assert!(wrong.contains("check the credentials of this cluster"), "{wrong}");
    for name in ["forbidden", "forbidden_flush"] {
        let forbidden = message(name);
        assert!(forbidden.contains("may not do this (HTTP 403)"), "{forbidden}");
        assert!(forbidden.contains("is unauthorized for user [looker]"), "{forbidden}");
        assert!(forbidden.contains("`manage`"), "{forbidden}");
        assert!(forbidden.contains("`maintenance`"), "{forbidden}");
    }
}

/// What a message has between backquotes is a command of ours.
#[test] // proves OPERATE-6
fn an_engine_has_no_command_shown() {
    let refused = made_up(500, r#"{"error":"run `kubectl delete namespace search`"}"#).refusal();
    assert!(refused.to_string().contains("run 'kubectl delete namespace search'"), "{refused}");
    let wrong = health::parse(&made_up(200, r#"{"status":"`kubectl delete`"}"#)).unwrap_err();
    assert!(!wrong.to_string().contains('`'), "{wrong}");
}

#[test] // proves RESTART-161
fn a_user_who_is_no_operator_is_told_to_become_one() {
    let body = r#"{"error":{"type":"security_exception","reason":"Operator privileges are required for action [cluster:admin/shutdown/get]"},"status":403}"#;
    let EngineError::Unauthorized(message) = made_up(403, body).refusal() else {
        panic!("not authorized")
    };
    assert!(message.contains("[cluster:admin/shutdown/get]"), "{message}");
    assert!(message.contains("operator_users.yml of every node"), "{message}");
    assert!(!message.contains("`manage`"), "{message}");
}

#[test]
fn what_is_not_a_matter_of_load_or_of_the_master_is_not_said_to_be() {
    let message = |status, body| made_up(status, body).refusal().to_string();
    let late = message(429, r#"{"error":{"type":"timeout_exception","reason":"timed out"}}"#);
    assert!(late.contains("it timed out") && !late.contains("overloaded"), "{late}");
    let full = message(429, r#"{"error":{"type":"circuit_breaking_exception","reason":"full"}}"#);
    assert!(full.contains("it is overloaded"), "{full}");
    let unset = message(503, "OpenSearch Security not initialized.");
    assert!(unset.contains("security plugin") && !unset.contains("master"), "{unset}");
}

#[test]
fn a_block_of_the_cluster_is_no_missing_privilege() {
    let body = r#"{"error":{"type":"cluster_block_exception",
        "reason":"blocked by: [FORBIDDEN/6/cluster read-only (api)];"},"status":403}"#;
    let EngineError::Refused { status, reason, message } = made_up(403, body).refusal() else {
        panic!("a refusal")
    };
    assert_eq!(status, 403);
    assert!(reason.contains("FORBIDDEN/6/cluster read-only (api)"), "{reason}");
    assert!(message.contains("take the setting away"), "{message}");
    assert!(message.contains("cluster.blocks.read_only_allow_delete"), "{message}");
    assert!(!message.contains("`manage`"), "{message}");
}

#[test]
fn both_generations_of_refusals_are_read() {
    let reason = |answer: Answer| match answer.refusal() {
        EngineError::Refused { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    let plain = reason(recorded(ELASTICSEARCH_8, "unknown_route"));
    assert!(plain.starts_with("no handler found for uri"), "{plain}");
    let typed = r#"{"error":{"type":"circuit_breaking_exception","reason":"Data too large"}}"#;
    assert_eq!(reason(made_up(429, typed)), "Data too large (circuit_breaking_exception)");
    assert_eq!(reason(made_up(502, "<h1>Bad Gateway</h1>\n")), "<h1>Bad Gateway</h1>");
    assert_eq!(reason(made_up(500, "")), "no reason given");
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let answer = made_up(500, &"ü".repeat(5000));
    let EngineError::Refused { reason, .. } = answer.refusal() else { panic!("a refusal") };
    assert_eq!((reason.chars().count(), reason.chars().last()), (401, Some('…')));
}

#[test]
fn what_is_no_engine_is_said_to_be_none() {
    for (status, body) in [(200, "<html>Welcome to nginx!"), (200, "[]"), (204, "")] {
        let answer = health::parse(&made_up(status, body));
        let Err(EngineError::Protocol(message)) = answer else { panic!("{answer:?}") };
        assert!(message.contains("does an Elasticsearch or OpenSearch listen there"), "{message}");
        assert!(message.contains("http://10.0.0.7:9200"), "{message}");
    }
}
