//! Calls for the objects that `init` makes.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::Value;

use super::{ApiError, CLUSTERS, FIELD_MANAGER, Operation, PODS, call};
use crate::cluster::SearchCluster;
use crate::kubectl::session::Session;

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kubectl) enum Kind {
    Secret,
    ConfigMap,
    Role,
    RoleBinding,
    /// Of cert-manager.
    Certificate,
    SearchCluster,
}

impl Kind {
    pub(in crate::kubectl) const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::Certificate => "Certificate",
            Self::SearchCluster => "SearchCluster",
        }
    }

    /// As RBAC rules name it.
    const fn resource(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
            Self::Role => "roles.rbac.authorization.k8s.io",
            Self::RoleBinding => "rolebindings.rbac.authorization.k8s.io",
            Self::Certificate => "certificates.cert-manager.io",
            Self::SearchCluster => CLUSTERS,
        }
    }

    fn api(self, session: &Session) -> Api<DynamicObject> {
        let resource = match self {
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
        };
        Api::namespaced_with(session.client.clone(), &session.namespace, &resource)
    }
}

/// The object; none if it is absent.
pub(in crate::kubectl) async fn find(
    session: &Session,
    kind: Kind,
    name: &str,
) -> Result<Option<DynamicObject>, ApiError> {
    let operation = Operation::new("get", kind.resource(), &session.namespace);
    call(&operation, kind.api(session).get_opt(name)).await
}

/// Makes an object; with `dry_run`, the apiserver says what it would make.
pub(in crate::kubectl) async fn create(
    session: &Session,
    kind: Kind,
    object: &Value,
    dry_run: bool,
) -> Result<DynamicObject, ApiError> {
    let operation = Operation::new("create", kind.resource(), &session.namespace);
    let params = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.into()) };
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    call(&operation, kind.api(session).create(&params, &object)).await
}

/// Changes an object by a merge patch.
pub(in crate::kubectl) async fn change(
    session: &Session,
    kind: Kind,
    name: &str,
    patch: &Value,
    dry_run: bool,
) -> Result<DynamicObject, ApiError> {
    let operation = Operation::new("patch", kind.resource(), &session.namespace);
    let params = PatchParams {
        dry_run,
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    call(&operation, kind.api(session).patch(name, &params, &Patch::Merge(patch))).await
}

/// The pods with these labels, such as `app=logs`.
pub(in crate::kubectl) async fn pods_by_labels(
    session: &Session,
    labels: &str,
) -> Result<Vec<Pod>, ApiError> {
    let api: Api<Pod> = Api::namespaced(session.client.clone(), &session.namespace);
    let operation = Operation::new("list", PODS, &session.namespace);
    Ok(call(&operation, api.list(&ListParams::default().labels(labels))).await?.items)
}

/// What the apiserver answers at a path that is not about objects.
pub(in crate::kubectl) async fn document(
    session: &Session,
    path: &'static str,
) -> Result<String, ApiError> {
    let operation = Operation::new("get", path, &session.namespace);
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
    let request = request.map_err(|error| ApiError::call(&operation, error))?;
    call(&operation, session.client.request_text(request)).await
}
