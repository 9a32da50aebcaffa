//! Counts the requests, by verb, resource and answer.

use std::collections::BTreeMap;

/// One kind of request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// `pods`, `searchclusters/status`, or the path if it is not about objects.
    pub resource: String,
    /// The HTTP status; 0 where none was sent.
    pub code: u16,
}

/// The requests so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Asked, u64>);

impl Counts {
    pub(super) fn add(&mut self, verb: &str, resource: &str, code: u16) {
        let asked = Asked { verb: verb.to_owned(), resource: resource.to_owned(), code };
        *self.0.entry(asked).or_default() += 1;
    }

    /// The number of requests for which `wanted` is true.
    pub fn matching(&self, wanted: impl Fn(&Asked) -> bool) -> u64 {
        self.0.iter().filter(|(asked, _)| wanted(asked)).map(|(_, count)| count).sum()
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.matching(|_| true)
    }

    /// Requests for a change, whether or not it was made.
    pub fn writes(&self) -> u64 {
        self.matching(|asked| !["get", "list", "watch"].contains(&asked.verb.as_str()))
    }

    /// Writes refused with 409.
    pub fn conflicts(&self) -> u64 {
        self.matching(|asked| asked.code == 409)
    }

    /// The requests since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |asked: &Asked| earlier.0.get(asked).copied().unwrap_or(0);
        let added = self.0.iter().map(|(asked, count)| (asked.clone(), count - before(asked)));
        Self(added.filter(|(_, count)| *count > 0).collect())
    }

    /// Each kind of request with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&Asked, u64)> {
        self.0.iter().map(|(asked, count)| (asked, *count))
    }
}
