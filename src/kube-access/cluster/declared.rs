//! A declared cluster: what the spec leaves out, and the declaration as plain data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;
use stayput_certificates::names::SecretNames;
use stayput_declare as declare;
use stayput_restart::OnConfigChange;

use crate::cluster::connect::{Manager, Scheme, ServiceAccountToken};
use crate::cluster::spec::{
    self, Distribution, Pods, SearchCluster, SearchClusterSpec, Source, UpdateMode,
};

/// Placeholder in the name of a source for the name of the pod's StatefulSet.
pub(crate) const SET: &str = "{set}";

impl SearchCluster {
    /// True if the reconciler makes the cluster's nodes.
    pub fn is_declared(&self) -> bool {
        !self.spec.node_sets.is_empty()
    }

    /// The SearchCluster with its [`Self::completed_spec`].
    #[must_use]
    pub fn completed(self) -> Self {
        let spec = self.completed_spec().into_owned();
        Self { spec, ..self }
    }

    /// The spec with the defaults of a declared cluster: its pods are those with our label, its config is
    /// that of their sets, and a changed declaration is carried out.
    pub fn completed_spec(&self) -> Cow<'_, SearchClusterSpec> {
        if !self.is_declared() {
            return Cow::Borrowed(&self.spec);
        }
        let name = self.metadata.name.clone().unwrap_or_default();
        let mut spec = self.spec.clone();
        let labels = BTreeMap::from([(declare::CLUSTER.to_owned(), name.clone())]);
        spec.pods = Pods {
            selector: LabelSelector { match_labels: Some(labels), match_expressions: None },
            node_name_label: None,
        };
        if spec.manager.ca_secret.is_empty() {
            let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
            spec.manager.ca_secret = SecretNames::of(namespace, &name).trusted;
        }
        if spec.manager.auth.is_unset() {
            spec.manager.auth.service_account_token = Some(ServiceAccountToken {});
        }
        if spec.config.sources.is_empty() {
            let secret = Some(format!("{SET}-config"));
            spec.config.sources = vec![Source { secret, ..Source::default() }];
        }
        if spec.restart.on_config_change == OnConfigChange::None {
            spec.restart.on_config_change = OnConfigChange::Auto;
        }
        // A StatefulSet that we make ourselves has nobody else to carry out its template.
        spec.update.mode = UpdateMode::InPlace;
        Cow::Owned(spec)
    }

    /// The declaration, if the spec names a distribution and a version. `account` is the reconciler's service
    /// account, `namespace:name`.
    pub fn declaration(&self, account: &str) -> Option<declare::Cluster> {
        let spec = self.completed_spec();
        let metadata = &self.metadata;
        let distribution = match spec.engine.distribution? {
            Distribution::Elasticsearch => declare::Distribution::Elasticsearch,
            Distribution::OpenSearch => declare::Distribution::OpenSearch,
        };
        Some(declare::Cluster {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            engine: declare::Engine {
                distribution,
                version: spec.engine.version.as_deref()?.parse().ok()?,
                image: spec.engine.image.clone(),
                port: spec.engine.port,
                tls: spec.engine.scheme == Scheme::Https,
                ca_secret: spec.engine.ca_secret.clone(),
                credentials_secret: spec.engine.credentials_secret.clone(),
                warm: spec.engine.warm,
            },
            manager: manager(&spec.manager, account),
            node_sets: spec.node_sets.iter().map(node_set).collect(),
        })
    }
}

fn manager(manager: &Manager, account: &str) -> declare::Manager {
    declare::Manager {
        image: manager.image.clone(),
        image_of_new_sets: format!("stayput/manager:{}", env!("CARGO_PKG_VERSION")),
        port: manager.port,
        account: account.to_owned(),
    }
}

fn node_set(set: &spec::NodeSet) -> declare::NodeSet {
    declare::NodeSet {
        name: set.name.clone(),
        count: set.count,
        config: set.config.clone(),
        pod_template: set.pod_template.clone(),
        volume_claim_templates: set.volume_claim_templates.clone(),
        claim_retention: set.persistent_volume_claim_retention_policy.map(|policy| json!(policy)),
    }
}
