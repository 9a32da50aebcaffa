//! The SearchCluster object: every write makes a new version, a write on a stale version is refused.

use crate::{Cluster, Ledger};

#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// `metadata.resourceVersion`.
    pub(crate) version: u64,
    pub(crate) cluster: Cluster,
    pub(crate) ledger: Ledger,
}

impl Object {
    pub(crate) fn new(name: &str) -> Self {
        let cluster = Cluster { name: name.into(), has_status: true, ..Cluster::default() };
        Self { version: 1, cluster, ledger: Ledger::default() }
    }

    /// Whether the write was accepted.
    pub(crate) fn write_ledger(&mut self, read: u64, ledger: &Ledger) -> bool {
        if read != self.version {
            return false;
        }
        self.version += 1;
        self.ledger = ledger.clone();
        self.cluster.has_status = true;
        true
    }

    /// Another client writes another part of it.
    pub(crate) fn touch(&mut self) -> &mut Cluster {
        self.version += 1;
        &mut self.cluster
    }
}
