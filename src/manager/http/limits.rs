//! Limits on connections and requests, so that no client can use all resources of the manager.

use std::time::Duration;

/// Limits on connections and requests. Those that are numbers are for each listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from the first byte of a connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// Time from the end of one request to the last header of the next: cuts slow and idle clients.
    pub header: Duration,
    /// Time from the last header to the end of the body.
    pub body: Duration,
    /// The longest `wait`, and the longest time in which a long poll is answered.
    pub max_wait: Duration,
    /// After this time a connection is closed when its request is answered, so that no client can
    /// call for long with a certificate that has expired.
    pub max_age: Duration,
    /// How long the manager, when it ends, waits for requests to be answered.
    pub drain: Duration,
    /// Number of connections. A further one takes the place of one that has shown no credentials.
    pub connections: usize,
    /// Number of requests that may wait for a change at the same time: fewer than the connections,
    /// so that waiting requests never block other requests.
    pub waiting: usize,
}

impl Limits {
    pub(super) const DEFAULT: Self = Self {
        handshake: Duration::from_secs(10),
        header: Duration::from_secs(15),
        body: Duration::from_secs(10),
        max_wait: Duration::from_secs(5 * 60),
        max_age: Duration::from_secs(60 * 60),
        drain: Duration::from_secs(2),
        connections: 64,
        waiting: 40,
    };

    /// The limits, reduced so that the connections of both listeners use less than half of the
    /// descriptors that the process may have: journal, config and the engine's start need some.
    #[must_use]
    pub(super) fn within(self, descriptors: usize) -> Self {
        let connections = self.connections.min(descriptors / 8).max(4);
        Self { connections, waiting: self.waiting.min(connections * 5 / 8), ..self }
    }

    /// Number of connections that have shown no credentials, for one address.
    pub(super) fn per_address(&self) -> usize {
        self.connections.div_ceil(2)
    }

    /// Number of places that calls, and callers that idle, leave to others.
    pub(super) fn unproven(&self) -> usize {
        self.connections / 4
    }

    /// Number of descriptors of all connections, with those that were evicted and are not closed yet.
    pub(super) fn descriptors(&self) -> usize {
        self.connections + self.per_address()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        let usual = Limits::default().within(1024);
        assert_eq!(usual, Limits::default());
        for descriptors in [40, 64, 100, 256, 512] {
            let limits = Limits::default().within(descriptors);
            assert!(2 * limits.descriptors() * 2 <= descriptors, "{descriptors}: {limits:?}");
            assert!(limits.waiting + limits.unproven() < limits.connections, "{limits:?}");
        }
    }
}
