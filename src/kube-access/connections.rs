//! The connections of a small HTTP server. A new connection always gets a place: if all are taken, an old one
//! is closed, so nobody can keep the kubelet's probes out by holding connections.

use std::net::IpAddr;

use tokio::task::{AbortHandle, JoinSet};

/// The open connections, the oldest first.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    open: Vec<(IpAddr, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl Connections {
    /// A server with at most `most` connections at the same time.
    pub fn new(most: usize) -> Self {
        Self { most, open: Vec::new(), tasks: JoinSet::new() }
    }

    /// Serves a connection from `peer`. Dropping this value closes all connections.
    pub fn serve(&mut self, peer: IpAddr, connection: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|(_, task)| !task.is_finished());
        if self.open.len() >= self.most {
            let peers: Vec<IpAddr> = self.open.iter().map(|(peer, _)| *peer).collect();
            self.open.remove(closed_for_a_newcomer(&peers)).1.abort();
        }
        self.open.push((peer, self.tasks.spawn(connection)));
    }
}

/// Index of the connection to close for a new one: the oldest of the address that has most of them, so that a
/// client with many closes its own. `peers` has at least one, the oldest first.
fn closed_for_a_newcomer(peers: &[IpAddr]) -> usize {
    let count = |index: usize| peers.iter().filter(|peer| **peer == peers[index]).count();
    // For equal counts, the last one of the reversed order: the oldest.
    (0..peers.len()).rev().max_by_key(|&index| count(index)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;

    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test] // proves ACCESS-16
    fn who_has_most_loses_its_oldest() {
        let peers = [1, 2, 3, 2, 3, 2].map(address);
        assert_eq!(closed_for_a_newcomer(&peers), 1);
        assert_eq!(closed_for_a_newcomer(&[1, 2, 3].map(address)), 0);
        assert_eq!(closed_for_a_newcomer(&[1, 2, 3, 3, 2].map(address)), 1);
    }

    #[tokio::test] // proves ACCESS-16
    async fn a_newcomer_is_served_while_all_places_are_taken() {
        /// Tells when it is closed.
        struct Held(u8, mpsc::Sender<u8>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.1.send(self.0);
            }
        }
        let (closed, all_closed) = mpsc::channel();
        let mut connections = Connections::new(2);
        for number in 0..2 {
            let held = Held(number, closed.clone());
            connections.serve(address(1), async move {
                let _held = held;
                pending().await
            });
        }
        let (served, is_served) = tokio::sync::oneshot::channel();
        connections.serve(address(2), async move {
            let _ = served.send(());
        });
        is_served.await.unwrap();
        assert_eq!(all_closed.try_iter().collect::<Vec<_>>(), [0]);
    }
}
