//! The apiserver's version and clock, and objects of the whole cluster.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::client::Body;
use kube::{Api, Client};
use stayput_http::https::answer_time;
use stayput_restart::Time;

use crate::apiserver::{ApiError, Operation, call};
use crate::session::Session;

/// A namespace, if it exists.
pub(crate) async fn find_namespace(
    client: &Client,
    name: &str,
) -> Result<Option<Namespace>, ApiError> {
    let api: Api<Namespace> = Api::all(client.clone());
    call(&Operation::new("get", "namespaces", name), api.get_opt(name)).await
}

/// The installed definition of the SearchCluster.
pub(crate) async fn definition(
    client: &Client,
) -> Result<Option<CustomResourceDefinition>, ApiError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let resource = "customresourcedefinitions.apiextensions.k8s.io";
    call(&Operation::everywhere("get", resource), api.get_opt("searchclusters.stayput.dev")).await
}

/// True if the review allows the access.
pub(crate) async fn review(client: &Client, review: SubjectAccessReview) -> Result<bool, ApiError> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let operation = Operation::everywhere("create", "subjectaccessreviews.authorization.k8s.io");
    let answer = call(&operation, api.create(&PostParams::default(), &review)).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Time of the apiserver's clock, from the date in its answer.
pub(crate) async fn time(client: &Client) -> Result<Time, ApiError> {
    let operation = Operation::everywhere("get", "/version");
    let request = http::Request::get("/version").body(Body::empty());
    let request = request.map_err(kube::Error::HttpError);
    let request = request.map_err(|error| ApiError::call(&operation, error))?;
    let answer = call(&operation, client.send(request)).await?;
    let seconds = answer_time(answer.headers()).ok_or(ApiError::NoDate)?;
    Ok(Time(seconds * 1000))
}

/// The apiserver's answer at a path that is not about objects.
pub(crate) async fn document(session: &Session, path: &'static str) -> Result<String, ApiError> {
    let operation = Operation::everywhere("get", path);
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
    let request = request.map_err(|error| ApiError::call(&operation, error))?;
    call(&operation, session.client.request_text(request)).await
}
