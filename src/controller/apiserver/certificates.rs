//! Calls for the managers' certificates, and for the keys that tokens are signed with.

use kube::Api;
use kube::api::Patch;
use kube::client::Body;
use serde_json::Value;

use super::{ApiError, Apiserver, ByName, params};
use stayput_http::http_date;

/// An answer with plain text instead of a Kubernetes object.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: String,
    /// Time of the apiserver's clock in the answer, in seconds since 1970.
    pub(crate) date: Option<u64>,
}

impl Apiserver {
    /// Changes a Secret or a ConfigMap by a merge patch with the version that was read.
    pub(crate) async fn renew<K: ByName>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<K, ApiError> {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        let what = format!("{} {namespace}/{name}", K::kind(&()));
        self.call("renew", &what, api.patch(name, &params(), &Patch::Merge(patch))).await
    }

    /// The document that the apiserver serves at this path.
    pub(crate) async fn document(&self, path: &'static str) -> Result<Document, ApiError> {
        let client = self.client();
        let get = async move {
            let request = http::Request::get(path).body(Body::empty());
            let answer = client.send(request.map_err(kube::Error::HttpError)?).await?;
            let date = http_date::seconds(answer.headers());
            let status = answer.status();
            let body = http_body_util::BodyExt::collect(answer.into_body()).await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            if status.is_success() {
                Ok(Document { text, date })
            } else {
                let message = format!("answered {status}");
                let status = kube::core::Status::failure(&message, status.as_str())
                    .with_code(status.as_u16());
                Err(kube::Error::Api(status.boxed()))
            }
        };
        self.call("get_document", path, get).await
    }
}
