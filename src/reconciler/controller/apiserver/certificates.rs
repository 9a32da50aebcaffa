//! Calls for the managers' certificates, and for the keys that tokens are signed with.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::Patch;
use kube::client::Body;
use serde_json::Value;

use super::{ApiError, Apiserver, params};

/// An answer that is not an object.
#[derive(Debug)]
pub(in crate::controller) struct Document {
    pub(in crate::controller) text: String,
    /// What the apiserver's clock said, as HTTP writes it.
    pub(in crate::controller) date: Option<String>,
}

impl Apiserver {
    /// Changes a Secret by a merge patch with the version that was read.
    pub(in crate::controller) async fn patch_secret(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Secret, ApiError> {
        let api: Api<Secret> = Api::namespaced(self.client(), namespace);
        let what = format!("Secret {namespace}/{name}");
        self.call("patch_secret", &what, api.patch(name, &params(), &Patch::Merge(patch))).await
    }

    /// The same of a ConfigMap.
    pub(in crate::controller) async fn patch_config_map(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<ConfigMap, ApiError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client(), namespace);
        let what = format!("ConfigMap {namespace}/{name}");
        self.call("patch_config_map", &what, api.patch(name, &params(), &Patch::Merge(patch))).await
    }

    /// What is answered at this path.
    pub(in crate::controller) async fn document(
        &self,
        path: &'static str,
    ) -> Result<Document, ApiError> {
        let client = self.client();
        let get = async move {
            let request = http::Request::get(path).body(Body::empty());
            let answer = client.send(request.map_err(kube::Error::HttpError)?).await?;
            let date = answer.headers().get(http::header::DATE);
            let date = date.and_then(|date| date.to_str().ok()).map(str::to_owned);
            let status = answer.status();
            let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            match status.is_success() {
                true => Ok(Document { text, date }),
                false => {
                    let message = format!("answered {status}");
                    let status = kube::core::Status::failure(&message, status.as_str())
                        .with_code(status.as_u16());
                    Err(kube::Error::Api(status.boxed()))
                }
            }
        };
        self.call("get_document", path, get).await
    }
}
