//! The apiserver's public keys (RFC 7517), as managers have them.
//!
//! Several apiservers may publish different keys while one after the other is changed. So a key is
//! taken as soon as one of them publishes it, and dropped when none did for a while.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::decide::{Existing, Problem};
use crate::names::KEY_SET;

/// Seconds after which an unpublished key is dropped: managers accept no token that is valid for longer.
const DROPPED_AFTER: u64 = 3600;

/// Public keys, and the issuer that signs with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    /// `iss` of the tokens.
    pub issuer: String,
    keys: Vec<Value>,
}

/// Why a key set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// The text is not a key set.
    #[error("it is not a JSON Web Key Set")]
    NotKeySet,
    /// The key set has no keys: nobody could be let in by it.
    #[error("it has no keys")]
    Empty,
}

impl KeySet {
    /// Reads the text of a key set.
    ///
    /// # Errors
    /// If the text is not a key set, or has no keys.
    pub fn read(issuer: &str, text: &str) -> Result<Self, KeySetError> {
        let set: Value = serde_json::from_str(text).map_err(|_| KeySetError::NotKeySet)?;
        let keys = set["keys"].as_array().ok_or(KeySetError::NotKeySet)?.clone();
        if keys.is_empty() {
            return Err(KeySetError::Empty);
        }
        Ok(Self { issuer: issuer.to_owned(), keys })
    }

    /// The text of the key set.
    pub fn text(&self) -> String {
        json!({ "keys": self.keys }).to_string()
    }

    fn has(&self, key: &Value) -> bool {
        self.keys.contains(key)
    }

    fn has_all_of(&self, other: &Self) -> bool {
        other.keys.iter().all(|key| self.has(key))
    }
}

/// Facts about the key sets of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySetFacts {
    /// Namespace of the cluster.
    pub namespace: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Present time in seconds since the epoch.
    pub now: u64,
    /// Keys that the apiserver publishes, or the reason why they are not known.
    pub published: Result<KeySet, String>,
    /// Keys that managers have.
    pub held: Option<Existing<KeySet>>,
    /// Keys that managers have and the apiserver does not publish, and since when.
    pub unpublished: Unpublished,
}

/// Keys that the apiserver does not publish any more, and since when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpublished(BTreeMap<String, u64>);

/// Result of [`decide`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Key set that managers are to have, if they have another one.
    pub write: Option<KeySet>,
    /// Unpublished keys, for the next decision.
    pub unpublished: Unpublished,
    /// The problem to report.
    pub problem: Option<Problem>,
}

/// Decides on the key set that managers are to have.
pub fn decide(facts: &KeySetFacts) -> Decision {
    let nothing =
        |problem| Decision { write: None, unpublished: facts.unpublished.clone(), problem };
    let published = match &facts.published {
        Ok(published) => published,
        Err(why) => return nothing(Some(Problem::KeysUnknown { why: why.clone() })),
    };
    let held = facts.held.as_ref().and_then(|found| found.content.as_ref().ok());
    if facts.held.as_ref().is_some_and(|found| !found.is_ours) {
        let is_old = !held.is_some_and(|held| held.has_all_of(published));
        let problem = Problem::KeysOld {
            object: KEY_SET.into(),
            namespace: facts.namespace.clone(),
            cluster: facts.cluster.clone(),
        };
        return nothing(is_old.then_some(problem));
    }
    let Some(held) = held else {
        return Decision { write: Some(published.clone()), ..nothing(None) };
    };

    let mut wanted = published.clone();
    let mut unpublished = Unpublished::default();
    for key in held.keys.iter().filter(|key| !published.has(key)) {
        let name = key.to_string();
        let since = facts.unpublished.0.get(&name).copied().unwrap_or(facts.now);
        if facts.now.saturating_sub(since) < DROPPED_AFTER {
            wanted.keys.push(key.clone());
            unpublished.0.insert(name, since);
        }
    }
    let is_same =
        wanted.issuer == held.issuer && wanted.has_all_of(held) && held.has_all_of(&wanted);
    Decision { write: (!is_same).then_some(wanted), unpublished, problem: None }
}
