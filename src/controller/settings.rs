//! The settings of the controller.

use std::net::SocketAddr;

/// The settings of the controller, without the access to the apiserver.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The namespaces to watch; empty for all.
    pub namespaces: Vec<String>,
    /// Address that serves `/livez`, `/readyz` and `/metrics`, if anything does.
    pub listen: Option<SocketAddr>,
    /// Loopback address that serves `/snapshots`, if anything does.
    pub snapshots: Option<SocketAddr>,
    /// Name of this process among its replicas, in events and in the Lease.
    pub name: String,
    /// The Lease for leader election; without it this replica is the leader.
    pub election: Option<Election>,
    /// The service account of the tokens for managers; without it, `serviceAccountToken` cannot be
    /// used.
    pub account: Option<Account>,
}

/// The Lease for leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Namespace of the service account.
    pub namespace: String,
    /// Name of the service account.
    pub name: String,
}
