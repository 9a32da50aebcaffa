//! The SearchCluster object: every write makes a new version, a write on a stale version is refused.

use crate::{Cluster, Ledger, Time, annotation};

/// Writes a phase whenever it is not there.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) phase: String,
    /// It applies a configuration, and the apiserver says so.
    pub(crate) is_declared: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// `metadata.resourceVersion`.
    pub(crate) version: u64,
    pub(crate) cluster: Cluster,
    pub(crate) ledger: Ledger,
    pub(crate) tool: Option<Tool>,
}

impl Object {
    pub(crate) fn new(name: &str) -> Self {
        let cluster = Cluster { name: name.into(), has_status: true, ..Cluster::default() };
        Self { version: 1, cluster, ledger: Ledger::default(), tool: None }
    }

    /// The cluster as it is seen then.
    pub(crate) fn cluster_at(&self, now: Time) -> Cluster {
        let closed_until = self.cluster.closed_until.filter(|opens| now < *opens);
        Cluster { closed_until, ..self.cluster.clone() }
    }

    /// Whether it was deleted, and nothing keeps it any more.
    pub(crate) const fn is_gone(&self) -> bool {
        self.cluster.deleting && !self.cluster.finalizer
    }

    /// Adds our finalizer; whether that was accepted. An object that is being deleted takes none.
    pub(crate) fn add_finalizer(&mut self) -> bool {
        if self.cluster.deleting {
            return false;
        }
        self.touch().finalizer = true;
        true
    }

    /// Whether the write was accepted.
    pub(crate) fn write_ledger(&mut self, read: u64, ledger: &Ledger) -> bool {
        if read != self.version || self.is_gone() {
            return false;
        }
        self.version += 1;
        self.ledger = ledger.clone();
        self.cluster.has_status = true;
        true
    }

    /// The tool writes its phase, if it is not there.
    pub(crate) fn sync(&mut self) -> bool {
        let Some(Tool { phase, is_declared }) = self.tool.clone() else { return false };
        if self.cluster.annotations.get(annotation::PHASE) == Some(&phase) {
            return false;
        }
        let cluster = self.touch();
        cluster.annotations.insert(annotation::PHASE.into(), phase);
        cluster.phase_applied_by = is_declared.then(|| "a tool".to_owned());
        true
    }

    /// The phase is removed from what the tool applies, and so from here.
    pub(crate) fn end_tool(&mut self) {
        self.tool = None;
        let cluster = self.touch();
        cluster.annotations.remove(annotation::PHASE);
        cluster.phase_applied_by = None;
    }

    /// Another client writes another part of it.
    pub(crate) fn touch(&mut self) -> &mut Cluster {
        self.version += 1;
        &mut self.cluster
    }
}
