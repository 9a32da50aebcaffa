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
use stayput_kube_access::cluster::SearchCluster;
use stayput_pod_update::{Ignore, Source};
use stayput_restart::{Known, Saved, Time};

use crate::leader::why_none;

/// All facts for the checks.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Time of this machine's clock.
    pub(crate) now: Time,
    pub(crate) cluster: SearchCluster,
    pub(crate) pods: Known<Vec<Pod>>,
    /// The StatefulSets of the pods, by name; `None` for one that does not exist.
    pub(crate) sets: BTreeMap<String, Known<Option<StatefulSet>>>,
    /// The operators' objects that the StatefulSets belong to, by kind and name.
    pub(crate) operated: BTreeMap<(String, String), Known<Option<DynamicObject>>>,
    /// The Secrets that the spec names, and those with the certificates that managers serve.
    pub(crate) secrets: BTreeMap<String, Known<Option<Secret>>>,
    /// Ignored parts of the objects that pods mount where nobody watches them, as far as these could
    /// be read.
    pub(crate) ignored: BTreeMap<Source, Ignore>,
    /// The reconciler's snapshot, with the managers and the engine.
    pub(crate) snapshot: Known<Taken>,
    pub(crate) lease: Known<Option<Lease>>,
    /// The reconciler's pods.
    pub(crate) reconcilers: Known<Vec<Pod>>,
    /// The reconciler's namespace.
    pub(crate) reconciler_namespace: Known<Option<Namespace>>,
    pub(crate) definition: Known<Option<CustomResourceDefinition>>,
    /// NetworkPolicies in the namespace of the SearchCluster.
    pub(crate) policies: Known<Vec<NetworkPolicy>>,
    /// NetworkPolicies in the reconciler's namespace.
    pub(crate) reconciler_policies: Known<Vec<NetworkPolicy>>,
    pub(crate) budgets: Known<Vec<PodDisruptionBudget>>,
    /// Rights that the reconciler needs, each with the answer if it has it.
    pub(crate) rights: Vec<(Right, Known<bool>)>,
    pub(crate) apiserver_time: Known<ApiserverTime>,
}

/// Time of the apiserver's clock, and this machine's before and after the call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiserverTime {
    pub(crate) asked: Time,
    pub(crate) server: Time,
    pub(crate) answered: Time,
}

/// A snapshot, and this machine's clock before and after the call.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) asked: Time,
    pub(crate) saved: Saved,
    pub(crate) answered: Time,
}

/// A right of the reconciler in the namespace of the SearchCluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) verb: &'static str,
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) subresource: &'static str,
}

impl Facts {
    pub(crate) fn namespace(&self) -> &str {
        self.cluster.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    /// Name of the right in findings.
    pub(crate) fn object(&self) -> String {
        format!("SearchCluster/{}", self.name())
    }

    /// Why no reconciler works, if that is known. The Lease is compared with the apiserver's clock: this
    /// machine's may be wrong.
    pub(crate) fn why_no_reconciler(&self) -> Option<String> {
        let now = self.apiserver_time.as_ref().map_or(self.now, |time| time.server);
        why_none(self.lease.as_ref().ok()?.as_ref(), now)
    }

    /// The pods; empty while they are not known.
    pub(crate) fn known_pods(&self) -> &[Pod] {
        self.pods.as_ref().map(Vec::as_slice).unwrap_or_default()
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.subresource.is_empty() { Ok(()) } else { write!(f, "/{}", self.subresource) }
    }
}
