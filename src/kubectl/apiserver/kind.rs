//! The kinds of objects that `init` creates.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::core::{ApiResource, GroupVersionKind};
use stayput_kube_access::cluster::SearchCluster;

use crate::apiserver::CLUSTERS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Secret,
    ConfigMap,
    Role,
    RoleBinding,
    /// Certificate of cert-manager.
    Certificate,
    SearchCluster,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::Certificate => "Certificate",
            Self::SearchCluster => "SearchCluster",
        }
    }

    /// Name of the kind's resource in RBAC rules.
    pub(crate) const fn resource(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
            Self::Role => "roles.rbac.authorization.k8s.io",
            Self::RoleBinding => "rolebindings.rbac.authorization.k8s.io",
            Self::Certificate => "certificates.cert-manager.io",
            Self::SearchCluster => CLUSTERS,
        }
    }

    /// The kind's resource for calls.
    pub(crate) fn api_resource(self) -> ApiResource {
        match self {
            Self::Secret => ApiResource::erase::<Secret>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Role => ApiResource::erase::<Role>(&()),
            Self::RoleBinding => ApiResource::erase::<RoleBinding>(&()),
            Self::SearchCluster => ApiResource::erase::<SearchCluster>(&()),
            Self::Certificate => ApiResource::from_gvk(&GroupVersionKind::gvk(
                "cert-manager.io",
                "v1",
                "Certificate",
            )),
        }
    }
}
