//! Predicates that are not evaluated, because somebody who knows the cluster said so.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Code, Predicate, annotation};

/// How many names that are no predicate's are spoken of.
const NAMED: usize = 3;
/// How much of such a name, in characters: it may be anything.
const LONGEST: usize = 100;

/// What is disabled, and where that was said. Written down it is a list of names, without the place.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Disabled {
    said: BTreeMap<Place, Words>,
}

/// Where names can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Field,
    Annotation,
}

/// What stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Words {
    predicates: BTreeSet<Predicate>,
    /// What is no predicate.
    unknown: BTreeSet<String>,
}

impl Disabled {
    /// What is disabled by these names of `spec.restart.disabledPredicates`; `*` stands for all.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::default().with(Place::Field, names)
    }

    /// The same, and what the annotation [`annotation::DISABLE`] disables: names separated by
    /// commas, or `*`.
    #[must_use]
    pub fn and_by_annotation(self, names: &str) -> Self {
        self.with(Place::Annotation, names.split(','))
    }

    fn with<'a>(mut self, place: Place, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut words = Words::default();
        for name in names.into_iter().map(str::trim).filter(|name| !name.is_empty()) {
            let found = Predicate::ALL.into_iter().find(|predicate| predicate.name() == name);
            match (name, found) {
                ("*", _) => words.predicates.extend(Predicate::ALL),
                (_, Some(predicate)) => _ = words.predicates.insert(predicate),
                (_, None) => _ = words.unknown.insert(name.chars().take(LONGEST).collect()),
            }
        }
        if words != Words::default() {
            self.said.insert(place, words);
        }
        self
    }

    /// Whether this one is not evaluated.
    pub fn contains(&self, predicate: Predicate) -> bool {
        self.said.values().any(|words| words.predicates.contains(&predicate))
    }

    /// Those that are not evaluated, in the order in which they would be asked.
    pub fn iter(&self) -> impl Iterator<Item = Predicate> + '_ {
        Predicate::ALL.into_iter().filter(|predicate| self.contains(*predicate))
    }

    /// What to type so that everything is evaluated again, for a SearchCluster
    /// `<namespace>/<name>`.
    pub fn undo(&self, cluster: &str) -> Vec<String> {
        let (namespace, name) = cluster.split_once('/').unwrap_or(("default", cluster));
        let disables = self.said.iter().filter(|(_, words)| !words.predicates.is_empty());
        let undo = disables.map(|(place, _)| match place {
            Place::Field => format!(
                "kubectl patch searchcluster {name} --namespace {namespace} --type=merge --patch \
                 '{{\"spec\":{{\"restart\":{{\"disabledPredicates\":[]}}}}}}'"
            ),
            Place::Annotation => format!(
                "kubectl annotate searchcluster {name} --namespace {namespace} {}-",
                annotation::DISABLE
            ),
        });
        undo.collect()
    }

    /// What is wrong with the names, in a sentence; none if each of them is known.
    pub fn unknown(&self) -> Option<String> {
        let all: Vec<(Place, &str)> = self
            .said
            .iter()
            .flat_map(|(place, words)| words.unknown.iter().map(|word| (*place, word.as_str())))
            .collect();
        let mut sentences: Vec<String> =
            all.iter().take(NAMED).map(|(place, word)| place.doubt(word)).collect();
        if all.len() > NAMED {
            sentences.push(format!("and so are {} more", all.len() - NAMED));
        }
        Some(sentences.join("; ")).filter(|text| !text.is_empty())
    }
}

impl From<Vec<String>> for Disabled {
    fn from(names: Vec<String>) -> Self {
        Self::of(names.iter().map(String::as_str))
    }
}

impl From<Disabled> for Vec<String> {
    fn from(disabled: Disabled) -> Self {
        let names = disabled.iter().map(|predicate| predicate.name().to_owned());
        let unknown = disabled.said.values().flat_map(|words| words.unknown.iter().cloned());
        names.chain(unknown).collect()
    }
}

impl Place {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Field => "spec.restart.disabledPredicates",
            Self::Annotation => annotation::DISABLE,
        }
    }

    /// What is said of a name that is no predicate's.
    fn doubt(self, word: &str) -> String {
        let place = self.as_str();
        if [Code::Quorum, Code::UnreplicatedIndex].iter().any(|code| code.as_str() == word) {
            return format!(
                "{word:?} in {place} cannot be disabled: spec.restart.allowOutage: true is what lets \
                 a stop cost the majority or the only copy of a shard"
            );
        }
        let nearest = Predicate::ALL
            .into_iter()
            .map(Predicate::name)
            .min_by_key(|name| edits(&word.to_lowercase(), &name.to_lowercase()));
        format!(
            "{word:?} in {place} is no predicate and disables nothing: the nearest is {}",
            nearest.unwrap_or_default()
        )
    }
}

/// How many characters must be put in, taken out or replaced to make one text of the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
