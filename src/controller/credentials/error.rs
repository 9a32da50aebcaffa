//! Errors of missing or unusable credentials.

use crate::apiserver::ApiError;
use stayput_engine::EngineError;
use stayput_http::manager_client::ClientError;
use stayput_kube_access::cluster::NotAllowed;

/// Reason why there are no usable credentials.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("Secret {0}, which the SearchCluster names, is absent: create it, or name another")]
    SecretAbsent(String),
    #[error(transparent)]
    Apiserver(#[from] ApiError),
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("Secret {secret} has no key {key}, which the spec of the SearchCluster requires")]
    KeyAbsent { secret: String, key: String },
    #[error("{key} of Secret {secret} is not UTF-8 text")]
    NotText {
        secret: String,
        key: String,
        #[source]
        source: std::str::Utf8Error,
    },
    #[error("spec.engine.caSecret is missing: https needs a CA")]
    NoEngineCa,
    #[error(
        "spec.engine.credentialsSecret would be sent over plain http: set \
         engine.allowPlainCredentials to true if that is intended"
    )]
    PlainHttp,
    #[error(transparent)]
    EngineTls(#[from] EngineError),
    #[error("{0}")]
    ManagerTls(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{key} of Secret {secret} {source}")]
    SigningKey {
        secret: String,
        key: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(
        "spec.manager.auth.serviceAccountToken needs the reconciler's own service account: give it \
         STAYPUT_SERVICE_ACCOUNT and STAYPUT_POD_NAMESPACE"
    )]
    NoServiceAccount,
    #[error("no token requested yet: the apiserver is slow to return tokens")]
    TokenNotRequested,
    #[error("{0} has no address yet")]
    NoAddress(String),
    #[error(transparent)]
    Client(#[from] ClientError),
}
