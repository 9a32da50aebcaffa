//! Hash tables for look-ups by name: hashed without random keys, and never iterated. With thousands
//! of pods a look-up in an ordered tree of strings costs more than the rule that needs it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

/// By a name or uid.
pub(super) type Lookup<'a, T> = HashMap<&'a str, T, BuildHasherDefault<DefaultHasher>>;

/// Names or uids.
pub(super) type Names<'a> = HashSet<&'a str, BuildHasherDefault<DefaultHasher>>;
