//! Asks the user to confirm the outage of a coordinated restart.

use std::io::{self, BufRead, IsTerminal, Write};

use super::error::ActionError;
use crate::kubectl::cluster_view::ClusterView;
use crate::kubectl::format::node_count;
use stayput_restart::Request;

/// An error unless the user types `yes`.
pub(super) fn confirm_outage(view: &ClusterView, request: &Request) -> Result<(), ActionError> {
    let count = match request.target.nodes.len() {
        0 => view.restart_order().len(),
        count => count,
    };
    let question = format!(
        "A coordinated restart is an outage: {} of {} are stopped together before any is started.",
        node_count(count),
        view.name
    );
    if !io::stdin().is_terminal() {
        return Err(ActionError::NotInteractive { question });
    }
    // stdout may be read by a program.
    let mut stderr = io::stderr();
    write!(stderr, "{question}\nType yes to confirm: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(ActionError::NotConfirmed) }
}
