//! Facts about a SearchCluster and everything around it: objects from the apiserver, and the
//! reconciler's snapshot.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;

use crate::leader::why_none;
use stayput_kube_access::cluster::SearchCluster;
use stayput_pod_update::{Ignore, Source};
use stayput_restart::{Known, Saved, Time};

/// All facts for the checks.
#[derive(Debug)]
pub(super) struct Facts {
    /// Time of this machine's clock.
    pub(super) now: Time,
    pub(super) cluster: SearchCluster,
    pub(super) pods: Known<Vec<Pod>>,
    /// The StatefulSets of the pods, by name; `None` for one that does not exist.
    pub(super) sets: BTreeMap<String, Known<Option<StatefulSet>>>,
    /// The operators' objects that the StatefulSets belong to, by kind and name.
    pub(super) operated: BTreeMap<(String, String), Known<Option<DynamicObject>>>,
    /// The Secrets that the spec names, and those with the certificates that managers serve.
    pub(super) secrets: BTreeMap<String, Known<Option<Secret>>>,
    /// Ignored parts of the objects that pods mount where nobody watches them, as far as these could
    /// be read.
    pub(super) ignored: BTreeMap<Source, Ignore>,
    /// The reconciler's snapshot, with the managers and the engine.
    pub(super) snapshot: Known<Taken>,
    pub(super) lease: Known<Option<Lease>>,
    /// The reconciler's pods.
    pub(super) reconcilers: Known<Vec<Pod>>,
    /// The reconciler's namespace.
    pub(super) reconciler_namespace: Known<Option<Namespace>>,
    pub(super) definition: Known<Option<CustomResourceDefinition>>,
    /// NetworkPolicies in the namespace of the SearchCluster.
    pub(super) policies: Known<Vec<NetworkPolicy>>,
    /// NetworkPolicies in the reconciler's namespace.
    pub(super) reconciler_policies: Known<Vec<NetworkPolicy>>,
    pub(super) budgets: Known<Vec<PodDisruptionBudget>>,
    /// Rights that the reconciler needs, each with the answer if it has it.
    pub(super) rights: Vec<(Right, Known<bool>)>,
    pub(super) apiserver_time: Known<ApiserverTime>,
}

/// Time of the apiserver's clock, and this machine's before and after the call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApiserverTime {
    pub(super) asked: Time,
    pub(super) server: Time,
    pub(super) answered: Time,
}

/// A snapshot, and this machine's clock before and after the call.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) asked: Time,
    pub(super) saved: Saved,
    pub(super) answered: Time,
}

/// A right of the reconciler in the namespace of the SearchCluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Right {
    pub(super) verb: &'static str,
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    pub(super) subresource: &'static str,
}

impl Facts {
    pub(super) fn namespace(&self) -> &str {
        self.cluster.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    /// Name of the right in findings.
    pub(super) fn object(&self) -> String {
        format!("SearchCluster/{}", self.name())
    }

    /// Why no reconciler works, if that is known. The Lease is compared with the apiserver's clock: this
    /// machine's may be wrong.
    pub(super) fn why_no_reconciler(&self) -> Option<String> {
        let now = self.apiserver_time.as_ref().map_or(self.now, |time| time.server);
        why_none(self.lease.as_ref().ok()?.as_ref(), now)
    }

    /// The pods; empty while they are not known.
    pub(super) fn known_pods(&self) -> &[Pod] {
        self.pods.as_ref().map(Vec::as_slice).unwrap_or_default()
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.subresource.is_empty() { Ok(()) } else { write!(f, "/{}", self.subresource) }
    }
}
