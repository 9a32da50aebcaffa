//! Loopback addresses for the nodes of a test.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many sets a network of 256 addresses has.
const SETS: u32 = 62;

/// Four addresses that no other process, and no other test of this one, uses: all of 127.0.0.0/8 is
/// loopback.
pub fn loopback_addresses() -> [String; 4] {
    static SETS_GIVEN: AtomicU32 = AtomicU32::new(0);
    let (process, set) = (process::id(), SETS_GIVEN.fetch_add(1, Ordering::Relaxed));
    // When the sets of a network are used up, the next one is far from those of processes that were started at
    // the same time.
    let (a, b) = (1 + (process / 250 + 83 * (set / SETS)) % 250, 1 + process % 250);
    [1, 2, 3, 4].map(|node| format!("127.{a}.{b}.{}", set % SETS * 4 + node))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_address_is_given_twice() {
        let given: Vec<String> = (0..3 * SETS).flat_map(|_| loopback_addresses()).collect();
        assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
        assert!(given.iter().all(|address| address.parse::<std::net::Ipv4Addr>().is_ok()));
    }
}
