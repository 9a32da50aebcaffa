//! Decisive settings of the engine's known configs: those whose change may need all nodes at once
//! ([`stayput_pod_update::decisive`]). A checksum names one content, so a fact once seen stays true.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stayput_pod_update::Settings;

/// Maximum number of remembered configs; further ones are not known.
const MAX_CONFIGS: usize = 1000;
/// Length of a remembered checksum, in characters.
const KEPT: usize = 16;

/// Settings by checksum.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct KnownConfigs(Vec<KnownConfig>);

/// Configs in which these settings are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KnownConfig {
    /// The settings, by their full names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
    /// How the checksums of these configs begin.
    checksums: BTreeSet<String>,
}

impl KnownConfigs {
    /// True if no config is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers the settings of a config, unless too many are remembered.
    pub fn add(&mut self, checksum: &str, settings: &Settings) {
        let checksum = beginning(checksum);
        if self.find(checksum).is_some() || self.is_full() {
            return;
        }
        match self.0.iter_mut().find(|known| known.settings == *settings) {
            Some(known) => {
                known.checksums.insert(checksum.to_owned());
            }
            None => {
                let checksums = BTreeSet::from([checksum.to_owned()]);
                self.0.push(KnownConfig { settings: settings.clone(), checksums });
                self.0.sort();
            }
        }
    }

    /// True if no more configs are remembered.
    pub fn is_full(&self) -> bool {
        self.count() >= MAX_CONFIGS
    }

    /// The settings of a config, if they are known.
    pub fn of(&self, checksum: &str) -> Option<&Settings> {
        self.find(beginning(checksum)).map(|known| &known.settings)
    }

    /// True if all configs that `other` knows are known.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let mut checksums = other.0.iter().flat_map(|known| &known.checksums);
        checksums.all(|checksum| self.find(checksum).is_some())
    }

    /// True if all known configs have the same settings.
    pub(crate) fn are_alike(&self, other: &Self) -> bool {
        let mut settings = self.0.iter().chain(&other.0).map(|known| &known.settings);
        let first = settings.next();
        settings.all(|one| Some(one) == first)
    }

    /// The known configs with those of `newer`, but without the old ones that are not `used`.
    pub(crate) fn renewed(&self, newer: &Self, used: impl Fn(&str) -> bool) -> Self {
        let mut all = newer.clone();
        for known in &self.0 {
            for checksum in known.checksums.iter().filter(|checksum| used(checksum)) {
                all.add(checksum, &known.settings);
            }
        }
        all
    }

    fn find(&self, beginning: &str) -> Option<&KnownConfig> {
        self.0.iter().find(|known| known.checksums.contains(beginning))
    }

    fn count(&self) -> usize {
        self.0.iter().map(|known| known.checksums.len()).sum()
    }
}

/// The beginning of a checksum that is remembered.
pub(crate) fn beginning(checksum: &str) -> &str {
    let digits = checksum.strip_prefix("sha256:").unwrap_or(checksum);
    digits.char_indices().nth(KEPT).map_or(digits, |(end, _)| &digits[..end])
}

/// How the checksum of a config begins that engines run on, and those of the configs that it counts
/// as.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

#[cfg(test)]
mod tests;
