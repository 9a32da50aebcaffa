//! Room on a Kubernetes node for a pod, by the amounts that pods request.

use std::collections::BTreeMap;

use crate::resources::thousandths;

/// Amounts of resources in thousandths, by name of the resource; an absent one is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, i128>);

impl Amounts {
    /// Amounts as Kubernetes writes them, by name of the resource; text that is no quantity counts as zero.
    pub fn of<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let amount = |(name, text): (&str, &str)| (name.to_owned(), thousandths(text).unwrap_or(0));
        Self(given.into_iter().map(amount).collect())
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() += amount;
        }
        self
    }

    /// The larger amount of each resource.
    #[must_use]
    pub fn at_least(mut self, other: &Self) -> Self {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            *own = (*own).max(*amount);
        }
        self
    }

    /// The amounts of `other` where it has any, else these.
    #[must_use]
    pub fn or_instead(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn of_resource(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// A pod on the Kubernetes node, or one that is to come there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRequests {
    /// Amounts that the scheduler counts for the pod.
    pub amounts: Amounts,
    /// Priority of the pod, if known.
    pub priority: Option<i32>,
}

/// Resources of which `pod` requests more than `others` leave of `allocatable`, with a remedy, for people; `None`
/// if it fits. With a priority, the pod evicts those of lower ones.
pub fn why_no_room(
    allocatable: &Amounts,
    others: &[PodRequests],
    pod: &PodRequests,
) -> Option<String> {
    let stays = |other: &&PodRequests| {
        pod.priority.is_none_or(|own| other.priority.unwrap_or_default() >= own)
    };
    let taken = others.iter().filter(stays).map(|other| &other.amounts);
    let taken = taken.fold(Amounts::default(), |all, one| all.plus(one));
    let lacks = pod.amounts.0.iter().filter_map(|(name, wanted)| {
        let left = allocatable.of_resource(name) - taken.of_resource(name);
        let is_more = *wanted > 0 && *wanted > left;
        is_more.then(|| {
            format!("{} {name} of which {} are left", shown(name, *wanted), shown(name, left))
        })
    });
    let lacks: Vec<String> = lacks.collect();
    let list = || format!("it requests {}: make room there, or request less", lacks.join(", "));
    (!lacks.is_empty()).then(list)
}

/// Text of an amount for people: bytes in MiB.
fn shown(name: &str, amount: i128) -> String {
    let is_bytes = matches!(name, "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    match name {
        "cpu" => format!("{amount}m"),
        _ if is_bytes => format!("{} MiB", amount.div_euclid(1000 * 1024 * 1024)),
        _ => amount.div_euclid(1000).to_string(),
    }
}
