//! Calls for objects of any kind in a namespace, by name.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use stayput_kube_access::cluster::SearchCluster;

use crate::apiserver::{ApiError, CLUSTERS, FIELD_MANAGER, Operation, call};
use crate::session::Session;

/// A client and the namespace of its calls.
pub(crate) struct Asked<'a> {
    pub(crate) client: &'a Client,
    pub(crate) namespace: &'a str,
}

impl<'a> Asked<'a> {
    /// Calls in the namespace of the command.
    pub(crate) fn of(session: &'a Session) -> Self {
        Self { client: &session.client, namespace: &session.namespace }
    }

    /// One object, if it exists. `resource` is the kind's name in RBAC rules.
    pub(crate) async fn find<K>(
        &self,
        resource: &'static str,
        name: &str,
    ) -> Result<Option<K>, ApiError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        call(&Operation::new("get", resource, self.namespace), api.get_opt(name)).await
    }

    /// One object of a kind of which only the name is known. `resource` is the kind's name in
    /// RBAC rules.
    pub(crate) async fn find_dynamic(
        &self,
        kind: &ApiResource,
        resource: &'static str,
        name: &str,
    ) -> Result<Option<DynamicObject>, ApiError> {
        let operation = Operation::new("get", resource, self.namespace);
        call(&operation, self.dynamic(kind).get_opt(name)).await
    }

    /// One object of a kind that `init` creates.
    pub(crate) async fn find_kind(
        &self,
        kind: Kind,
        name: &str,
    ) -> Result<Option<DynamicObject>, ApiError> {
        self.find_dynamic(&kind.api_resource(), kind.resource(), name).await
    }

    /// Creates an object; with `dry_run`, the apiserver only answers with the object.
    pub(crate) async fn create(
        &self,
        kind: Kind,
        object: &Value,
        dry_run: bool,
    ) -> Result<DynamicObject, ApiError> {
        let operation = Operation::new("create", kind.resource(), self.namespace);
        let params = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.into()) };
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        call(&operation, self.dynamic(&kind.api_resource()).create(&params, &object)).await
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn change(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
        dry_run: bool,
    ) -> Result<DynamicObject, ApiError> {
        let operation = Operation::new("patch", kind.resource(), self.namespace);
        let params = PatchParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        let api = self.dynamic(&kind.api_resource());
        call(&operation, api.patch(name, &params, &Patch::Merge(patch))).await
    }

    fn dynamic(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), self.namespace, kind)
    }

    pub(crate) async fn list<K>(
        &self,
        resource: &'static str,
        params: &ListParams,
    ) -> Result<Vec<K>, ApiError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        let operation = Operation::new("list", resource, self.namespace);
        Ok(call(&operation, api.list(params)).await?.items)
    }
}

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
