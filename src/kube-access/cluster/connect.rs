//! How the reconciler reaches the engine and the managers: `spec.engine` and `spec.manager`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::spec::Distribution;

/// How the engine is reached: at the address of its pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.scheme == 'http' || has(self.caSecret)",
        "message": "engine.caSecret is missing: name the Secret whose ca.crt is the CA of the \
                    engine's certificates, or set engine.scheme to http",
    },
    {
        "rule": "self.scheme == 'https' || !has(self.credentialsSecret) || has(self.caSecret) || \
                 self.allowPlainCredentials",
        "message": "engine.credentialsSecret would be sent over plain http, where it can be read \
                    on the network: set engine.scheme to https, or engine.allowPlainCredentials to true",
    },
    {
        "rule": "!has(self.distribution) || !has(oldSelf.distribution) || \
                 self.distribution == oldSelf.distribution",
        "message": "engine.distribution cannot change, since an engine does not read what another one \
                    has written: restore a snapshot into another SearchCluster",
    },
]))]
pub struct Engine {
    /// With `nodeSets`: which engine to run. Otherwise it is read from the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// With `nodeSets`: which version to run, such as 2.19.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub version: Option<String>,
    /// With `nodeSets`: the engine's image; without it the official one of the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// With `nodeSets`: each pod first keeps the engine's classes in an archive, so that the pod itself
    /// starts later by one start of the engine, and each start in it takes less time. OpenSearch only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// `https`, or `http` for an engine without TLS. `http` with `caSecret`: TLS as soon as the
    /// engine has it; without TLS no credentials are sent unless that is allowed.
    #[serde(default)]
    pub scheme: Scheme,
    /// Port of its REST API.
    #[serde(default = "engine_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Secret with `username` and `password`, or `apiKey`, or `tls.crt` and `tls.key`, or `elastic`
    /// with the password of the user elastic, as ECK keeps it. It must carry the annotation
    /// `stayput.dev/allow` with the name of this SearchCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = OBJECT_NAME))]
    pub credentials_secret: Option<String>,
    /// Secret with `ca.crt`, the CA of the engine's certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = OBJECT_NAME))]
    pub ca_secret: Option<String>,
    /// The name that every engine certificate has. Without it a certificate must be for the pod's
    /// IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub server_name: Option<String>,
    /// Send the credentials although the connection is plain http.
    #[serde(default)]
    pub allow_plain_credentials: bool,
}

const fn engine_port() -> u16 {
    9200
}

/// Protocol of the engine's REST API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    #[default]
    Https,
}

/// How the managers in the pods are reached: by TLS, at the address of their pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    /// With `nodeSets`: image with the manager, for an init container of every pod. Without it new
    /// sets get that of the reconciler's version, and sets that are there keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Port of their API.
    #[serde(default = "manager_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Secret with `ca.crt`, the CA of the managers' certificates. With `nodeSets` the default is
    /// the SearchCluster's name and `-manager-ca`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = OBJECT_NAME))]
    pub ca_secret: String,
    /// The name that every one of their certificates has.
    #[serde(default = "manager_name")]
    #[schemars(length(min = 1, max = 253))]
    pub server_name: String,
    /// How the reconciler authenticates to the managers: exactly one of the three. With `nodeSets`
    /// the default is serviceAccountToken.
    #[serde(default, skip_serializing_if = "ManagerAuth::is_unset")]
    pub auth: ManagerAuth,
}

/// Defaults; of no use before [`SearchCluster::completed_spec`](super::SearchCluster::completed_spec) has
/// completed them.
impl Default for Manager {
    fn default() -> Self {
        Self {
            image: None,
            port: manager_port(),
            ca_secret: String::new(),
            server_name: manager_name(),
            auth: ManagerAuth::default(),
        }
    }
}

impl Manager {
    /// True if the spec leaves `manager` out.
    pub(crate) fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

const fn manager_port() -> u16 {
    9199
}

fn manager_name() -> String {
    "stayput".into()
}

/// How the reconciler authenticates to the managers: exactly one of the three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "[has(self.serviceAccountToken), has(self.jwtKeySecret), \
             has(self.clientCertificateSecret)].filter(given, given).size() == 1",
    "message": "manager.auth needs exactly one of serviceAccountToken, jwtKeySecret and \
                clientCertificateSecret: write serviceAccountToken: {} if in doubt",
}]))]
pub struct ManagerAuth {
    /// A token of the reconciler's own service account, one per pod, for the audience
    /// `stayput:<namespace>/<pod uid>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_token: Option<ServiceAccountToken>,
    /// Secret whose `key` signs tokens. It must carry the annotation `stayput.dev/allow` with the
    /// name of this SearchCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = OBJECT_NAME))]
    pub jwt_key_secret: Option<String>,
    /// Secret with `tls.crt` and `tls.key`. It must carry the annotation `stayput.dev/allow` with
    /// the name of this SearchCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = OBJECT_NAME))]
    pub client_certificate_secret: Option<String>,
}

impl ManagerAuth {
    /// True if the spec names no way to authenticate.
    pub(crate) fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

/// Has no fields: write `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountToken {}

/// Names of objects that Kubernetes accepts.
const OBJECT_NAME: &str = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";
