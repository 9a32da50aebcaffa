//! Fencing: which sequences are still accepted.

use super::{Fencing, Request};
use stayput_api::{Code, MAX_SEQUENCE, MAX_SEQUENCE_JUMP, Refusal, StopRequest};

/// Judgement on the sequence of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Decide the request under this sequence.
    Fresh(u64),
    /// The request was accepted before: answer, do not act.
    Retry,
}

impl Fencing {
    /// The sequence after the highest one.
    pub(super) fn next(&self) -> u64 {
        self.sequence.saturating_add(1).min(MAX_SEQUENCE)
    }

    /// Takes the next sequence, unless its own is above all used ones.
    pub(super) fn comes_after(&mut self, used: &Self) {
        if self.sequence <= used.sequence {
            self.sequence = used.next();
            if let Some(last) = &mut self.last {
                last.request = last.request.clone().with_sequence(self.sequence);
            }
        }
    }

    /// Judges the sequence of a request.
    pub(super) fn judge(&self, request: &Request) -> Result<Verdict, Refusal> {
        let highest = self.sequence;
        let sequence = request.sequence().unwrap_or(highest.saturating_add(1));
        if sequence > MAX_SEQUENCE {
            return Err(Refusal::new(
                Code::SequenceJump,
                format!("sequence {sequence} is above {MAX_SEQUENCE}, the largest one"),
            ));
        }
        if self.unknown {
            // Any sequence may be the next one, as long as there are numbers left after it.
            return if sequence <= MAX_SEQUENCE - MAX_SEQUENCE_JUMP {
                Ok(Verdict::Fresh(sequence))
            } else {
                Err(Refusal::new(
                    Code::SequenceJump,
                    format!(
                        "sequence {sequence} is too close to the largest one; take a lower one"
                    ),
                ))
            };
        }
        if sequence > highest.saturating_add(MAX_SEQUENCE_JUMP) {
            return Err(Refusal::new(
                Code::SequenceJump,
                format!(
                    "sequence {sequence} is more than {MAX_SEQUENCE_JUMP} above {highest}, the \
                     highest so far; leave it out to take the next one"
                ),
            ));
        }
        if sequence > highest {
            return Ok(Verdict::Fresh(sequence));
        }
        if sequence < highest || self.last.is_none() {
            return Err(Refusal::new(
                Code::StaleSequence,
                format!(
                    "sequence {sequence} is not above {highest}, the highest so far; leave it out \
                     to take the next one"
                ),
            ));
        }
        match &self.last {
            Some(last) if is_repeated(&last.request, request) && last.accepted => {
                Ok(Verdict::Retry)
            }
            Some(last) if is_repeated(&last.request, request) => Ok(Verdict::Fresh(sequence)),
            Some(last) => Err(Refusal::new(
                Code::SequenceReused,
                format!(
                    "sequence {sequence} was used for another {} request; take a higher one",
                    last.request.kind().as_str()
                ),
            )),
            None => Ok(Verdict::Fresh(sequence)),
        }
    }
}

/// True if both requests are the same. A stop may be repeated with another drain: its sender sees
/// meanwhile whether clients still come.
fn is_repeated(last: &Request, request: &Request) -> bool {
    match (last, request) {
        (Request::Stop(last), Request::Stop(request)) => {
            *last == StopRequest { drain: last.drain, ..request.clone() }
        }
        (last, request) => last == request,
    }
}
