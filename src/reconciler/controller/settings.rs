//! What the controller has to be told.

use std::net::SocketAddr;

/// What the controller has to be told, beside how to reach the apiserver.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The namespaces to look after; none given means all.
    pub namespaces: Vec<String>,
    /// Where to serve `/livez`, `/readyz` and `/metrics`; nowhere without it.
    pub listen: Option<SocketAddr>,
    /// Where to serve `/snapshots`, on the loopback; nowhere without it.
    pub snapshots: Option<SocketAddr>,
    /// Name of this process among its replicas, in events and in the Lease.
    pub name: String,
    /// The Lease by which replicas agree on who works; without it, this one works.
    pub election: Option<Election>,
    /// Whose tokens are shown to managers; without it, `serviceAccountToken` cannot be used.
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
