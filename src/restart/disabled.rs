//! Predicates that a person has disabled.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::snapshot::namespace_and_name;
use super::{Code, Predicate, Restart, annotation};

/// The most unknown names in a message.
const NAMED: usize = 3;
/// The most characters of an unknown name in a message.
const LONGEST: usize = 100;

/// The disabled predicates, and where each is named. Serialized as a list of names without the place.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Disabled {
    by_place: BTreeMap<DisabledBy, DisabledNames>,
}

/// Where predicates can be disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum DisabledBy {
    Field,
    Annotation,
    Request,
}

/// The names at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct DisabledNames {
    predicates: BTreeSet<Predicate>,
    /// Names that no predicate has.
    unknown: BTreeSet<String>,
}

impl Disabled {
    /// From `spec.restart.disabledPredicates`; `*` means all.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::default().with(DisabledBy::Field, names)
    }

    /// Adds the names in the annotation [`annotation::DISABLE`]: separated by commas, or `*`.
    #[must_use]
    pub fn with_annotation(self, names: &str) -> Self {
        self.with(DisabledBy::Annotation, names.split(','))
    }

    /// Adds the predicates that the request of the restart under way skips, as long as it is under way.
    #[must_use]
    pub fn with_restart(self, restart: Option<&Restart>) -> Self {
        let skipped = restart.into_iter().flat_map(|restart| &restart.request.skip_rules);
        self.with(DisabledBy::Request, skipped.map(String::as_str))
    }

    fn with<'a>(mut self, place: DisabledBy, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut found = DisabledNames::default();
        for name in names.into_iter().map(str::trim).filter(|name| !name.is_empty()) {
            let predicate = Predicate::named(name);
            match (name, predicate) {
                ("*", _) => found.predicates.extend(Predicate::ALL),
                (_, Some(predicate)) => _ = found.predicates.insert(predicate),
                (_, None) => _ = found.unknown.insert(name.chars().take(LONGEST).collect()),
            }
        }
        if found != DisabledNames::default() {
            self.by_place.insert(place, found);
        }
        self
    }

    pub fn contains(&self, predicate: Predicate) -> bool {
        self.by_place.values().any(|names| names.predicates.contains(&predicate))
    }

    /// The disabled predicates, in their published order.
    pub fn iter(&self) -> impl Iterator<Item = Predicate> + '_ {
        Predicate::ALL.into_iter().filter(|predicate| self.contains(*predicate))
    }

    /// The commands that enable all predicates again, for a SearchCluster `<namespace>/<name>`.
    pub fn undo(&self, cluster: &str) -> Vec<String> {
        let (namespace, name) = namespace_and_name(cluster);
        let disables = self.by_place.iter().filter(|(_, names)| !names.predicates.is_empty());
        let undo = disables.map(|(place, _)| match place {
            DisabledBy::Field => format!(
                "kubectl patch searchcluster {name} --namespace {namespace} --type=merge --patch \
                 '{{\"spec\":{{\"restart\":{{\"disabledPredicates\":[]}}}}}}'"
            ),
            DisabledBy::Annotation => format!(
                "kubectl annotate searchcluster {name} --namespace {namespace} {}-",
                annotation::DISABLE
            ),
            DisabledBy::Request => format!("kubectl stayput --namespace {namespace} cancel {name}"),
        });
        undo.collect()
    }

    /// The unknown names, for people, if there are any.
    pub fn unknown(&self) -> Option<String> {
        let all: Vec<(DisabledBy, &str)> = self
            .by_place
            .iter()
            .flat_map(|(place, names)| names.unknown.iter().map(|name| (*place, name.as_str())))
            .collect();
        let mut messages: Vec<String> =
            all.iter().take(NAMED).map(|(place, name)| place.unknown_name(name)).collect();
        if all.len() > NAMED {
            messages.push(format!("and so are {} more", all.len() - NAMED));
        }
        Some(messages.join("; ")).filter(|text| !text.is_empty())
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
        let unknown = disabled.by_place.values().flat_map(|names| names.unknown.iter().cloned());
        names.chain(unknown).collect()
    }
}

impl DisabledBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Field => "spec.restart.disabledPredicates",
            Self::Annotation => annotation::DISABLE,
            Self::Request => "the request's skipRules",
        }
    }

    /// The message about an unknown name.
    fn unknown_name(self, name: &str) -> String {
        let place = self.as_str();
        if protects_data(name) {
            return format!("{name:?} in {place} cannot be disabled: {ONLY_BY_OUTAGE}");
        }
        format!(
            "{name:?} in {place} is not a predicate and disables nothing: the nearest name is {}",
            nearest(name)
        )
    }
}

const ONLY_BY_OUTAGE: &str = "only allowOutage (in one request, --allow-outage; or in spec.restart) \
                              allows a stop that costs the quorum or the only copy of a shard";

/// True for the name of a rule that is always evaluated.
fn protects_data(name: &str) -> bool {
    [Code::Quorum, Code::UnreplicatedIndex].iter().any(|code| code.as_str() == name)
}

/// Why a request cannot skip a rule of this name, and what to write, unless it can.
pub(super) fn why_not_skipped(name: &str) -> Option<String> {
    if Predicate::named(name).is_some() {
        return None;
    }
    if name == Code::UnreplicatedIndex.as_str() {
        return Some(
            "cannot be skipped: it protects the only copy of a shard; allowUnreplicated \
             (--allow-unreplicated) names the indices that may be unavailable"
                .to_owned(),
        );
    }
    if protects_data(name) {
        return Some(format!("cannot be skipped: {ONLY_BY_OUTAGE}"));
    }
    let names = Predicate::ALL.map(Predicate::name).join(", ");
    Some(format!("is not a rule: the nearest name is {}; the names are {names}", nearest(name)))
}

/// The predicate whose name is most like this one.
fn nearest(name: &str) -> &'static str {
    let names = Predicate::ALL.into_iter().map(Predicate::name);
    names.min_by_key(|known| edits(&name.to_lowercase(), &known.to_lowercase())).unwrap_or_default()
}

/// The number of characters to insert, remove or replace to turn one text into the other.
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
