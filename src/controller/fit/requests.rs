//! Amounts of each resource that pods request and a node has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use stayput_pod_update::thousandths;

/// Amounts in thousandths, by name of the resource; an absent one is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Amounts(BTreeMap<String, i128>);

impl Amounts {
    pub(super) fn of(given: Option<&BTreeMap<String, Quantity>>) -> Self {
        let amount = |quantity: &Quantity| thousandths(&quantity.0).unwrap_or_default();
        let amounts = given.into_iter().flatten();
        Self(amounts.map(|(name, quantity)| (name.clone(), amount(quantity))).collect())
    }

    /// Amounts that a pod requests, as the scheduler counts them: the pod itself is one of the node's `pods`.
    pub(super) fn of_pod(spec: &PodSpec) -> Self {
        let (mut sidecars, mut at_start) = (Self::default(), Self::default());
        for container in spec.init_containers.iter().flatten() {
            let own = Self::of_container(container);
            at_start.raise_to(&sidecars.clone().plus(&own));
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars = sidecars.plus(&own);
            }
        }
        let mut all = spec
            .containers
            .iter()
            .map(Self::of_container)
            .fold(sidecars, |all, one| all.plus(&one));
        all.raise_to(&at_start);
        let whole = spec.resources.as_ref();
        all.0.extend(Self::of(whole.and_then(|whole| whole.requests.as_ref())).0);
        let mut all = all.plus(&Self::of(spec.overhead.as_ref()));
        all.0.insert("pods".to_owned(), 1000);
        all
    }

    /// Requests of a container; the limit stands in for a missing request.
    fn of_container(container: &Container) -> Self {
        let ResourceRequirements { limits, requests, .. } =
            container.resources.clone().unwrap_or_default();
        let mut amounts = Self::of(limits.as_ref());
        amounts.0.extend(Self::of(requests.as_ref()).0);
        amounts
    }

    fn plus(mut self, other: &Self) -> Self {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() += amount;
        }
        self
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            *own = (*own).max(*amount);
        }
    }

    pub(super) fn take(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() -= amount;
        }
    }

    /// The resources of which these amounts are more than is left: name, amount, and amount left.
    pub(super) fn above<'a>(
        &'a self,
        left: &'a Self,
    ) -> impl Iterator<Item = (&'a str, i128, i128)> {
        let both = self.0.iter().map(|(name, amount)| {
            (name.as_str(), *amount, left.0.get(name).copied().unwrap_or_default())
        });
        both.filter(|(_, amount, left)| *amount > 0 && amount > left)
    }
}

/// Text of an amount for people: bytes in MiB.
pub(super) fn shown(name: &str, amount: i128) -> String {
    let is_bytes = matches!(name, "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    match name {
        "cpu" => format!("{amount}m"),
        _ if is_bytes => format!("{} MiB", amount.div_euclid(1000 * 1024 * 1024)),
        _ => amount.div_euclid(1000).to_string(),
    }
}
