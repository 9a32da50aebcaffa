//! Reads objects of any kind, for `doctor` and `detach`.

use std::fmt::Debug;
use std::time::UNIX_EPOCH;

use http::header::DATE;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::{ApiError, Operation, call};
use stayput_restart::Time;

/// Whom to ask, and about which namespace.
pub(in crate::kubectl) struct Asked<'a> {
    pub(in crate::kubectl) client: &'a Client,
    pub(in crate::kubectl) namespace: &'a str,
}

impl Asked<'_> {
    /// One object; none if it is not there. `resource` is its name in RBAC rules.
    pub(in crate::kubectl) async fn find<K>(
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

    /// One object of a kind that we do not know.
    pub(in crate::kubectl) async fn find_dynamic(
        &self,
        resource: &ApiResource,
        name: &str,
    ) -> Result<Option<DynamicObject>, ApiError> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), self.namespace, resource);
        let operation = Operation::new("get", "objects of the operator", self.namespace);
        call(&operation, api.get_opt(name)).await
    }

    pub(in crate::kubectl) async fn list<K>(
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

/// A namespace; none if it is not there.
pub(in crate::kubectl) async fn find_namespace(
    client: &Client,
    name: &str,
) -> Result<Option<Namespace>, ApiError> {
    let api: Api<Namespace> = Api::all(client.clone());
    call(&Operation::new("get", "namespaces", name), api.get_opt(name)).await
}

/// The definition of the SearchCluster, as it is there.
pub(in crate::kubectl) async fn definition(
    client: &Client,
) -> Result<Option<CustomResourceDefinition>, ApiError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let resource = "customresourcedefinitions.apiextensions.k8s.io";
    call(&Operation::new("get", resource, "(all)"), api.get_opt("searchclusters.stayput.dev")).await
}

/// Whether somebody may do something.
pub(in crate::kubectl) async fn review(
    client: &Client,
    review: SubjectAccessReview,
) -> Result<bool, ApiError> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let operation = Operation::new("create", "subjectaccessreviews.authorization.k8s.io", "(all)");
    let answer = call(&operation, api.create(&PostParams::default(), &review)).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// The apiserver's clock, by the date in its answer.
pub(in crate::kubectl) async fn time(client: &Client) -> Result<Time, ApiError> {
    let operation = Operation::new("get", "/version", "(all)");
    let request = http::Request::get("/version").body(Body::empty());
    let request = request.map_err(|error| ApiError::NoDate(error.to_string()))?;
    let answer = call(&operation, client.send(request)).await?;
    let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
    let date = date.ok_or_else(|| ApiError::NoDate("there is none".into()))?;
    let time = httpdate::parse_http_date(date).ok();
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let time = time.ok_or_else(|| ApiError::NoDate(format!("it is {date:?}")))?;
    Ok(Time(time.as_secs() * 1000))
}
