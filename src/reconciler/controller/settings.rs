//! The settings of the controller.

use std::net::SocketAddr;

/// The settings of the controller, without how to reach the apiserver.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The namespaces to watch; empty: all.
    pub namespaces: Vec<String>,
    /// Where to serve `/livez`, `/readyz` and `/metrics`; none: nowhere.
    pub listen: Option<SocketAddr>,
    /// Where to serve `/snapshots`, on the loopback; none: nowhere.
    pub snapshots: Option<SocketAddr>,
    /// Name of this process among its replicas, in events and in the Lease.
    pub name: String,
    /// The Lease for leader election; none: this replica is the leader.
    pub election: Option<Election>,
    /// The service account of the tokens for managers; without it, `serviceAccountToken` cannot be
    /// used.
    pub account: Option<Account>,
}

/// A Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}
