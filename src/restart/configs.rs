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
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct KnownConfigs(Vec<KnownConfig>);

/// Configs in which these settings are the same.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Settings {
        Settings::from([("cluster.name".to_owned(), name.to_owned())])
    }

    #[test]
    fn configs_with_the_same_settings_take_one_place_and_others_have_their_own() {
        let mut known = KnownConfigs::default();
        let checksum = |digit: &str| format!("sha256:{}", digit.repeat(64));
        for digit in ["a", "b", "a"] {
            known.add(&checksum(digit), &named("logs"));
        }
        assert!(known.are_alike(&KnownConfigs::default()));
        known.add(&checksum("c"), &named("other"));
        assert!(!known.are_alike(&KnownConfigs::default()));
        assert_eq!((known.0.len(), known.count()), (2, 3));
        assert_eq!(known.of(&checksum("b")), Some(&named("logs")));
        assert_eq!(known.of(&checksum("c")), Some(&named("other")));
        assert_eq!(known.of(&checksum("d")), None);
        let renewed = known.renewed(&KnownConfigs::default(), |one| one.starts_with('c'));
        assert_eq!((renewed.of(&checksum("a")), renewed.count()), (None, 1));
        let text = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<KnownConfigs>(&text).unwrap(), known);
    }

    #[test]
    fn they_take_no_more_room_than_the_ledger_has() {
        let mut known = KnownConfigs::default();
        for number in 0..2 * MAX_CONFIGS {
            known.add(&format!("sha256:{number:016x}"), &named("logs"));
        }
        assert_eq!(known.count(), MAX_CONFIGS);
        assert!(serde_json::to_string(&known).unwrap().len() < 32 * MAX_CONFIGS);
    }
}
