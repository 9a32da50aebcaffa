//! Hash tables for look-ups by name: hashed without random keys, and never iterated where the order
//! could be seen. With thousands of pods a look-up in an ordered tree of strings costs more than the
//! rule that needs it; so does the hash of the standard library.

use std::collections::{HashMap, HashSet};

pub(super) use foldhash::fast::FixedState as Hashed;

/// Values by a name or uid.
pub(super) type Lookup<'a, T> = HashMap<&'a str, T, Hashed>;

/// A table with room for `most` entries: a table that grows hashes all of its entries again.
pub(super) fn with_room<'a, T>(most: usize) -> Lookup<'a, T> {
    Lookup::with_capacity_and_hasher(most, Hashed::default())
}

/// Collects at most `most` entries, where the iterator does not know how many come.
pub(super) fn lookup<'a, T>(
    most: usize,
    entries: impl Iterator<Item = (&'a str, T)>,
) -> Lookup<'a, T> {
    let mut lookup = with_room(most);
    lookup.extend(entries);
    lookup
}

/// A set of borrowed names or uids.
pub(super) type NameSet<'a> = HashSet<&'a str, Hashed>;

/// A set of owned names or uids.
pub(super) type OwnedNameSet = HashSet<String, Hashed>;
