//! Configs that count as equal, since they differ only in ignored keys (`stayput.dev/ignore`).
//!
//! A checksum covers every file. So for a node that is not restarted for a change, the ledger remembers
//! the configs that its own one counts as: also once the annotation is gone, or the reconciler
//! is another.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::configs::beginning;

/// Maximum number of remembered configs: the ledger must fit into an object.
const MAX_CONFIGS: usize = 1000;

/// How the checksum of a config begins that engines run on, and those of the configs that it counts
/// as.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct IgnoredChanges(BTreeMap<String, BTreeSet<String>>);

impl IgnoredChanges {
    /// True if no config is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if an engine that runs on one config needs no restart for another one. `alike` are the
    /// checksums of configs that were seen to differ from the wanted one only in ignored keys.
    pub fn covers(&self, runs_on: &str, wanted: &str, alike: &BTreeSet<String>) -> bool {
        let counts_as = self.0.get(beginning(runs_on));
        let mut wanted = alike.iter().map(String::as_str).chain([wanted]);
        alike.contains(runs_on)
            || counts_as.is_some_and(|known| wanted.any(|one| known.contains(beginning(one))))
    }

    /// The beginning of the checksum of each config that engines run on, and those of the configs that
    /// it counts as.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.0.iter().map(|(runs_on, counts_as)| (runs_on.as_str(), counts_as))
    }

    /// Remembers that a config counts as another, unless too many are remembered.
    pub(crate) fn add(&mut self, runs_on: &str, wanted: &str) {
        let runs_on = beginning(runs_on);
        if self.0.len() < MAX_CONFIGS || self.0.contains_key(runs_on) {
            let known = self.0.entry(runs_on.to_owned()).or_default();
            known.insert(beginning(wanted).to_owned());
        }
    }

    /// Forgets pairs that are not in use: a config that an engine may run on, and one that is wanted.
    pub(crate) fn retain(&mut self, in_use: impl Fn(&str, &str) -> bool) {
        self.0.retain(|runs_on, known| {
            known.retain(|wanted| in_use(runs_on, wanted));
            !known.is_empty()
        });
    }
}
