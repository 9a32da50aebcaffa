//! The policy: what the owner of the SearchCluster allows.

#![warn(missing_docs)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::snapshot::namespace_and_name;
use crate::{Cluster, Code, OperatorKind, OperatorObject, Predicate, Request, Restart, annotation};
use stayput_pod_update::UpdateStep;

/// `spec.restart` of a SearchCluster, validated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// How many nodes may be down at once.
    pub max_unavailable: Share,
    /// How many nodes of a role may be down at once; a limit besides `max_unavailable`.
    pub max_unavailable_of_role: BTreeMap<String, Share>,
    /// Predicates that are not evaluated.
    #[schemars(with = "Vec<String>")]
    pub disabled: Disabled,
    /// Name of the node attribute that holds the zone.
    pub zone_attribute: String,
    /// A stop may cost the quorum, or the last copy of a shard.
    pub allow_outage: bool,
    /// How long one phase of one node may take, in milliseconds.
    pub phase_timeout: u64,
    /// How long a node is unready before its stop signal.
    pub drain: Drain,
    /// The reaction, without a request, to a node that runs on another config than its sources have.
    pub on_config_change: OnConfigChange,
    /// A node that does not start on the new config is started on the last good one.
    pub rollback: bool,
    /// The steps that are carried out when the template of an owner has changed; empty for none.
    pub update: BTreeSet<UpdateStep>,
}

/// `spec.restart.drain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drain {
    /// Until Services send it no requests any more, but not longer than [`Drain::LONGEST`].
    Auto,
    /// So long, in milliseconds.
    Fixed(u64),
}

impl Drain {
    /// The longest drain of [`Drain::Auto`], in milliseconds. The manager ends it also if nobody
    /// tells it to.
    pub const LONGEST: u64 = 10_000;

    /// The longest possible drain, in milliseconds.
    pub const fn longest(self) -> u64 {
        match self {
            Self::Auto => Self::LONGEST,
            Self::Fixed(span) => span,
        }
    }
}

/// The reaction, without a request, to a changed config.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnConfigChange {
    /// Only show the nodes, and wait for a request.
    #[default]
    None,
    /// Restart the nodes concerned one by one.
    Rolling,
    /// Restart the nodes concerned together.
    Coordinated,
    /// One by one, or together where the change needs all nodes at once; that is an outage, and
    /// waits for allowOutage or for a request.
    Auto,
}

/// A number of nodes, or a percentage of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Share {
    /// At least 1.
    Nodes(u32),
    /// 1 to 100; rounded down, but at least one node.
    Percent(u8),
}

impl Share {
    /// # Errors
    /// The number is 0, negative or too large.
    pub fn nodes(nodes: i64) -> Result<Self, InvalidShare> {
        match u32::try_from(nodes) {
            Ok(0) => Err(InvalidShare::Zero { written: "0".into(), least: "1" }),
            Ok(nodes) => Ok(Self::Nodes(nodes)),
            Err(_) => Err(InvalidShare::Nodes(nodes)),
        }
    }

    /// Reads `25%`.
    ///
    /// # Errors
    /// The text is not a percentage from 1% to 100%.
    pub fn percent(text: &str) -> Result<Self, InvalidShare> {
        let digits = text.strip_suffix('%').filter(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(0) => Err(InvalidShare::Zero { written: text.to_owned(), least: "1%" }),
            Some(percent @ 1..=100) => Ok(Self::Percent(percent)),
            Some(_) | None => Err(InvalidShare::Text(text.to_owned())),
        }
    }

    /// The number of nodes that this share of `total` is.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Nodes(nodes) => usize::try_from(nodes).unwrap_or(usize::MAX),
            Self::Percent(percent) => (total.saturating_mul(usize::from(percent)) / 100).max(1),
        }
    }
}

/// Why a value is not a [`Share`], and what to write.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidShare {
    /// 0 or 0%.
    #[error("is {written}, so that no node could ever be restarted: write {least} or more")]
    Zero {
        /// The value in the spec.
        written: String,
        /// The least valid value.
        least: &'static str,
    },
    /// A number out of range.
    #[error("is {0}, which is not a number of nodes: write 1 or more")]
    Nodes(i64),
    /// Any other text.
    #[error(
        "{0:?} is neither a number of nodes nor a percentage: write for example 2 (without \
         quotes), or \"25%\" (1% to 100%)"
    )]
    Text(String),
}

/// As people write it: `2` or `25%`.
impl std::fmt::Display for Share {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(formatter, "{nodes}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_unavailable: Share::Nodes(1),
            max_unavailable_of_role: BTreeMap::new(),
            disabled: Disabled::default(),
            zone_attribute: "zone".into(),
            allow_outage: false,
            phase_timeout: 15 * 60 * 1000,
            drain: Drain::Auto,
            on_config_change: OnConfigChange::None,
            rollback: true,
            update: BTreeSet::new(),
        }
    }
}

impl Policy {
    /// The policy with the predicates that the objects of operators disable, too.
    pub(super) fn of(&self, cluster: &Cluster) -> Cow<'_, Self> {
        let mut policy = Cow::Borrowed(self);
        for object in &cluster.operator_objects {
            if let Some(names) = object.annotation(annotation::DISABLE) {
                policy.to_mut().disabled.add_object(object, names);
            }
        }
        policy
    }

    /// True if a stop for this request may be an outage: by the policy, or by the request itself.
    pub(super) const fn allows_outage_for(&self, request: &Request) -> bool {
        self.allow_outage || request.allow_outage
    }
}

/// The most unknown names in a message.
const NAMED: usize = 3;
/// The most characters of an unknown name in a message.
const LONGEST: usize = 100;

/// The disabled predicates. Serialized as a list of names without the place where each is disabled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Disabled {
    /// Disabled by the annotation [`annotation::DISABLE`].
    annotated: BTreeSet<Predicate>,
    /// Disabled by the annotation on an object of an operator.
    on_objects: BTreeMap<(OperatorKind, String), BTreeSet<Predicate>>,
    /// Names in the annotation that no predicate has.
    unknown: BTreeSet<String>,
    /// Skipped by the request of the restart under way.
    skipped: BTreeSet<Predicate>,
}

impl Disabled {
    /// From the value of the annotation [`annotation::DISABLE`]: names separated by commas, or `*` for all.
    pub fn by_annotation(names: &str) -> Self {
        let mut disabled = Self::default();
        disabled.annotated = disabled.named(names);
        disabled
    }

    /// The predicates of these names, separated by commas; keeps the unknown names.
    fn named(&mut self, names: &str) -> BTreeSet<Predicate> {
        let mut predicates = BTreeSet::new();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match (name, Predicate::named(name)) {
                ("*", _) => predicates.extend(Predicate::ALL),
                (_, Some(predicate)) => _ = predicates.insert(predicate),
                (_, None) => _ = self.unknown.insert(name.chars().take(LONGEST).collect()),
            }
        }
        predicates
    }

    /// Adds the predicates that this object of an operator disables.
    fn add_object(&mut self, object: &OperatorObject, names: &str) {
        let predicates = self.named(names);
        self.on_objects.insert((object.kind, object.name.clone()), predicates);
    }

    /// Adds the predicates that the request of the restart under way skips, as long as it is under way.
    #[must_use]
    pub fn with_restart(mut self, restart: Option<&Restart>) -> Self {
        let names = restart.into_iter().flat_map(|restart| &restart.request.skip_rules);
        self.skipped.extend(names.filter_map(|name| Predicate::named(name)));
        self
    }

    /// True if the predicate is disabled.
    pub fn contains(&self, predicate: Predicate) -> bool {
        self.annotated.contains(&predicate)
            || self.skipped.contains(&predicate)
            || self.on_objects.values().any(|disabled| disabled.contains(&predicate))
    }

    /// The disabled predicates, in their published order.
    pub fn iter(&self) -> impl Iterator<Item = Predicate> + '_ {
        Predicate::ALL.into_iter().filter(|predicate| self.contains(*predicate))
    }

    /// The commands that enable all predicates again, for a SearchCluster `<namespace>/<name>`.
    pub fn undo(&self, cluster: &str) -> Vec<String> {
        let (namespace, name) = namespace_and_name(cluster);
        let on_cluster = Some(("searchcluster", name)).filter(|_| !self.annotated.is_empty());
        let on_objects = self.on_objects.iter().filter(|(_, disabled)| !disabled.is_empty());
        let on_objects = on_objects.map(|((kind, name), _)| (kind.resource(), name.as_str()));
        let annotated = on_cluster.into_iter().chain(on_objects);
        let mut commands: Vec<String> = annotated
            .map(|(resource, name)| {
                let key = annotation::DISABLE;
                format!("kubectl annotate {resource} {name} --namespace {namespace} {key}-")
            })
            .collect();
        if !self.skipped.is_empty() {
            commands.push(format!("kubectl stayput --namespace {namespace} cancel {name}"));
        }
        commands
    }

    /// The unknown names, for people, if there are any.
    pub fn unknown(&self) -> Option<String> {
        let named = self.unknown.iter().take(NAMED);
        let mut messages: Vec<String> = named.map(|name| unknown_name(name)).collect();
        if self.unknown.len() > NAMED {
            messages.push(format!("and so are {} more", self.unknown.len() - NAMED));
        }
        Some(messages.join("; ")).filter(|text| !text.is_empty())
    }
}

impl From<Vec<String>> for Disabled {
    fn from(names: Vec<String>) -> Self {
        Self::by_annotation(&names.join(","))
    }
}

impl From<Disabled> for Vec<String> {
    fn from(disabled: Disabled) -> Self {
        let names = disabled.iter().map(|predicate| predicate.name().to_owned());
        names.chain(disabled.unknown.iter().cloned()).collect()
    }
}

/// The message about an unknown name in the annotation.
fn unknown_name(name: &str) -> String {
    let place = annotation::DISABLE;
    if protects_data(name) {
        return format!("{name:?} in {place} cannot be disabled: {ONLY_BY_OUTAGE}");
    }
    format!(
        "{name:?} in {place} is not a predicate and disables nothing: the nearest name is {}",
        nearest(name)
    )
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
