//! Limits on connections and requests, so that no client can use all resources of the manager.

use std::time::Duration;

/// Limits on connections and requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the first byte of a connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the end of one request to the last header of the next: cuts slow and idle clients.
    pub header: Duration,
    /// Both timeouts above, on a reserved connection.
    pub reserved: Duration,
    /// From the last header to the end of the body.
    pub body: Duration,
    /// The longest `wait`, and the longest time in which a long poll is answered.
    pub max_wait: Duration,
    /// After this time a connection is closed when its request is answered, so that no client can
    /// call for long with a certificate that has expired.
    pub max_age: Duration,
    /// How long the manager, when it ends, waits for requests to be answered.
    pub drain: Duration,
    /// Connections of the TCP listener.
    pub connections: usize,
    /// Further connections, one request each, so that probes are answered when clients use all
    /// others.
    pub reserved_connections: usize,
    /// Requests of the TCP listener that may wait for a change at the same time: fewer than its
    /// connections, so that waiting requests never block other requests.
    pub waiting: usize,
    /// Connections of the unix socket.
    pub local_connections: usize,
    /// Further connections of the unix socket, one request each.
    pub local_reserved_connections: usize,
    /// Requests of the unix socket that may wait for a change at the same time.
    pub local_waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(15),
            reserved: Duration::from_secs(2),
            body: Duration::from_secs(10),
            max_wait: Duration::from_secs(5 * 60),
            max_age: Duration::from_secs(60 * 60),
            drain: Duration::from_secs(2),
            connections: 56,
            reserved_connections: 8,
            waiting: 40,
            local_connections: 56,
            local_reserved_connections: 4,
            local_waiting: 40,
        }
    }
}
