//! Tables in which steps look things up: hashed without random keys, and never iterated. With
//! thousands of pods a lookup in an ordered tree of strings costs more than the rule it is for.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

/// By a name or uid.
pub(super) type Lookup<'a, T> = HashMap<&'a str, T, BuildHasherDefault<DefaultHasher>>;

/// Names or uids.
pub(super) type Names<'a> = HashSet<&'a str, BuildHasherDefault<DefaultHasher>>;
