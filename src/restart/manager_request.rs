//! The request to a manager for an action: the same whether a reconciler sends it, with an apiserver or
//! without one, or a test world.

use crate::Resume;
use stayput_api::{ConfigChoice, DrainRequest, Span, StartRequest, StopRequest};

/// The request for [`Action::Drain`](crate::Action::Drain).
pub fn drain_request(uid: &str, sequence: u64) -> DrainRequest {
    DrainRequest { sequence: Some(sequence), pod: Some(uid.to_owned()) }
}

/// The request for [`Action::Stop`](crate::Action::Stop) and
/// [`Action::EndDrain`](crate::Action::EndDrain); `drain` is in milliseconds.
pub fn stop_request(
    uid: &str,
    sequence: u64,
    drain: u64,
    resume: Option<&Resume>,
    exit: bool,
) -> StopRequest {
    StopRequest {
        sequence: Some(sequence),
        pod: Some(uid.to_owned()),
        drain: Some(Span(drain)),
        resume_after: resume.map(|resume| Span(resume.after)),
        resume_checksum: resume.and_then(|resume| resume.checksum.clone()),
        exit,
        ..StopRequest::default()
    }
}

/// The request for [`Action::Start`](crate::Action::Start).
pub fn start_request(
    uid: &str,
    sequence: u64,
    checksum: Option<&str>,
    config: ConfigChoice,
) -> StartRequest {
    StartRequest {
        sequence: Some(sequence),
        pod: Some(uid.to_owned()),
        checksum: checksum.map(str::to_owned),
        config,
    }
}
