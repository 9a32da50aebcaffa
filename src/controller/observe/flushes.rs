//! The flushes before stops: each is done once in a restart.

use std::collections::BTreeSet;

use stayput_restart::Ledger;

/// The nodes for whose stops the indices were flushed in the restart under way.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    restart: Option<String>,
    nodes: BTreeSet<String>,
}

impl Flushes {
    /// Forgets the flushes of another restart.
    pub(crate) fn keep_for(&mut self, ledger: &Ledger) {
        let id = ledger.restart.as_ref().map(|restart| restart.request.id.as_str());
        if self.restart.as_deref() != id {
            self.restart = id.map(str::to_owned);
            self.nodes.clear();
        }
    }

    /// Records that the indices were flushed for these nodes.
    pub(crate) fn note(&mut self, nodes: Vec<String>) {
        self.nodes.extend(nodes);
    }

    /// Names of the nodes.
    pub(crate) fn nodes(&self) -> &BTreeSet<String> {
        &self.nodes
    }
}
