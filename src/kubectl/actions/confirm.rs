//! Asks the user to confirm an outage, a possible outage, and the detaching of a cluster.

use std::io;
use std::io::{BufRead, IsTerminal, Write};

use stayput_restart::{Request, Strategy};

use crate::actions::error::ActionError;
use crate::format::node_count;
use crate::view::ClusterView;

/// True if a restart needs to be confirmed.
pub(crate) fn may_be_outage(request: &Request) -> bool {
    request.allow_outage || request.strategy == Strategy::Coordinated
}

/// The question before a restart that may be an outage.
pub(crate) fn outage(view: &ClusterView, request: &Request) -> String {
    let count = match request.target.nodes.len() {
        0 => view.restart_order().len(),
        count => count,
    };
    let (nodes, name) = (node_count(count), &view.name);
    match request.strategy {
        Strategy::Coordinated => format!(
            "A coordinated restart is an outage: {nodes} of {name} are stopped together before any is \
             started."
        ),
        Strategy::Rolling | Strategy::Immediate => format!(
            "This restart of {nodes} of {name} may be an outage: a node is stopped even if no master \
             can be elected, or a shard has no copy, until it is back."
        ),
    }
}

/// An error unless the user types `yes`.
pub(crate) fn confirm(question: String) -> Result<(), ActionError> {
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
