//! Waiting ends at the right status, with the right result.

use super::super::*;
use stayput_api::{LastRequest, Reason, RequestKind};

const WANTED: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// The sample: running, after request 42, a start.
fn running() -> Status {
    serde_json::from_str(include_str!("../../../../../proto/samples/status-running.json")).unwrap()
}

/// Stopped, after request 43, a stop.
fn stopped() -> Status {
    serde_json::from_str(include_str!("../../../../../proto/samples/status-stopped.json")).unwrap()
}

fn after(sequence: u64, accepted: bool, status: Status) -> Status {
    let last = LastRequest {
        sequence,
        kind: RequestKind::Stop,
        accepted,
        by: "uid:0".into(),
        at: String::new(),
    };
    Status { last_request: Some(last), ..status }
}

/// A start of the mounted config, with a checksum or without.
fn start(sequence: u64, checksum: Option<&str>, status: &Status) -> Option<Outcome> {
    let checksum = checksum.map(str::to_owned);
    start_outcome(sequence, &StartRequest { checksum, ..StartRequest::default() }, status)
}

fn code(verdict: Option<Outcome>) -> Option<Code> {
    match verdict? {
        Outcome::Done => None,
        Outcome::Failed(refusal) => Some(refusal.code),
    }
}

#[test]
fn a_stop_is_done_when_the_engine_is_gone_and_that_is_durable() {
    assert_eq!(stop_outcome(43, &stopped()), Some(Outcome::Done));
    let mut status = stopped();
    status.manager.durable = false;
    assert_eq!(stop_outcome(43, &status), None);
    for state in State::ALL {
        let status = Status { state, ..stopped() };
        let ends = matches!(state, State::Stopped | State::Stuck);
        assert_eq!(stop_outcome(43, &status).is_some(), ends, "{state:?}");
    }
    assert_eq!(
        code(stop_outcome(43, &Status { state: State::Stuck, ..stopped() })),
        Some(Code::Stuck)
    );
}

#[test]
fn a_start_is_done_when_the_engine_runs_with_the_config_that_was_asked_for() {
    assert_eq!(start(42, None, &running()), Some(Outcome::Done));
    assert_eq!(start(42, Some(WANTED), &running()), Some(Outcome::Done));
    assert_eq!(code(start(42, Some("sha256:other"), &running())), Some(Code::WrongConfig));
    let mut status = running();
    status.run.as_mut().unwrap().checksum = None;
    assert_eq!(code(start(42, Some(WANTED), &status)), Some(Code::WrongConfig));
    for state in State::ALL {
        let ends = matches!(state, State::Running | State::Failed | State::Stuck);
        assert_eq!(start(42, None, &Status { state, ..running() }).is_some(), ends, "{state:?}");
    }
}

#[test]
fn a_failed_start_says_why() {
    let reason = Reason { code: "start_failed".into(), message: "it ended with code 78".into() };
    let status = Status { state: State::Failed, reason: Some(reason), ..running() };
    let Some(Outcome::Failed(refusal)) = start(42, None, &status) else { panic!("not over") };
    assert_eq!(
        (refusal.code, refusal.message.as_str()),
        (Code::StartFailed, "it ended with code 78")
    );
}

#[test]
fn a_status_older_than_the_request_says_nothing() {
    assert_eq!(stop_outcome(44, &stopped()), None);
    assert_eq!(start(43, None, &running()), None);
    assert_eq!(stop_outcome(1, &Status { last_request: None, ..stopped() }), None);
}

#[test]
fn a_later_accepted_request_for_something_else_supersedes() {
    assert_eq!(code(stop_outcome(41, &running())), Some(Code::Superseded));
    assert_eq!(code(start(42, None, &stopped())), Some(Code::Superseded));
}

#[test]
fn a_later_accepted_request_for_the_same_does_not() {
    assert_eq!(stop_outcome(42, &stopped()), Some(Outcome::Done));
    assert_eq!(start(41, None, &running()), Some(Outcome::Done));
    assert_eq!(start(41, Some(WANTED), &running()), Some(Outcome::Done));
    assert_eq!(code(start(41, Some("sha256:other"), &running())), Some(Code::WrongConfig));
    let last_good = StartRequest { config: ConfigChoice::LastGood, ..StartRequest::default() };
    assert_eq!(code(start_outcome(41, &last_good, &running())), Some(Code::Superseded));
}

#[test]
fn a_later_refused_request_does_not_unless_one_in_between_was_accepted() {
    assert_eq!(stop_outcome(43, &after(44, false, stopped())), Some(Outcome::Done));
    let in_between = Status { desired: Desired::Running, ..after(45, false, stopped()) };
    assert_eq!(code(stop_outcome(43, &in_between)), Some(Code::Superseded));
    assert_eq!(start(42, None, &after(44, false, running())), Some(Outcome::Done));
}
