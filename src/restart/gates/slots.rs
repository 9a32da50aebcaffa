//! How many nodes may be down at once because of us.

use crate::restart::Code;
use crate::restart::gate::{Gate, refuse};

/// Passes if one more node may go down while `down` already are, because of us or at all: what
/// counts is the caller's choice.
pub(in crate::restart) fn slots(down: usize, max_unavailable: u32) -> Gate {
    // A budget beyond the address space is no limit.
    if down < usize::try_from(max_unavailable).unwrap_or(usize::MAX) {
        return Ok(());
    }
    let (nodes, until) = match down {
        1 => ("1 node is".to_owned(), "it is back"),
        _ => (format!("{down} nodes are"), "enough of them are back"),
    };
    refuse(
        Code::MaxUnavailable,
        format!(
            "{nodes} down or on the way down and spec.restart.maxUnavailable is \
             {max_unavailable}: waits until {until}"
        ),
    )
}
